"""Authorisation rules. Every service calls this module before anything else; the API calls it too,
before it reads a request's body.

A key opens only the resource that it names. The narrowest name counts: a key of a peer or a session
does not open the workspace, and a key that names both opens the session. Every refusal raises
`Unauthorised`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from msgspec import Struct

from memservice.domain.auth.jwt_claims import Claims
from memservice.domain.errors import Unauthorised
from memservice.domain.filters import TRUE, Condition, equals
from memservice.services.auth.permissions import Permission, Role, permissions_of
from memservice.services.auth.principal import Principal
from memservice.spi.storage import Transaction

NOT_PERMISSIONED = "JWT not permissioned for this resource"
OTHER_RESOURCE = "Unauthorized access to resource"
ADMIN_ONLY = "Resource requires admin privileges"
OWN_PEER_ONLY = "A key of a peer creates a session with that peer alone: name no other in peers"
PEER_SESSION_PREFIX = "__peer_"
"""Sessions with this prefix hold messages that a peer stored outside any conversation
(`services.v2.peer_messages`)."""
NO_SELF_SERVICE = (
    "This workspace does not let a peer's key export or erase its peer: set `self_service` in its "
    "configuration"
)
NOT_PERMITTED = "Your role does not permit this: it needs the permission to {needs}{everywhere}"
OTHER_WORKSPACE = "Your account is limited to other workspaces"
BARE_WORKSPACE = (
    "A key of a peer or a session creates its workspace by its id alone: send no metadata and "
    "no configuration"
)


def principal_of(claims: Claims | None) -> Principal:
    """The principal of a key with these claims, which name resources by id; claims with uids go
    through `services.v1.keys.translate` first. None: authentication is off, and every caller may
    do everything. Requests get their principal only here and in `principal_of_member`."""
    if claims is None:
        return Principal(admin=True, actor="anyone: authentication is off")
    return Principal(
        actor=f"key {claims.id}" if claims.id else "a key without an id",
        admin=claims.admin,
        workspace_id=claims.workspace,
        peer_id=claims.peer,
        session_id=claims.session,
        collection=claims.collection_uid,
        has_user_claim=bool(claims.user_uid),
    )


class Names(Struct, frozen=True):
    """The resources of a path by the names that keys use: slugs, and the uid of a collection. None
    for a resource that does not exist."""

    workspace: str | None = None
    peer: str | None = None
    session: str | None = None
    collection: str | None = None


def principal_of_member(role: Role, workspaces: frozenset[str] | None, uid: str = "") -> Principal:
    """The principal of the console member `uid`, limited to the workspaces with these ids; None:
    not limited."""
    return Principal(
        actor=f"member {uid}",
        permissions=permissions_of(role, workspaces is not None),
        workspaces=workspaces,
    )


def require_admin(principal: Principal, *, needs: Permission | None = None) -> None:
    """Access to the whole store: an admin key, or a console member with the permission `needs` in
    all workspaces. `needs` None: no console member."""
    if principal.is_member and needs is not None:
        if not principal.holds(needs) or principal.workspaces is not None:
            raise Unauthorised(NOT_PERMITTED.format(needs=needs, everywhere=" in all workspaces"))
    elif not principal.admin:
        raise Unauthorised(ADMIN_ONLY)


def require_member(principal: Principal, needs: Permission) -> None:
    """Access to people's accounts and the audit log, which no key has, not even an admin key: a
    member with the permission, or the operator on the command line."""
    if not principal.holds(needs):
        raise Unauthorised(NOT_PERMITTED.format(needs=needs, everywhere=""))


def _require_in_workspace(principal: Principal, workspace_id: str, needs: Permission) -> None:
    if not principal.opens_whole(workspace_id):
        raise Unauthorised(OTHER_WORKSPACE)
    if not principal.holds(needs):
        raise Unauthorised(NOT_PERMITTED.format(needs=needs, everywhere=""))


def listable(principal: Principal) -> Condition:
    """The workspaces in a list: all for an admin key, and for a console member those that the
    account may open. Raises `Unauthorised` for other keys."""
    if not principal.is_member:
        require_admin(principal)
        return TRUE
    if principal.workspaces is None:
        return TRUE
    return equals(slug=tuple(sorted(principal.workspaces)))


def require(
    principal: Principal,
    workspace_id: str,
    *,
    peer_id: str | None = None,
    session_id: str | None = None,
    member: bool = False,
    collection: str | None = None,
    needs: Permission = Permission.EDIT_MEMORY,
) -> None:
    """Access to the whole workspace, or to a peer, session or collection in it, which the key of
    that resource opens too.

    With `member`, a peer's key opens the session too if `as_member` has marked it as a member. A
    console member must have the permission `needs`, so operations that only read pass
    `Permission.VIEW`.
    """
    if principal.admin:
        return
    if principal.is_member:
        _require_in_workspace(principal, workspace_id, needs)
        return
    if principal.workspace_id is None or principal.workspace_id != workspace_id:
        raise Unauthorised(NOT_PERMISSIONED)
    if principal.collection is not None:
        allowed = principal.collection == collection
    elif principal.session_id is not None:
        allowed = principal.session_id == session_id
    elif principal.peer_id is not None:
        allowed = principal.peer_id == peer_id or (
            member and session_id is not None and principal.member_of == session_id
        )
    else:
        allowed = True
    if not allowed:
        raise Unauthorised(NOT_PERMISSIONED)


def require_collections(principal: Principal) -> None:
    """Named collections and their documents: the key of a collection, of a user (claim `us`), or
    a wider one. The key of a peer lists no conclusions and stores none, so it opens no documents
    either."""
    if principal.is_peer and principal.collection is None and not principal.has_user_claim:
        raise Unauthorised(NOT_PERMISSIONED)


def require_key_of(principal: Principal, workspace_id: str) -> None:
    """Any key of the workspace, however narrow: to read the workspace itself, or if further rules
    decide. A console member needs the permission to edit memory."""
    if principal.is_member:
        _require_in_workspace(principal, workspace_id, Permission.EDIT_MEMORY)
        return
    if not principal.admin and (
        principal.workspace_id is None or principal.workspace_id != workspace_id
    ):
        raise Unauthorised(OTHER_RESOURCE)


def require_create_peer(principal: Principal, workspace_id: str, peer_id: str) -> None:
    """To get or create a peer. A peer's key: only itself. A session's key: any peer, since its
    messages also create their authors."""
    require_key_of(principal, workspace_id)
    if principal.is_peer and principal.peer_id != peer_id:
        raise Unauthorised(OTHER_RESOURCE)


def may_update_peers(principal: Principal) -> bool:
    """Whether the principal may change peers. A session's key only reads them: they belong to the
    workspace."""
    return not principal.is_session


def may_update_sessions(principal: Principal) -> bool:
    """Whether get-or-create may change an existing session. A narrow key only reads it: it belongs
    to all its members."""
    return not (principal.is_peer or principal.is_session)


def require_create_session(
    principal: Principal, workspace_id: str, session_id: str, scopes: Sequence[str]
) -> None:
    """To get or create a session. A session's key: only itself. A peer's key: a new session, or one
    that it is a member of (`require_memberships`).

    Scopes cover more than one session, so narrow keys add none.
    """
    require_key_of(principal, workspace_id)
    if principal.is_session and principal.session_id != session_id:
        raise Unauthorised(OTHER_RESOURCE)
    if scopes:
        refuse_narrow(principal)


def require_new_session(principal: Principal, session_id: str, members: Collection[str]) -> None:
    """To create a session. A peer's key adds no other peer, since members can read each other's
    metadata. Narrow keys create no session with `PEER_SESSION_PREFIX`: they could read what a peer
    stores there later."""
    if (principal.is_peer or principal.is_session) and session_id.startswith(PEER_SESSION_PREFIX):
        raise Unauthorised(OTHER_RESOURCE)
    if principal.is_peer and set(members) - {principal.peer_id}:
        raise Unauthorised(OWN_PEER_ONLY)


def refuse_narrow(principal: Principal) -> None:
    """Refuse a peer's or session's key. For options that reach further, such as `scope`, on routes
    that are open to narrow keys."""
    if principal.is_peer or principal.is_session:
        raise Unauthorised(NOT_PERMISSIONED)


def require_bare_workspace(principal: Principal, metadata: object, configuration: object) -> None:
    """A narrow key creates its workspace by the id alone: one peer or session does not configure
    the workspace."""
    if (principal.is_peer or principal.is_session) and (metadata or configuration):
        raise Unauthorised(BARE_WORKSPACE)


def require_self_service(principal: Principal, allowed: bool) -> None:
    """What a peer's own key may do only where its workspace allows it."""
    if principal.is_peer and not allowed:
        raise Unauthorised(NO_SELF_SERVICE)


