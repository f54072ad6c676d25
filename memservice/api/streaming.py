"""Slow responses: a limit on their number, and streaming (server-sent events)."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from flask import Response

from memservice.domain.errors import Busy
from memservice.domain.failures import error_types, redacted_traceback
from memservice.spi.llm import ModelFailure

log = logging.getLogger("memservice.api")

RETRY_AFTER_SECONDS = 2


class Slots:
    """Slots for slow responses in one process: half of its threads, so that other requests always
    find one."""

    def __init__(self, threads: int) -> None:
        self._free = threading.BoundedSemaphore(max(1, threads // 2))

    def take(self) -> Callable[[], None]:
        """Take a slot. Returns the function that releases it, which may be called repeatedly.
        Raises `Busy` if there is none."""
        if not self._free.acquire(blocking=False):
            raise Busy(
                "This process is already answering its maximum number of questions: try again soon",
                RETRY_AFTER_SECONDS,
            )
        release_lock = threading.Lock()

        def release() -> None:
            if release_lock.acquire(blocking=False):
                self._free.release()

        return release


class StreamBroken(Exception):
    """Ends a response that cannot be finished. The server closes the connection, so that the
    response does not look complete."""


def event_stream(pieces: Iterator[str], last: Callable[[], Mapping[str, Any]]) -> Response:
    """Send pieces of text as events as they arrive, then the final event from `last`.

    Waits for the first piece: an error before it becomes an ordinary error response. A later error
    ends the stream without a final event.
    """
    return _stream_response(_events(_after_first(pieces), last), "text/event-stream")


def text_stream(pieces: Iterator[str], mimetype: str = "text/plain") -> Response:
    """Like `event_stream`, but as plain text, without a final event."""
    return _stream_response(_texts(_after_first(pieces)), mimetype)


def _stream_response(chunks: Iterator[bytes], mimetype: str) -> Response:
    answer = Response(chunks, mimetype=mimetype)
    answer.headers["Cache-Control"] = "no-cache"
    answer.headers["X-Accel-Buffering"] = "no"
    return answer


def _after_first(pieces: Iterator[str]) -> Iterator[str]:
    """The same pieces, after the first has arrived."""
    return chain(list(_first(pieces)), pieces)


def _first(pieces: Iterator[str]) -> Iterator[str]:
    for piece in pieces:
        yield piece
        return


def _events(pieces: Iterator[str], last: Callable[[], Mapping[str, Any]]) -> Iterator[bytes]:
    try:
        for piece in pieces:
            yield _event({"delta": {"content": piece}, "done": False})
        yield _event(last())
    except Exception as error:  # whatever a reasoner raises in the middle of an answer
        raise _broken(error) from None


def _texts(pieces: Iterator[str]) -> Iterator[bytes]:
    try:
        for piece in pieces:
            yield piece.encode("utf-8", "replace")
    except Exception as error:  # as above
        raise _broken(error) from None


def _broken(error: Exception) -> StreamBroken:
    if isinstance(error, ModelFailure):
        log.error("a streamed answer failed: %s", error)  # its text contains no message text
        return StreamBroken("the answer could not be completed; the log has the reason")
    log.error(
        "a streamed answer failed: %s\n%s",
        " from ".join(error_types(error)),
        redacted_traceback(error),
    )
    return StreamBroken("the answer could not be completed; the log has the reason")


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode("ascii")
