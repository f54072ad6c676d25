"""Responses to questions: each occupies a slot for slow responses until its last byte is sent."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from flask import Response, current_app, request

from memservice.api.answers import json_answer
from memservice.api.routing import EXTENSION
from memservice.api.streaming import Slots

T = TypeVar("T")

NOTICE = "X-Memservice-Notice"
"""Header with the reason if an answer was not generated as configured."""
MAX_NOTICE = 500
"""Maximum number of characters."""
PEER_CLOSED = getattr(select, "POLLRDHUP", 0)
"""Linux reports it also while bytes of a next request are unread."""


def respond_json(ask: Callable[[], T], body_of: Callable[[T], Any]) -> Response:
    """The complete answer as JSON, built by `body_of`."""
    release_slot = _slot()
    try:
        answer = ask()
        response = json_answer(body_of(answer))
        _notify(response, answer)
        return response
    finally:
        release_slot()


def respond_stream(ask: Callable[[], T], stream: Callable[[T], Response]) -> Response:
    """The answer as a stream, sent by `stream`. Closing it releases its slot."""
    release_slot = _slot()
    try:
        answer = ask()
        response = stream(answer)
        _notify(response, answer)
    except BaseException:
        release_slot()
        raise
    response.call_on_close(release_slot)
    return response


def respond_file(ask: Callable[[], Iterator[bytes]], name: str, mimetype: str) -> Response:
    """A download with this file name, sent piece by piece. Closing it releases its slot."""

    def download(pieces: Iterator[bytes]) -> Response:
        response = Response(pieces, mimetype=mimetype)
        response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
        response.headers["Cache-Control"] = "no-store"
        return response

    return respond_stream(ask, download)


def caller_connected() -> Callable[[], bool]:
    """A function that returns whether the client of this request is still connected; always True on
    a WSGI server other than gunicorn. Any thread can call it.

    A client that has closed its side of the connection counts as disconnected. A silent network
    failure is not detected, nor is a client behind a proxy that keeps its own connection open.
    """
    connection: socket.socket | None = request.environ.get("gunicorn.socket")

    def is_connected() -> bool:
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

    return is_connected


def _notify(response: Response, answer: object) -> None:
    """Add the notice about the answer as a header, which is one line of ASCII."""
    notice = getattr(answer, "notice", None)
    if notice:
        line = " ".join(str(notice).split())[:MAX_NOTICE]
        response.headers[NOTICE] = line.encode("ascii", "replace").decode()


def _slot() -> Callable[[], None]:
    slots: Slots = current_app.extensions[EXTENSION].slots
    return slots.take()
