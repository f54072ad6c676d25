"""Chat."""

from __future__ import annotations

from flask import Response

from memservice.api.answering import caller_connected, respond_json, respond_stream
from memservice.api.routing import Call
from memservice.api.streaming import text_stream
from memservice.api.v1 import paths, schemas, sessions
from memservice.services.chat.chat import Answer
from memservice.services.v1 import chat
from memservice.services.v1.resolve import Path

routes = sessions.routes


@routes.operation(
    "POST",
    paths.SESSION + "/chat",
    access=paths.OF_SESSION,
    body=schemas.DialecticOptions,
    large=True,
    answer=schemas.DialecticResponse,
    stream=True,
)
def chat_with_user(call: Call, app_id: str, user_id: str, session_id: str) -> Response:
    """Ask about the user

    Several questions get one answer. With `stream` the answer is streamed as plain text.
    """
    path, queries = Path(app_id, user_id, session_id), call.body["queries"]

    def ask() -> Answer | None:
        return chat.ask(
            call.rt, call.principal, path, queries, call.body["stream"], caller_connected()
        )

    if call.body["stream"]:
        return respond_stream(
            ask, lambda answer: text_stream(chat.pieces(answer), "text/event-stream")
        )
    return respond_json(ask, lambda answer: {"content": chat.content(answer)})
