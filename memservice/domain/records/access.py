"""Keys, webhook endpoints, and members of the console."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

from memservice.domain.records.conversations import ACTIVE, JsonObject

PAUSED = "paused"
"""State of a webhook endpoint that failed too often. All others are active."""

OWNER, OPERATOR, READER = "owner", "operator", "reader"
"""Roles of a member of the console; `memservice.services.auth.permissions` defines what each may
do."""

DEACTIVATED = "deactivated"
"""State of a member of the console who may not sign in. All others are active."""

SET_UP, INVITATION, NEW_PASSWORD = "set-up", "invitation", "new-password"
"""Kinds of one-time link. The first two create a member; the last one sets a new password of a
member."""


class WebhookEndpoint(Struct, frozen=True):
    uid: str
    workspace_key: int
    url: str
    secret: str
    created_at: datetime
    key: int = 0
    state: str = ACTIVE
    """`active`, or `paused` after too many failures."""
    failures: int = 0

    def __repr__(self) -> str:
        """The endpoint without its secret, which a log could contain otherwise."""
        return f"WebhookEndpoint(uid={self.uid!r}, url={self.url!r}, state={self.state!r})"


class Delivery(Struct, frozen=True):
    """One attempt to deliver an event to an endpoint."""

    uid: str
    workspace_key: int
    endpoint_key: int
    event_uid: str
    """The same for every attempt to deliver one event; receivers detect repetitions by it."""
    event: str
    """Its type on the wire."""
    body: str
    attempt: int
    created_at: datetime
    key: int = 0
    status: int | None = None
    error: str | None = None
    duration_ms: int | None = None


class ApiKey(Struct, frozen=True):
    """A key minted by this service. The token itself is not stored."""

    uid: str
    """The token's `jti`; for a revoked token without one, the digest of its signed part
    (`jwt_signing.digest`)."""
    created_at: datetime
    key: int = 0
    label: str | None = None
    admin: bool = False
    workspace: str | None = None
    peer: str | None = None
    session: str | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    workspace_uid: str | None = None
    """The uid of `workspace`; so with the next two. None while there is no such row: the key is
    then for the first one that gets the name."""
    peer_uid: str | None = None
    session_uid: str | None = None


class ConsoleMember(Struct, frozen=True):
    """A person's account at the console. (A `Member` is a peer's membership of a session.)"""

    uid: str
    name: str
    """The name for signing in: an e-mail address or another name, NFKC and case-folded."""
    password_hash: str
    """argon2id, in the library's own notation."""
    role: str
    created_at: datetime
    key: int = 0
    workspaces: list[JsonObject] | None = None
    """The only workspaces that the member may open, each `{"id": slug, "uid": uid}`; None: all."""
    state: str = ACTIVE


class ConsoleLink(Struct, frozen=True):
    """A one-time link. Its token is not stored."""

    uid: str
    digest: str
    """Keyed hash of the token."""
    kind: str
    expires_at: datetime
    created_at: datetime
    key: int = 0
    role: str | None = None
    """The role of the member that the link creates."""
    workspaces: list[JsonObject] | None = None
    """The workspaces of the member that the link creates."""
    member_uid: str | None = None
    """The uid of the member whose password it sets."""
    created_by: str | None = None
    """The uid of the member who created the link; None: the command line."""


class BrowserSession(Struct, frozen=True):
    """One sign-in, of a member or with an API key. Only the cookie has its id, which is not
    stored."""

    uid: str
    """Names the session on pages. It gives no access."""
    digest: str
    """Keyed hash of the id."""
    address: str
    client: str
    """The browser's `User-Agent`."""
    expires_at: datetime
    created_at: datetime
    key: int = 0
    member_uid: str | None = None
    claims: JsonObject | None = None
    """The claims of the API key, as in its token; None for a member."""
    key_uid: str | None = None
    """The uid of the API key; the token's digest if it has no id."""


class SignInFailures(Struct, frozen=True):
    """Failed attempts to sign in, of one account, address or known browser."""

    subject: str
    """`account:`, `address:` or `browser:`, and a digest."""
    failures: int
    paused_until: datetime
    """Attempts before this time are rejected without a check."""
    last_at: datetime
    key: int = 0


class AuditEntry(Struct, frozen=True):
    """One action in the console: actor, action, address and time. Never changed."""

    uid: str
    actor: str
    """The name of the member, `key …`, or another actor such as the command line."""
    action: str
    """The action as `noun.verb`: `member.invite`."""
    created_at: datetime
    key: int = 0
    actor_uid: str | None = None
    """The uid of the member or key."""
    target: str | None = None
    """The object of the action."""
    workspace: str | None = None
    address: str | None = None
    detail: JsonObject = field(default_factory=dict)
