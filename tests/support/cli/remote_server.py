"""A way to a server on which answers get lost."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx


class Flaky(httpx.BaseTransport):
    """Every so many requests are answered with this status and a page instead of what was asked
    for."""

    now = datetime(2024, 3, 1, tzinfo=UTC)

    def __init__(self, url: str, every: int, status: int) -> None:
        self._url = url
        self._every = every
        self._status = status
        self._inner = httpx.HTTPTransport()
        self._requests = 0
        self.failed = 0

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self._url, transport=self)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._requests += 1
        if self._requests % self._every == 0:
            self.failed += 1
            return httpx.Response(self._status, text="<html>", request=request)
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()
