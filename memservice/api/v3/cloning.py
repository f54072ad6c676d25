"""Cloning of sessions. The operation belongs to the group of sessions."""

from __future__ import annotations

from memservice.api.auth import RouteAccess
from memservice.api.routing import Call
from memservice.api.v3 import sessions
from memservice.api.v3.schemas.queries import CloneQuery
from memservice.api.v3.schemas.sessions import Session as SessionShape
from memservice.domain.records import Session
from memservice.services import cloning

routes = sessions.routes


@routes.operation(
    "POST",
    "/v3/workspaces/<workspace_id>/sessions/<session_id>/clone",
    access=RouteAccess(workspace="workspace_id", session="session_id"),
    query=CloneQuery,
    answer=SessionShape,
    status=(201,),
)
def clone_session(call: Call, workspace_id: str, session_id: str) -> Session:
    """Clone a session

    The clone gets a new id, and the metadata, configuration, peers and messages of the session:
    with `message_id` those up to and including that message. Conclusions and summaries are not
    copied.
    """
    return cloning.clone(
        call.rt, call.principal, workspace_id, session_id, call.query["message_id"]
    )
