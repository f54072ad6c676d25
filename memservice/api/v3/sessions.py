"""Sessions, their context and their summaries."""

from __future__ import annotations

from flask import Response
from msgspec import Struct

from memservice.api.auth import RouteAccess
from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v3.explaining import HEADERS, respond_search
from memservice.api.v3.members import member_configs
from memservice.api.v3.peers import max_conclusions
from memservice.api.v3.schemas import sessions as schemas
from memservice.api.v3.schemas.explanations import ExplainedMessage
from memservice.api.v3.schemas.messages import MessageSearchOptions
from memservice.api.v3.schemas.queries import PageQuery, SessionContextQuery, SessionGet
from memservice.domain.records import LONG, SHORT, Session, Summary
from memservice.services import sessions
from memservice.services.paging import Page
from memservice.services.retrieval import context
from memservice.services.retrieval.context import SessionContext, SessionContextOptions
from memservice.services.sessions import SessionFields

routes = Routes(
    "sessions", "Sessions are conversations: messages in order, and the peers that take part."
)

_SESSIONS = "/v3/workspaces/<workspace_id>/sessions"
_SESSION = _SESSIONS + "/<session_id>"
_OWN = RouteAccess(workspace="workspace_id", session="session_id")
_READ = RouteAccess(workspace="workspace_id", session="session_id", member=True)


class Summaries(Struct, frozen=True):
    short: Summary | None
    long: Summary | None


@routes.operation(
    "POST",
    _SESSIONS,
    access=RouteAccess(workspace="workspace_id", handler=True),
    body=schemas.SessionCreate,
    answer=schemas.Session,
    status=(200, 201),
)
def get_or_create_session(call: Call, workspace_id: str) -> tuple[Session, int]:
    """Get a session, or create it

    For an existing session, metadata is replaced, configuration is merged section by section, and
    peers are added, if they are set. A missing workspace and missing peers are created. With the
    key of a peer or a session, an existing session does not change.
    """
    body = call.body
    fields = SessionFields(
        body["metadata"],
        body["configuration"],
        member_configs(body["peers"] or {}),
        body["scopes"] or (),
    )
    session, created = sessions.get_or_create(
        call.rt, call.principal, workspace_id, body["id"], fields
    )
    return session, 201 if created else 200


@routes.operation(
    "POST",
    _SESSIONS + "/list",
    reads=True,
    access=RouteAccess(workspace="workspace_id"),
    query=PageQuery,
    body=SessionGet,
    body_optional=True,
    answer=page_of(schemas.Session),
)
def list_sessions(call: Call, workspace_id: str) -> Page[Session]:
    """List a workspace's active sessions"""
    return sessions.page(
        call.rt, call.principal, workspace_id, call.body["filters"], paging(call.query)
    )


@routes.operation("PUT", _SESSION, access=_OWN, body=schemas.SessionUpdate, answer=schemas.Session)
def update_session(call: Call, workspace_id: str, session_id: str) -> Session:
    """Change a session's metadata and configuration

    Metadata is replaced, configuration is merged section by section; a field that is null or absent
    does not change. A missing session is created.
    """
    return sessions.update(
        call.rt,
        call.principal,
        workspace_id,
        session_id,
        call.body["metadata"],
        call.body["configuration"],
    )


@routes.operation(
    "GET",
    _SESSION + "/context",
    access=_READ,
    query=SessionContextQuery,
    answer=schemas.SessionContext,
)
def get_session_context(call: Call, workspace_id: str, session_id: str) -> SessionContext:
    """Get the context of a session for a prompt

    The newest messages that fit into `tokens`, a summary of the earlier ones and, with
    `peer_target`, the representation and card of that peer.
    """
    query = call.query
    options = SessionContextOptions(
        tokens=call.rt.settings.app.get_context_max_tokens
        if query["tokens"] is None
        else query["tokens"],
        summary=query["summary"],
        search_query=query["search_query"],
        peer_target=query["peer_target"] or None,
        peer_perspective=query["peer_perspective"] or None,
        scope=query["scope"] or None,
        sessions=query["sessions"],
        limit_to_session=query["limit_to_session"],
        search_top_k=query["search_top_k"],
        search_max_distance=query["search_max_distance"],
        include_most_frequent=query["include_most_frequent"],
        max_conclusions=max_conclusions(call, query["max_conclusions"]),
        as_of=query["as_of"],
    )
    return context.of_session(call.rt, call.principal, workspace_id, session_id, options)


@routes.operation("GET", _SESSION + "/summaries", access=_READ, answer=schemas.SessionSummaries)
def get_session_summaries(call: Call, workspace_id: str, session_id: str) -> Summaries:
    """Get a session's newest summaries"""
    summaries = sessions.summaries(call.rt, call.principal, workspace_id, session_id)
    return Summaries(summaries.get(SHORT), summaries.get(LONG))


@routes.operation(
    "POST",
    _SESSION + "/search",
    reads=True,
    access=_READ,
    body=MessageSearchOptions,
    answer=ExplainedMessage,
    many=True,
    answer_headers=HEADERS,
)
def search_session(call: Call, workspace_id: str, session_id: str) -> Response:
    """Search a session's messages

    Best first. With `explain`, each has the parts of its score.
    """
    return respond_search(call, workspace_id, session_id=session_id)
