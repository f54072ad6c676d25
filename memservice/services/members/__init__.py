"""Members of the console: accounts, sign-ins, and the audit log.

- `visitors`: `Visitor`, the caller of a console page, from the cookie of its request.
- `sign_ins`: signing in with a password or an API key, and ending sessions.
- `accounts`: inviting, changing and deactivating members; passwords.
- `links`: one-time links, for the set-up, for invitations and for new passwords.
- `audit`: the log of actions, with actor, address and time.
- `pauses`: growing pauses after failed attempts to sign in.
- `tokens`, `passwords`: secrets and their hashes.

Permissions of the roles are in `memservice.services.auth.permissions`.
"""
