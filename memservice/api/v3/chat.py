"""Chat: questions about a peer, or about a whole workspace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flask import Response

from memservice.api.answering import caller_connected, respond_json, respond_stream
from memservice.api.auth import RouteAccess
from memservice.api.encoding import encoder
from memservice.api.routing import Call, Routes
from memservice.api.streaming import event_stream
from memservice.api.v3.schemas import chat as schemas
from memservice.services.chat import chat
from memservice.services.chat.chat import Answer, ChatOptions

routes = Routes("chat", "Questions in natural language, answered from memory.")

_WORKSPACE = "/v3/workspaces/<workspace_id>"

_encode_evidence = encoder(schemas.Evidence)


@routes.operation(
    "POST",
    _WORKSPACE + "/peers/<peer_id>/chat",
    access=RouteAccess(workspace="workspace_id", peer="peer_id"),
    body=schemas.DialecticOptions,
    answer=schemas.ChatResponse,
    stream=True,
)
def chat_with_peer(call: Call, workspace_id: str, peer_id: str) -> Response:
    """Ask what a peer knows about itself, or about `target`

    With `stream` the answer is a stream of server-sent events: pieces in `delta.content`, then one
    event with `done: true`. A stream without that last event has failed. `response_format` is a
    JSON Schema with an object at its root; the answer is then JSON.
    """
    options = options_of_peer(call.body)
    return _respond(
        call.body, lambda: chat.ask_peer(call.rt, call.principal, workspace_id, peer_id, options)
    )


def options_of_peer(body: Mapping[str, Any]) -> ChatOptions:
    return _options(body, target=body["target"] or None, filters=body["filters"])


@routes.operation(
    "POST",
    _WORKSPACE + "/chat",
    access=RouteAccess(workspace="workspace_id"),
    body=schemas.WorkspaceChatOptions,
    answer=schemas.ChatResponse,
    stream=True,
)
def chat_with_workspace(call: Call, workspace_id: str) -> Response:
    """Ask about the whole memory of a workspace

    `session_id` limits the messages that are used, `scope` messages and conclusions. The response
    is the same as that of a peer's chat.
    """
    options = _options(call.body)
    return _respond(
        call.body, lambda: chat.ask_workspace(call.rt, call.principal, workspace_id, options)
    )


def _options(body: Mapping[str, Any], **options: Any) -> ChatOptions:
    return ChatOptions(
        query=body["query"],
        session=body["session_id"] or None,
        scope=body["scope"],
        level=body["reasoning_level"],
        response_format=body["response_format"],
        stream=body["stream"],
        is_wanted=caller_connected(),
        as_of=body["as_of"],
        **options,
    )


def _respond(body: Mapping[str, Any], ask: Callable[[], Answer]) -> Response:
    """The answer, complete or as a stream."""

    def evidence(answer: Answer) -> dict[str, Any]:
        return (
            {"evidence": _encode_evidence(answer.evidence, {})} if body["include_evidence"] else {}
        )

    if body["stream"]:
        return respond_stream(
            ask,
            lambda answer: event_stream(
                answer.pieces(), lambda: {"done": True, **evidence(answer)}
            ),
        )
    return respond_json(ask, lambda answer: {"content": answer.content(), **evidence(answer)})