def require_own_peer(principal: Principal, peer_id: str) -> None:
    """In a session that a peer's key may read, some data is limited to that peer itself."""
    if principal.is_peer and principal.peer_id != peer_id:
        raise Unauthorised(NOT_PERMISSIONED)


def require_sessions(principal: Principal, session_ids: Sequence[str]) -> None:
    """A session's key may name only its own session (by slug)."""
    if principal.is_session and not set(session_ids) <= {principal.session_id}:
        raise Unauthorised(NOT_PERMISSIONED)


def require_memberships(tx: Transaction, principal: Principal, session_ids: Sequence[str]) -> None:
    """A peer's key may name only sessions (by slug) of which it is an active member."""
    if principal.is_peer and not _is_member(tx, principal, session_ids):
        raise Unauthorised(NOT_PERMISSIONED)


def as_member(tx: Transaction, principal: Principal, session_id: str) -> Principal:
    """The principal, marked as a member of the session if its key is that of an active member."""
    return (
        replace(principal, member_of=session_id)
        if principal.is_peer and _is_member(tx, principal, [session_id])
        else principal
    )


def _is_member(tx: Transaction, principal: Principal, session_ids: Sequence[str]) -> bool:
    # A path can contain NUL. No name has it, and some stores cannot search for it.
    if (
        not session_ids
        or principal.workspace_id is None
        or any("\0" in name for name in session_ids)
    ):
        return not session_ids
    peer = tx.workspaces.locate(principal.workspace_id, peer_id=principal.peer_id).peer
    return peer is not None and tx.members.active_among(peer.key, session_ids) >= set(session_ids)
