"""Who may do what. Every service asks here before it does anything else; the API asks as well, before it reads a request's body.

A key opens what it names and nothing beside it. The narrowest name counts: a key of a peer or a session is none of the workspace's,
and one that names both is the session's. Whatever is refused raises `Unauthorised`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memservice.domain.errors import Unauthorised
from memservice.domain.jwt_claims import Claims
from memservice.services.principal import Principal
from memservice.spi.storage import View

NOT_PERMISSIONED = "JWT not permissioned for this resource"
OTHER_RESOURCE = "Unauthorized access to resource"
ADMIN_ONLY = "Resource requires admin privileges"


def principal_of(claims: Claims) -> Principal:
    """Who shows these claims, as generations 2 and 3 understand them. First-generation claims name nothing there."""
    return Principal(admin=claims.admin, workspace=claims.workspace, peer=claims.peer, session=claims.session)


def require_admin(who: Principal) -> None:
    if not who.admin:
        raise Unauthorised(ADMIN_ONLY)


def require(who: Principal, workspace: str, *, peer: str | None = None, session: str | None = None, member: bool = False) -> None:
    """Something of the workspace: the whole of it, or a peer or session in it, whose own key is let in then.

    With `member`, so is the key of a peer that `as_member` found in the session.
    """
    if who.admin:
        return
    if who.workspace is None or who.workspace != workspace:
        raise Unauthorised(NOT_PERMISSIONED)
    if who.session is not None:
        allowed = who.session == session
    elif who.peer is not None:
        allowed = who.peer == peer or (member and session is not None and who.member_of == session)
    else:
        allowed = True
    if not allowed:
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


def require_own_peer(who: Principal, peer: str) -> None:
    """What a peer's key may have of itself only, in a session that it may read."""
    if who.is_peer and who.peer != peer:
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
