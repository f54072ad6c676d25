"""Resolution of the uids in a path, and the authorisation for them."""

from __future__ import annotations

from msgspec import Struct

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
"""The role of the peer that is the author of messages with `is_user: false`."""

USERS = equals(kind=PEER, v1_role=None)
"""The peers that generation 1 shows: neither scopes nor the assistant."""


class Path(Struct, frozen=True):
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
    """Require the key of the app, or of the user, session or collection in the path."""
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
    """Like `authorise`, for documents and collections."""
    authorise(tx, principal, path)
    policy.require_collections(principal)


def app_of(tx: Transaction, uid: str, *, lock: bool = False) -> Workspace | None:
    return tx.rows.get(Workspace, equals(uid=uid, state=ACTIVE), lock=lock)


def find_user(tx: Transaction, path: Path) -> tuple[Workspace, Peer] | None:
    """The path's app and user, if both exist."""
    workspace = app_of(tx, path.app)
    user = (
        None
        if workspace is None or path.user is None
        else tx.rows.get(Peer, all_of(equals(uid=path.user, workspace_key=workspace.key), USERS))
    )
    return None if workspace is None or user is None else (workspace, user)


def require_user(tx: Transaction, path: Path) -> tuple[Workspace, Peer]:
    match = find_user(tx, path)
    if match is None:
        raise no_user(path.user or "")
    return match


def sessions_of(rt: Runtime, tx: Transaction, user: Peer) -> Condition:
    """Condition for the sessions that generation 1 shows as the user's: its own, and, unless the
    operator hides them, those of the other generations that the user is a member of now."""
    owned = equals(owner_key=user.key)
    if not rt.settings.api.v1_shared_sessions:
        return owned
    joined = tuple(member.session_key for member in tx.members.of_peer(user.key, active=True))
    return Any_((owned, all_of(equals(owner_key=None), equals(key=joined)))) if joined else owned


def find_session(
    rt: Runtime,
    tx: Transaction,
    principal: Principal,
    user: Peer,
    uid: str | None,
    *,
    lock: bool = False,
) -> Session | None:
    """The user's session with that uid, in any state. With the user's own key only while the user
    is a member, even of its own session: later messages are not readable."""
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
    """The user's session, its row locked, for writing to it: active or archived."""
    session = find_session(rt, tx, principal, user, uid, lock=True)
    if session is None or session.state == DELETING:
        raise no_session()
    require_own(principal, session)
    return session


def require_own(principal: Principal, session: Session) -> None:
    """A user's key may change the user's own sessions. A session of the later generations belongs
    to all its members, and a member's key may only read it."""
    if session.owner_key is None and principal.is_peer:
        raise Unauthorised(policy.NOT_PERMISSIONED)


def requested_id(requested: str | None, from_key: str | None, subject: str) -> str:
    """The requested id, else the one of the key."""
    uid = requested or from_key
    if not uid:
        raise Unauthorised(f"{subject} ID not found in query parameter or JWT")
    return uid
