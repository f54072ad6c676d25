"""The caller of a service."""

from __future__ import annotations

from dataclasses import dataclass

from memservice.services.auth.permissions import Permission


@dataclass(frozen=True, slots=True)
class Principal:
    """What the caller of a request may do: everything (`admin`), what its key names (of several
    names the narrowest counts), or what its role at the console permits.

    Services hand it to `memservice.services.auth.policy` before anything else. One that names
    nothing may do nothing. A request's is made by `policy.principal_of` (keys) or
    `policy.principal_of_member` (the console) alone, a command's is
    `memservice.cli.operator.OPERATOR`; no service makes one for itself.
    """

    admin: bool = False
    workspace_id: str | None = None
    peer_id: str | None = None
    session_id: str | None = None
    collection: str | None = None
    """The uid of generation 1's collection, on its routes: then the key is that collection's
    alone."""
    member_of: str | None = None
    """A session of which the peer was found to be an active member, in this request
    (`policy.as_member`)."""
    has_user_claim: bool = False
    """The key is one of generation 1 and names its peer by the claim `us`: it opens the user's
    collections, as it always did."""

    permissions: frozenset[Permission] | None = None
    """What a member of the console may do. None: a key, which may do everything within what it
    names."""
    workspaces: frozenset[str] | None = None
    """The ids of the only workspaces that a member of the console may open; None: all."""

    @property
    def is_member(self) -> bool:
        """A member of the console: has permissions instead of a key."""
        return not self.admin and self.permissions is not None

    def holds(self, permission: Permission) -> bool:
        """Whether a member has the permission, in any workspace at all. False for keys: the console
        belongs to people."""
        return self.permissions is not None and permission in self.permissions

    def opens_whole(self, workspace_id: str) -> bool:
        """Whether a member may open the workspace, the whole of it."""
        return self.is_member and (self.workspaces is None or workspace_id in self.workspaces)

    @property
    def opens_whole_workspace(self) -> bool:
        """The key of a workspace, not of one peer, session or collection in it."""
        narrower = (self.peer_id, self.session_id, self.collection)
        return self.workspace_id is not None and not any(narrower)

    @property
    def is_peer(self) -> bool:
        """A key of one peer: neither admin, nor of a workspace or a session."""
        return not self.admin and self.peer_id is not None and self.session_id is None

    @property
    def is_session(self) -> bool:
        return not self.admin and self.session_id is not None
