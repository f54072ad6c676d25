"""Sessions, their peers, their context and their summaries."""

from __future__ import annotations

from flask import Response

from memservice.api import v3
from memservice.api.answers import empty_answer, json_answer
from memservice.api.auth import RouteAccess
from memservice.api.encoding import encoder
from memservice.api.routing import Call
from memservice.api.schema import page_of
from memservice.api.v2 import client, representation
from memservice.api.v2.representation import OfSession
from memservice.api.v2.routes import Routes
from memservice.api.v2.schemas import peers as peer_schemas
from memservice.api.v2.schemas import workspaces as schemas
from memservice.api.v3.schemas import sessions as newest
from memservice.api.v3.schemas.configuration import SessionPeerConfig
from memservice.api.v3.schemas.queries import CloneQuery
from memservice.domain.records import Session

routes = Routes(
    "sessions", "Sessions are conversations: messages in order, and the peers that take part."
)

_SESSION = "/v2/workspaces/<workspace_id>/sessions/<session_id>"
_OWN = RouteAccess(workspace="workspace_id", session="session_id")
_READ = RouteAccess(workspace="workspace_id", session="session_id", member=True)
_NEWEST = v3.sessions.routes
_MEMBERS = v3.members.routes

_encode_text = encoder(newest.SessionContext)
_encode_early = encoder(peer_schemas.EarlySessionContext)

routes.as_newest(
    _NEWEST, v3.sessions.get_or_create_session, body=schemas.SessionCreate, answer=schemas.Session
)
routes.as_newest(
    _NEWEST, v3.sessions.list_sessions, body=schemas.SessionGet, answer=page_of(schemas.Session)
)
routes.as_newest(
    _NEWEST, v3.sessions.update_session, body=schemas.SessionUpdate, answer=schemas.Session
)
routes.as_newest(_NEWEST, v3.deletion.delete_session)
routes.as_newest(_NEWEST, v3.sessions.get_session_summaries)
routes.as_newest(_MEMBERS, v3.members.add_session_peers, answer=schemas.Session)
routes.as_newest(_MEMBERS, v3.members.set_session_peers, answer=schemas.Session)
routes.as_newest(_MEMBERS, v3.members.remove_session_peers, answer=schemas.Session)
routes.as_newest(_MEMBERS, v3.members.list_session_peers)
routes.as_newest(_MEMBERS, v3.members.get_session_peer_config)
routes.as_newest(_MEMBERS, v3.members.set_session_peer_config)


@routes.operation("POST", _SESSION + "/peers/<peer_id>/config", access=_OWN, body=SessionPeerConfig)
def set_peer_config(call: Call, workspace_id: str, session_id: str, peer_id: str) -> Response:
    """Change the options of a peer in a session

    Fields that are null or absent do not change. A peer that was never in the session joins it.
    """
    v3.members.set_session_peer_config(call, workspace_id, session_id, peer_id)
    return empty_answer(200)


routes.as_newest(_NEWEST, v3.cloning.clone_session, answer=schemas.Session)


@routes.operation(
    "GET", _SESSION + "/clone", access=_OWN, writes=True, query=CloneQuery, answer=schemas.Session
)
def clone_session_by_get(call: Call, workspace_id: str, session_id: str) -> Session:
    """Clone a session

    Like `POST`, which is preferable.
    """
    return v3.cloning.clone_session(call, workspace_id, session_id)


@routes.operation(
    "GET",
    _SESSION + "/context",
    access=_READ,
    query=peer_schemas.SessionContextQuery,
    answer=peer_schemas.SessionContext,
)
def get_session_context(call: Call, workspace_id: str, session_id: str) -> OfSession | Response:
    """Get the context of a session for a prompt

    The newest messages that fit into `tokens`, a summary of the earlier ones and, with
    `peer_target`, the representation and card of that peer.
    """
    context = v3.sessions.get_session_context(call, workspace_id, session_id)
    path = {"workspace_id": workspace_id, "session_id": session_id}
    if client.current().is_early:
        return json_answer(_encode_early(representation.early(context), path))
    return (
        json_answer(_encode_text(context, path))
        if client.current().reads_text
        else representation.of_session(context)
    )
