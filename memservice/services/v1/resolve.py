"""What the uids in a path stand for, and whether the caller may have it."""

from __future__ import annotations

from dataclasses import dataclass

from memservice.domain.errors import NotFound, Unauthorised
from memservice.domain.filters import Condition, all_of, equals
from memservice.domain.filters.ast import Any_
from memservice.domain.records import ACTIVE, DELETING, PEER, Peer, Session, Workspace
from memservice.runtime import Runtime
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.v1 import keys
from memservice.spi.storage import Transaction

ASSISTANT = "assistant"
"""The role that marks the peer by which `is_user: false` is said."""

USERS = equals(kind=PEER, v1_role=None)
"""The peers that generation 1 shows: no scopes, and not the assistant."""


@dataclass(frozen=True, slots=True)
class Path:
    """The uids in a path."""

    app: str
    user: str | None = None
    session: str | None = None
    collection: str | None = None


def no_app(uid: str) -> NotFound:
    return NotFound(f"App with ID {uid} not found")


def no_user(uid: str) -> NotFound:
    return NotFound(f"User with ID '{uid}' not found")


def no_session() -> NotFound:
    return NotFound("Session not found or does not belong to user")


def authorise(tx: Transaction, principal: Principal, path: Path) -> None:
    """The key of the app, or of the user, session or collection that the path names."""
    if not principal.admin:
        names = keys.names_of(tx, path.app, path.user, path.session, path.collection)
        policy.require(
            principal,
            names.workspace or "",
            peer_id=names.peer,
            session_id=names.session,
            collection=names.collection,
        )


def authorise_collections(tx: Transaction, principal: Principal, path: Path) -> None:
    """As `authorise`, for what is in collections."""
    authorise(tx, principal, path)
    policy.require_collections(principal)


def app_of(tx: Transaction, uid: str, *, lock: bool = False) -> Workspace | None:
    return tx.rows.get(Workspace, equals(uid=uid, state=ACTIVE), lock=lock)


def find_user(tx: Transaction, path: Path) -> tuple[Workspace, Peer] | None:
    """The path's app and user, if there are both."""
    workspace = app_of(tx, path.app)
    user = (
        None
        if workspace is None or path.user is None
        else tx.rows.get(Peer, all_of(equals(uid=path.user, workspace_key=workspace.key), USERS))
    )
    return None if workspace is None or user is None else (workspace, user)


def require_user(tx: Transaction, path: Path) -> tuple[Workspace, Peer]:
    found = find_user(tx, path)
    if found is None:
        raise no_user(path.user or "")
    return found


def sessions_of(rt: Runtime, tx: Transaction, user: Peer) -> Condition:
    """The sessions that generation 1 shows as the user's: its own, and (unless the operator hides
    them) those that the other generations made and that the user is a member of now."""
    own = equals(owner_key=user.key)
    if not rt.settings.api.v1_shared_sessions:
        return own
    joined = tuple(member.session_key for member in tx.members.of_peer(user.key, active=True))
    return Any_((own, all_of(equals(owner_key=None), equals(key=joined)))) if joined else own


def find_session(
    rt: Runtime,
    tx: Transaction,
    principal: Principal,
    user: Peer,
    uid: str | None,
    *,
    lock: bool = False,
) -> Session | None:
    """The user's session of that uid, in any state. For the user's own key it is so only while the
    user is in it, also if it is its own: what is said there after the user left is not for it."""
    session = (
        None
        if uid is None
        else tx.rows.get(Session, equals(uid=uid, workspace_key=user.workspace_key), lock=lock)
    )
    if session is None or (session.owner_key == user.key and not principal.is_peer):
        return session
    if session.owner_key not in (None, user.key) or (
        session.owner_key is None and not rt.settings.api.v1_shared_sessions
    ):
        return None
    member = tx.members.one(session.key, user.key)
    return session if member is not None and member.left_at is None else None


def require_session(
    rt: Runtime, tx: Transaction, principal: Principal, user: Peer, uid: str | None
) -> Session:
    """The user's session, its row held, for writing to it: active or archived."""
    session = find_session(rt, tx, principal, user, uid, lock=True)
    if session is None or session.state == DELETING:
        raise no_session()
    require_own(principal, session)
    return session


def require_own(principal: Principal, session: Session) -> None:
    """A user's key may do anything to a session of the user's own. One that the later generations
    made is all its members', and a key of one of them may read it, as it may there."""
    if session.owner_key is None and principal.is_peer:
        raise Unauthorised(policy.NOT_PERMISSIONED)


def requested_id(given: str | None, from_key: str | None, subject: str) -> str:
    """The id that a look-up is about: the one that was given, else the key's own."""
    wanted = given or from_key
    if not wanted:
        raise Unauthorised(f"{subject} ID not found in query parameter or JWT")
    return wanted
