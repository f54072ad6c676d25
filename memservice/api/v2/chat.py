"""Chat: questions about a peer."""

from __future__ import annotations

from typing import Any

from flask import Response

from memservice.api import v3
from memservice.api.answering import respond_json, respond_stream
from memservice.api.auth import RouteAccess
from memservice.api.routing import Call
from memservice.api.streaming import event_stream, text_stream
from memservice.api.v2 import client
from memservice.api.v2.routes import Routes
from memservice.api.v2.schemas import peers as schemas
from memservice.services.chat import chat
from memservice.services.chat.chat import Answer

routes = Routes("chat", "Questions in natural language, answered from memory.")

NO_ANSWER = "None"
"""The answer of this generation if there is no text."""

_LAST: dict[str, Any] = {"delta": {"content": None}, "done": True}


@routes.operation(
    "POST",
    "/v2/workspaces/<workspace_id>/peers/<peer_id>/chat",
    access=RouteAccess(workspace="workspace_id", peer="peer_id"),
    body=schemas.DialecticOptions,
    answer=schemas.ChatResponse,
    stream=True,
)
def chat_with_peer(call: Call, workspace_id: str, peer_id: str) -> Response:
    """Ask what a peer knows about itself, or about `target`

    With `stream` the answer is a stream of server-sent events: pieces in `delta.content`, then one
    event with `done: true`. A stream without that last event has failed.
    """
    body = call.body

    def ask() -> Answer:
        return chat.ask_peer(
            call.rt, call.principal, workspace_id, peer_id, v3.chat.options_of_peer(body)
        )

    if not body["stream"]:
        return respond_json(ask, lambda answer: {"content": answer.content() or NO_ANSWER})
    if body["early"] or client.current().is_early:
        return respond_stream(ask, lambda answer: text_stream(answer.pieces()))
    return respond_stream(ask, lambda answer: event_stream(answer.pieces(), lambda: _LAST))
