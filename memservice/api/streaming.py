"""Answers that take a while: how many at once, and how one is sent while it is still being made
(server-sent events)."""

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
    """Places for slow answers in one process: half of its threads, so that they never keep
    everybody else out."""

    def __init__(self, threads: int) -> None:
        self._free = threading.BoundedSemaphore(max(1, threads // 2))

    def take(self) -> Callable[[], None]:
        """A place, or `Busy` if there is none. Gives the function that gives it back, which may be
        called again and again."""
        if not self._free.acquire(blocking=False):
            raise Busy(
                "As many questions are being answered as this process can take: try again soon",
                RETRY_AFTER_SECONDS,
            )
        held = threading.Lock()

        def give_back() -> None:
            if held.acquire(blocking=False):
                self._free.release()

        return give_back


class StreamBroken(Exception):
    """Ends a response that cannot be finished. The server cuts the connection, so it does not look
    complete to anybody."""


def event_stream(pieces: Iterator[str], last: Callable[[], Mapping[str, Any]]) -> Response:
    """Send pieces of text as they come, each as an event, then the event that `last` gives, which
    says that this was all.

    The first piece is waited for here: what goes wrong before it is an error like any other. What
    goes wrong later breaks the stream off, without a last event.
    """
    return _streamed(_events(_begun(pieces), last), "text/event-stream")


def text_stream(pieces: Iterator[str], mimetype: str = "text/plain") -> Response:
    """As `event_stream`, but the bare text: where it ends, the answer does."""
    return _streamed(_texts(_begun(pieces)), mimetype)


def _streamed(chunks: Iterator[bytes], mimetype: str) -> Response:
    answer = Response(chunks, mimetype=mimetype)
    answer.headers["Cache-Control"] = "no-cache"
    answer.headers["X-Accel-Buffering"] = "no"
    return answer


def _begun(pieces: Iterator[str]) -> Iterator[str]:
    """The same pieces, the first of which is there."""
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
        return StreamBroken("the answer could not be finished; the log says why")
    log.error(
        "a streamed answer failed: %s\n%s",
        " from ".join(error_types(error)),
        redacted_traceback(error),
    )
    return StreamBroken("the answer could not be finished; the log says why")


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode("ascii")
