"""The caller of a service."""

from __future__ import annotations

from dataclasses import dataclass, field

from memservice.services.auth.permissions import Permission


@dataclass(frozen=True, slots=True)
class Principal:
    """What the caller of a request may do: everything (`admin`), what its key names (the narrowest
    of several names counts), or what its role at the console permits.

    Services pass it to `memservice.services.auth.policy` before anything else. A principal without
    a name may do nothing. Only `policy.principal_of` (keys) and `policy.principal_of_member` (the
    console) create the principal of a request; commands use `memservice.cli.operator.OPERATOR`. No
    service creates one.
    """

    admin: bool = False
    workspace_id: str | None = None
    peer_id: str | None = None
    session_id: str | None = None
    collection: str | None = None
    """On routes of generation 1 for collections: the uid of the only collection that the key opens.
    """
    member_of: str | None = None
    """A session of which the peer is an active member, as checked in this request
    (`policy.as_member`)."""
    has_user_claim: bool = False
    """The key is of generation 1 and names its peer by the claim `us`: it also opens the user's
    collections."""

    permissions: frozenset[Permission] | None = None
    """Permissions of a console member. None: a key, which may do everything with the resources that
    it names."""
    workspaces: frozenset[str] | None = None
    """The ids of the only workspaces that a console member may open; None: all."""

    actor: str = field(default="unknown", compare=False)
    """Who this is, for receipts: `key UID`, `member UID` … It gives no access."""

    @property
    def is_member(self) -> bool:
        """Whether this is a console member, with permissions instead of a key."""
        return not self.admin and self.permissions is not None

    def holds(self, permission: Permission) -> bool:
        """Whether a console member has the permission, in any workspace. False for keys."""
        return self.permissions is not None and permission in self.permissions

    def opens_whole(self, workspace_id: str) -> bool:
        """Whether a console member may open the workspace."""
        return self.is_member and (self.workspaces is None or workspace_id in self.workspaces)

    @property
    def opens_whole_workspace(self) -> bool:
        """Whether the key opens its whole workspace, not one peer, session or collection in it."""
        narrower = (self.peer_id, self.session_id, self.collection)
        return self.workspace_id is not None and not any(narrower)

    @property
    def is_peer(self) -> bool:
        """Whether the key is that of one peer: neither admin, nor of a workspace or a session."""
        return not self.admin and self.peer_id is not None and self.session_id is None

    @property
    def is_session(self) -> bool:
        return not self.admin and self.session_id is not None
