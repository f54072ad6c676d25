"""One deadline for all that happens on a connection: time limits of single reads never end an
answer that comes byte by byte."""

from __future__ import annotations

import ssl
import time
from typing import Any

import httpcore


class Deadline:
    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    def left(self, late: type[Exception]) -> float:
        """Seconds that are left. Raises `late` when none are."""
        seconds = self._ends - time.monotonic()
        if seconds <= 0:
            raise late("the endpoint took too long")
        return seconds


class Bounded(httpcore.NetworkStream):
    """A connection whose every operation has what is left until the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left(httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        secured = self._stream.start_tls(
            ssl_context, server_hostname, self._deadline.left(httpcore.ConnectTimeout)
        )
        return Bounded(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
