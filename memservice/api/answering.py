"""Answering questions: each holds one of the places for slow answers until its last byte was
sent."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from typing import Any, TypeVar

from flask import Response, current_app, request

from memservice.api.answers import json_answer
from memservice.api.routing import EXTENSION
from memservice.api.streaming import Slots

T = TypeVar("T")

NOTICE = "X-Memservice-Notice"
"""Header: how an answer was made, if not as configured."""
MAX_NOTICE = 500
"""Characters."""


def answered(ask: Callable[[], T], whole: Callable[[T], Any]) -> Response:
    """The answer as JSON, made by `whole` when it is complete."""
    give_back = _slot()
    try:
        answer = ask()
        response = json_answer(whole(answer))
        _notify(response, answer)
        return response
    finally:
        give_back()


def streamed(ask: Callable[[], T], stream: Callable[[T], Response]) -> Response:
    """The answer as it comes, sent by `stream`. It gives up its place when it is closed."""
    give_back = _slot()
    try:
        answer = ask()
        response = stream(answer)
        _notify(response, answer)
    except BaseException:
        give_back()
        raise
    response.call_on_close(give_back)
    return response


def caller_waits() -> Callable[[], bool]:
    """A function that says whether the caller of this request is still connected; True where the
    server does not say how it is."""
    connection: socket.socket | None = request.environ.get("gunicorn.socket")

    def waits() -> bool:
        if connection is None:
            return True
        try:
            poll = select.poll()
            poll.register(connection, select.POLLIN)
            if not poll.poll(0):
                return True
            return socket.socket.recv(connection, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except (OSError, ValueError):
            return False

    return waits


def _notify(response: Response, answer: object) -> None:
    """Say beside the answer how it was made. A header is one line of ASCII."""
    notice = getattr(answer, "notice", None)
    if notice:
        line = " ".join(str(notice).split())[:MAX_NOTICE]
        response.headers[NOTICE] = line.encode("ascii", "replace").decode()


def _slot() -> Callable[[], None]:
    slots: Slots = current_app.extensions[EXTENSION].slots
    return slots.take()
