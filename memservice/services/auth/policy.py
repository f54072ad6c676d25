"""Who may do what. Every service asks here before it does anything else; the API asks as well, before it reads a request's body.

A key opens what it names and nothing beside it. The narrowest name counts: a key of a peer or a session is none of the workspace's,
and one that names both is the session's. Whatever is refused raises `Unauthorised`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memservice.domain.auth.jwt_claims import Claims
from memservice.domain.errors import Unauthorised
from memservice.domain.filters import where
from memservice.domain.records import ACTIVE, PEER, NamedCollection, Peer, Session, Workspace
from memservice.services.auth.principal import Principal
from memservice.spi.storage import View

NOT_PERMISSIONED = "JWT not permissioned for this resource"
OTHER_RESOURCE = "Unauthorized access to resource"
ADMIN_ONLY = "Resource requires admin privileges"
BARE_WORKSPACE = "A key of a peer or a session creates its workspace by its id alone: send no metadata and no configuration"


def names_by_uid(claims: Claims) -> bool:
    """Does this key name things by uid, as those of the first generation do?"""
    return bool(claims.app_uid or claims.user_uid or claims.owned_session_uid or claims.collection_uid)


def translated(view: View, claims: Claims, collections: bool = False) -> Claims:
    """A first-generation key's claims as those of the present one: the narrowest thing that it names, and the workspace that this is in.

    Uids are unique everywhere, so none of them needs its parent beside it. One that stands for nothing (any more) opens nothing; a
    collection is something only where there are `collections`. Present names beside a uid narrow it further, as it does them; a key
    whose names contradict each other opens nothing.
    """
    peer = session = None
    if claims.collection_uid:
        found = view.rows.get(NamedCollection, where(uid=claims.collection_uid)) if collections else None
        key = None if found is None else found.workspace_key
    elif claims.owned_session_uid:
        session = view.rows.get(Session, where(uid=claims.owned_session_uid))
        key = None if session is None else session.workspace_key
    elif claims.user_uid:
        peer = view.rows.get(Peer, where(uid=claims.user_uid, kind=PEER))
        key = None if peer is None else peer.workspace_key
    else:
        app = view.rows.get(Workspace, where(uid=claims.app_uid))
        key = None if app is None else app.key
    workspace = None if key is None else view.workspaces.by_key(key)
    nothing = replace(claims, workspace=None, peer=None, session=None)
    if workspace is None or workspace.state != ACTIVE:
        return nothing
    both = replace(
        claims,
        workspace=workspace.slug,
        peer=claims.peer if peer is None else peer.slug,
        session=claims.session if session is None else session.slug,
    )
    given = ((claims.workspace, both.workspace), (claims.peer, both.peer), (claims.session, both.session))
    return nothing if any(name is not None and name != meant for name, meant in given) else both


def principal_of(claims: Claims | None) -> Principal:
    """Who shows these claims; those of the first generation are `translated` before. None: nobody is asked for a key, and everybody may do
    everything. Requests get their principal here and nowhere else."""
    if claims is None:
        return Principal(admin=True)
    return Principal(
        admin=claims.admin,
        workspace=claims.workspace,
        peer=claims.peer,
        session=claims.session,
        collection=claims.collection_uid,
        has_user_claim=bool(claims.user_uid),
    )


@dataclass(frozen=True, slots=True)
class Names:
    """What a path names, as keys name it: slugs, and a collection's uid. None where it names nothing that there is."""

    workspace: str | None = None
    peer: str | None = None
    session: str | None = None
    collection: str | None = None


def names_of(
    view: View, app: str | None = None, user: str | None = None, session: str | None = None, collection: str | None = None
) -> Names:
    """The names of what a path of generation 1 names by uid; nothing that lies in another workspace than the path says."""
    place = None if app is None else view.rows.get(Workspace, where(uid=app, state=ACTIVE))
    if place is None:
        return Names()
    peer = None if user is None else view.rows.get(Peer, where(uid=user, workspace_key=place.key, kind=PEER))
    room = None if session is None else view.rows.get(Session, where(uid=session, workspace_key=place.key))
    return Names(place.slug, None if peer is None else peer.slug, None if room is None else room.slug, collection)


def require_admin(who: Principal) -> None:
    if not who.admin:
        raise Unauthorised(ADMIN_ONLY)


