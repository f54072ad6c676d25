"""Answering questions: each holds one of the slots for slow answers until its last byte is
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
PEER_CLOSED = getattr(select, "POLLRDHUP", 0)
"""Linux reports it also while bytes of a next request are unread."""


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
    """A function that says whether the client of this request is still connected; always True on a
    WSGI server other than gunicorn. Any thread can call it.

    A client that has closed its side of the connection counts as gone. A network that fails
    silently is not noticed, and neither is a client behind a proxy that keeps its own connection.
    """
    connection: socket.socket | None = request.environ.get("gunicorn.socket")

    def waits() -> bool:
        if connection is None:
            return True
        try:
            poll = select.poll()
            poll.register(connection, select.POLLIN | PEER_CLOSED)
            events = [event for _, event in poll.poll(0)]
            if not events:
                return True
            if events[0] & PEER_CLOSED:
                return False
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
