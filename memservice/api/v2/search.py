"""Search for messages."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Response

from memservice.api.answers import json_answer
from memservice.api.auth import RouteAccess
from memservice.api.encoding import encoder
from memservice.api.routing import Call
from memservice.api.schema import page_of
from memservice.api.v2 import client
from memservice.api.v2.routes import Routes
from memservice.api.v2.schemas.messages import SearchBody
from memservice.api.v3.schemas.messages import Message as MessageShape
from memservice.api.v3.schemas.queries import PageQuery
from memservice.domain.records import Message
from memservice.services.paging import Page
from memservice.services.retrieval import search
from memservice.services.retrieval.search import SearchOptions

routes = Routes("search", "Search for messages.")

_WORKSPACE = "/v2/workspaces/<workspace_id>"
_MAX_PAGED = 100
"""Maximum number of messages in a paged search."""

_encode_page = encoder(page_of(MessageShape))


@routes.operation(
    "POST",
    _WORKSPACE + "/search",
    reads=True,
    access=RouteAccess(workspace="workspace_id"),
    query=PageQuery,
    body=SearchBody(),
    answer=MessageShape,
    many=True,
)
def search_workspace(call: Call, workspace_id: str) -> Sequence[Message] | Response:
    """Search a workspace's messages

    Best first.
    """
    return _search(call, workspace_id)


@routes.operation(
    "POST",
    _WORKSPACE + "/peers/<peer_id>/search",
    reads=True,
    access=RouteAccess(workspace="workspace_id", peer="peer_id"),
    query=PageQuery,
    body=SearchBody(),
    answer=MessageShape,
    many=True,
)
def search_peer(call: Call, workspace_id: str, peer_id: str) -> Sequence[Message] | Response:
    """Search the messages that a peer wrote

    Best first.
    """
    return _search(call, workspace_id, peer_id=peer_id)


@routes.operation(
    "POST",
    _WORKSPACE + "/sessions/<session_id>/search",
    reads=True,
    access=RouteAccess(workspace="workspace_id", session="session_id", member=True),
    query=PageQuery,
    body=SearchBody(),
    answer=MessageShape,
    many=True,
)
def search_session(call: Call, workspace_id: str, session_id: str) -> Sequence[Message] | Response:
    """Search a session's messages

    Best first.
    """
    return _search(call, workspace_id, session_id=session_id)


def _search(
    call: Call, workspace_id: str, peer_id: str | None = None, session_id: str | None = None
) -> Sequence[Message] | Response:
    """The best messages; as a page for the first clients, which send only the text or expect
    pages."""
    body = call.body
    paged = body["bare"] or client.current().is_early
    limit = _MAX_PAGED if paged else body["limit"]
    messages = search.search(
        call.rt,
        call.principal,
        workspace_id,
        SearchOptions(body["query"], limit, body["filters"]),
        session_id=session_id,
        peer_id=peer_id,
    )
    if not paged:
        return messages
    number, size = call.query["page"], call.query["size"]
    items = messages[(number - 1) * size : number * size]
    return json_answer(
        _encode_page(Page(items, len(messages), number, size), {"workspace_id": workspace_id})
    )