def require(
    who: Principal,
    workspace: str,
    *,
    peer: str | None = None,
    session: str | None = None,
    member: bool = False,
    collection: str | None = None,
) -> None:
    """Something of the workspace: the whole of it, or a peer, session or collection in it, whose own key is let in then.

    With `member`, so is the key of a peer that `as_member` found in the session.
    """
    if who.admin:
        return
    if who.workspace is None or who.workspace != workspace:
        raise Unauthorised(NOT_PERMISSIONED)
    if who.collection is not None:
        allowed = who.collection == collection
    elif who.session is not None:
        allowed = who.session == session
    elif who.peer is not None:
        allowed = who.peer == peer or (member and session is not None and who.member_of == session)
    else:
        allowed = True
    if not allowed:
        raise Unauthorised(NOT_PERMISSIONED)


def require_collections(who: Principal) -> None:
    """Collections and documents are generation 1's, and its keys open them. To a key of a peer the later generations show no list of what
    is known, and let it store none of that; so neither does generation 1."""
    if who.is_peer and who.collection is None and not who.has_user_claim:
        raise Unauthorised(NOT_PERMISSIONED)


def require_key_of(who: Principal, workspace: str) -> None:
    """Any key of the workspace, however narrow: to get the workspace itself, and where the next rules decide."""
    if not who.admin and (who.workspace is None or who.workspace != workspace):
        raise Unauthorised(OTHER_RESOURCE)


def require_create_peer(who: Principal, workspace: str, peer: str) -> None:
    """To get or create a peer. A peer's key: itself. A session's key: any, since its messages create their authors too."""
    require_key_of(who, workspace)
    if who.is_peer and who.peer != peer:
        raise Unauthorised(OTHER_RESOURCE)


def may_update_peers(who: Principal) -> bool:
    """A session's key gets peers as they are: they are not the session's to change."""
    return not who.is_session


def may_update_sessions(who: Principal) -> bool:
    """On the way of getting or creating it, a narrow key gets a session that exists as it is: it is all its members'."""
    return not (who.is_peer or who.is_session)


def require_create_session(who: Principal, workspace: str, session: str, scopes: Sequence[str]) -> None:
    """To get or create a session. A session's key: itself. A peer's key: a new one, or (`require_memberships`) one it is in.

    Scopes see more than one session, so narrow keys add none.
    """
    require_key_of(who, workspace)
    if who.is_session and who.session != session:
        raise Unauthorised(OTHER_RESOURCE)
    if scopes:
        refuse_narrow(who)


def refuse_narrow(who: Principal) -> None:
    """What reaches beyond one peer or session, for instance the option `scope`, although the route is open to narrow keys."""
    if who.is_peer or who.is_session:
        raise Unauthorised(NOT_PERMISSIONED)


def require_bare_workspace(who: Principal, metadata: object, configuration: object) -> None:
    """A narrow key creates its workspace by the id alone: how the workspace is set up is not for one peer or session to say."""
    if (who.is_peer or who.is_session) and (metadata or configuration):
        raise Unauthorised(BARE_WORKSPACE)


def require_own_peer(who: Principal, peer: str) -> None:
    """What a peer's key may have of itself only, in a session that it may read."""
    if who.is_peer and who.peer != peer:
        raise Unauthorised(NOT_PERMISSIONED)


def require_sessions(who: Principal, sessions: Sequence[str]) -> None:
    """A session's key names sessions (by slug) of its workspace: there is but its own."""
    if who.is_session and not set(sessions) <= {who.session}:
        raise Unauthorised(NOT_PERMISSIONED)


def require_memberships(view: View, who: Principal, sessions: Sequence[str]) -> None:
    """A peer's key names sessions (by slug) of its workspace: it must be an active member of each."""
    if who.is_peer and not _is_member(view, who, sessions):
        raise Unauthorised(NOT_PERMISSIONED)


def as_member(view: View, who: Principal, session: str) -> Principal:
    """The principal, marked as a member of the session if its key is that of an active member."""
    return replace(who, member_of=session) if who.is_peer and _is_member(view, who, [session]) else who


def _is_member(view: View, who: Principal, sessions: Sequence[str]) -> bool:
    # A path may hold NUL, which some stores cannot look for and no name has.
    if not sessions or who.workspace is None or any("\0" in name for name in sessions):
        return not sessions
    peer = view.workspaces.locate(who.workspace, peer=who.peer).peer
    return peer is not None and view.members.active_among(peer.key, sessions) >= set(sessions)
