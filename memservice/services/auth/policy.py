"""Who may do what. Every service asks here before it does anything else; the API asks as well,
before it reads a request's body.

A key opens what it names and nothing beside it. The narrowest name counts: a key of a peer or a
session is none of the workspace's, and one that names both is the session's. Whatever is refused
raises `Unauthorised`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

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
"""Sessions of this prefix hold messages that a peer stored outside of any conversation
(`services.v2.peer_messages`)."""
NOT_PERMITTED = "Your role does not permit this: it needs the permission to {needs}{everywhere}"
OTHER_WORKSPACE = "Your account is limited to other workspaces"
BARE_WORKSPACE = (
    "A key of a peer or a session creates its workspace by its id alone: send no metadata and "
    "no configuration"
)


def principal_of(claims: Claims | None) -> Principal:
    """The principal of a key with these claims, which name things by id; for those that name them
    by uid, `services.v1.keys.translated` comes first. None: authentication is off, and every caller
    may do everything. Requests get their principal here and nowhere else."""
    if claims is None:
        return Principal(admin=True)
    return Principal(
        admin=claims.admin,
        workspace_id=claims.workspace,
        peer_id=claims.peer,
        session_id=claims.session,
        collection=claims.collection_uid,
        has_user_claim=bool(claims.user_uid),
    )


@dataclass(frozen=True, slots=True)
class Names:
    """The resources of a path, as keys name them: slugs, and a collection's uid. None for a
    resource that does not exist."""

    workspace: str | None = None
    peer: str | None = None
    session: str | None = None
    collection: str | None = None


def principal_of_member(role: Role, workspaces: frozenset[str] | None) -> Principal:
    """A member of the console, limited to the workspaces of these ids; None: to none. The only
    place, beside `principal_of`, that makes the principal of a request."""
    return Principal(
        permissions=permissions_of(role, workspaces is not None), workspaces=workspaces
    )


def require_admin(principal: Principal, *, needs: Permission | None = None) -> None:
    """Something of the whole store: an admin key, or a member of the console who has the permission
    `needs` in all workspaces. None: no member."""
    if principal.is_member and needs is not None:
        if not principal.holds(needs) or principal.workspaces is not None:
            raise Unauthorised(NOT_PERMITTED.format(needs=needs, everywhere=" in all workspaces"))
    elif not principal.admin:
        raise Unauthorised(ADMIN_ONLY)


def require_member(principal: Principal, needs: Permission) -> None:
    """Something that no key opens, not even an admin key: accounts of people, and what they did. A
    member who has the permission, or the operator at the machine."""
    if not principal.holds(needs):
        raise Unauthorised(NOT_PERMITTED.format(needs=needs, everywhere=""))


def _require_in_workspace(principal: Principal, workspace_id: str, needs: Permission) -> None:
    if not principal.opens_whole(workspace_id):
        raise Unauthorised(OTHER_WORKSPACE)
    if not principal.holds(needs):
        raise Unauthorised(NOT_PERMITTED.format(needs=needs, everywhere=""))


def listable(principal: Principal) -> Condition:
    """The workspaces that a list shows: all to an admin key, to a member of the console those that
    the account may open, and to other keys no list."""
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
    """Something of the workspace: the whole of it, or a peer, session or collection in it, whose
    own key is let in then.

    With `member`, so is the key of a peer that `as_member` found in the session. A member of the
    console must have the permission `needs`, so what only reads says `Permission.VIEW`.
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
    """Any key of the workspace, however narrow: to get the workspace itself, and where the next
    rules decide. A member of the console must be permitted to edit it."""
    if principal.is_member:
        _require_in_workspace(principal, workspace_id, Permission.EDIT_MEMORY)
        return
    if not principal.admin and (
        principal.workspace_id is None or principal.workspace_id != workspace_id
    ):
        raise Unauthorised(OTHER_RESOURCE)


def require_create_peer(principal: Principal, workspace_id: str, peer_id: str) -> None:
    """To get or create a peer. A peer's key: itself. A session's key: any, since its messages
    create their authors too."""
    require_key_of(principal, workspace_id)
    if principal.is_peer and principal.peer_id != peer_id:
        raise Unauthorised(OTHER_RESOURCE)


def may_update_peers(principal: Principal) -> bool:
    """A session's key gets peers as they are: they are not the session's to change."""
    return not principal.is_session


def may_update_sessions(principal: Principal) -> bool:
    """On the way of getting or creating it, a narrow key gets a session that exists as it is: it is
    all its members'."""
    return not (principal.is_peer or principal.is_session)


def require_create_session(
    principal: Principal, workspace_id: str, session_id: str, scopes: Sequence[str]
) -> None:
    """To get or create a session. A session's key: itself. A peer's key: a new one, or
    (`require_memberships`) one it is in.

    Scopes see more than one session, so narrow keys add none.
    """
    require_key_of(principal, workspace_id)
    if principal.is_session and principal.session_id != session_id:
        raise Unauthorised(OTHER_RESOURCE)
    if scopes:
        refuse_narrow(principal)


def require_new_session(principal: Principal, session_id: str, members: Collection[str]) -> None:
    """To create a session. A peer's key adds no other peer, since members see each other's
    metadata. Narrow keys take no name of `PEER_SESSION_PREFIX`: what a peer stores there later
    would be theirs to read."""
    if (principal.is_peer or principal.is_session) and session_id.startswith(PEER_SESSION_PREFIX):
        raise Unauthorised(OTHER_RESOURCE)
    if principal.is_peer and set(members) - {principal.peer_id}:
        raise Unauthorised(OWN_PEER_ONLY)


def refuse_narrow(principal: Principal) -> None:
    """What reaches beyond one peer or session, for instance the option `scope`, although the route
    is open to narrow keys."""
    if principal.is_peer or principal.is_session:
        raise Unauthorised(NOT_PERMISSIONED)


def require_bare_workspace(principal: Principal, metadata: object, configuration: object) -> None:
    """A narrow key creates its workspace by the id alone: how the workspace is set up is not for
    one peer or session to say."""
    if (principal.is_peer or principal.is_session) and (metadata or configuration):
        raise Unauthorised(BARE_WORKSPACE)


def require_own_peer(principal: Principal, peer_id: str) -> None:
    """What a peer's key may have of itself only, in a session that it may read."""
    if principal.is_peer and principal.peer_id != peer_id:
        raise Unauthorised(NOT_PERMISSIONED)


def require_sessions(principal: Principal, session_ids: Sequence[str]) -> None:
    """A session's key names sessions (by slug) of its workspace: there is but its own."""
    if principal.is_session and not set(session_ids) <= {principal.session_id}:
        raise Unauthorised(NOT_PERMISSIONED)


def require_memberships(tx: Transaction, principal: Principal, session_ids: Sequence[str]) -> None:
    """A peer's key names sessions (by slug) of its workspace: it must be an active member of
    each."""
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
    # A path may hold NUL, which some stores cannot look for and no name has.
    if (
        not session_ids
        or principal.workspace_id is None
        or any("\0" in name for name in session_ids)
    ):
        return not session_ids
    peer = tx.workspaces.locate(principal.workspace_id, peer_id=principal.peer_id).peer
    return peer is not None and tx.members.active_among(peer.key, session_ids) >= set(session_ids)
