"""Sessions."""

from __future__ import annotations

from msgspec import Struct

from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v1 import paths, schemas
from memservice.api.v3.schemas.queries import PageQuery
from memservice.domain.records import Session
from memservice.services.paging import Page
from memservice.services.v1 import sessions
from memservice.services.v1.resolve import Path

routes = Routes("sessions", "Sessions are conversations of one user.", "v1")


class Done(Struct, frozen=True):
    message: str


@routes.operation(
    "POST", paths.SESSIONS, access=paths.OF_USER, body=schemas.SessionCreate, answer=schemas.Session
)
def create_session(call: Call, app_id: str, user_id: str) -> Session:
    """Create a session"""
    return sessions.create(call.rt, call.principal, Path(app_id, user_id), call.body["metadata"])


@routes.operation(
    "GET", paths.SESSIONS, access=paths.LOOK_UP, query=schemas.SessionQuery, answer=schemas.Session
)
def get_session(call: Call, app_id: str, user_id: str) -> Session:
    """Get the session with this id, or the session of the key"""
    return sessions.get(call.rt, call.principal, Path(app_id, user_id), call.query["session_id"])


@routes.operation(
    "POST",
    paths.SESSIONS + "/list",
    reads=True,
    access=paths.OF_USER,
    query=PageQuery,
    body=schemas.SessionGet,
    body_optional=True,
    answer=page_of(schemas.Session),
)
def get_sessions(call: Call, app_id: str, user_id: str) -> Page[Session]:
    """List a user's sessions: all, or with `is_active` only those that are not deleted"""
    body = call.body
    return sessions.page(
        call.rt,
        call.principal,
        Path(app_id, user_id),
        body["filter"],
        body["is_active"],
        paging(call.query),
    )


@routes.operation(
    "PUT",
    paths.SESSION,
    access=paths.OF_SESSION,
    body=schemas.SessionUpdate,
    answer=schemas.Session,
)
def update_session(call: Call, app_id: str, user_id: str, session_id: str) -> Session:
    """Replace a session's metadata"""
    return sessions.update(
        call.rt, call.principal, Path(app_id, user_id, session_id), call.body["metadata"]
    )


@routes.operation("DELETE", paths.SESSION, access=paths.OF_SESSION, answer=schemas.Deleted)
def delete_session(call: Call, app_id: str, user_id: str, session_id: str) -> Done:
    """Mark a session as no longer active

    It can still be read and written here; the later generations of the API do not show it any more.
    """
    sessions.archive(call.rt, call.principal, Path(app_id, user_id, session_id))
    return Done("Session deleted successfully")


@routes.operation(
    "GET",
    paths.SESSION + "/clone",
    access=paths.OF_SESSION,
    writes=True,
    query=schemas.CloneQuery,
    answer=schemas.Session,
)
def clone_session(call: Call, app_id: str, user_id: str, session_id: str) -> Session:
    """Copy a session, up to and including `message_id`; with `deep_copy` also its metamessages"""
    query = call.query
    return sessions.clone(
        call.rt,
        call.principal,
        Path(app_id, user_id, session_id),
        query["message_id"] or None,
        query["deep_copy"],
    )
