"""One deadline for a whole connection. Timeouts of single reads do not end a response that arrives
byte by byte."""

from __future__ import annotations

import ssl
import time
from typing import Any

import httpcore


class Deadline:
    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    def remaining(self, late: type[Exception]) -> float:
        """Seconds until the deadline. Raises `late` after it."""
        seconds = self._ends - time.monotonic()
        if seconds <= 0:
            raise late("the endpoint took too long")
        return seconds


class DeadlineStream(httpcore.NetworkStream):
    """A connection that limits every operation to the time until the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.remaining(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.remaining(httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        secured = self._stream.start_tls(
            ssl_context, server_hostname, self._deadline.remaining(httpcore.ConnectTimeout)
        )
        return DeadlineStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
