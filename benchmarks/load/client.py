"""Requests over connections that stay open, and a closed loop of them."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    body: bytes | None = None
    content_type: str = "application/json"


def post(path: str, body: Any) -> Request:
    return Request("POST", path, json.dumps(body).encode())


class Connection:
    """One connection to a server, opened again after an error."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        self._http = http.client.HTTPConnection(
            parts.hostname or "127.0.0.1", parts.port or 80, timeout=TIMEOUT_SECONDS
        )
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def send(self, request: Request) -> tuple[int, bytes]:
        """Status and body. Status 0: the connection failed."""
        headers = dict(self._headers)
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        try:
            self._http.request(request.method, request.path, request.body, headers)
            response = self._http.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self._http.close()
            return 0, str(error).encode()

    def json(self, request: Request) -> Any:
        """The decoded body of an answer. Raises RuntimeError for an error."""
        status, body = self.send(request)
        if not 200 <= status < 300:
            raise RuntimeError(f"{request.method} {request.path}: {status} {body[:300]!r}")
        return json.loads(body)

    def close(self) -> None:
        self._http.close()


@dataclass(slots=True)
class Outcome:
    """What a closed loop has measured."""

    seconds: list[float] = field(default_factory=list)
    """Duration of each request that succeeded."""
    errors: Counter[int] = field(default_factory=Counter)
    """Number of answers by status, 0 for a connection that failed."""

    @property
    def requests(self) -> int:
        return len(self.seconds) + self.errors.total()


def closed_loop(
    url: str,
    next_request: Callable[[int], Request],
    connections: int,
    seconds: float,
    *,
    token: str | None = None,
    min_requests: int = 1,
) -> Outcome:
    """Keep each connection busy for a time, and until `min_requests` are answered.

    `next_request(n)` makes request n, counted from 0 over all connections.
    """
    numbers = itertools.count()
    outcomes = [Outcome() for _ in range(connections)]
    deadline = time.monotonic() + seconds

    def run(outcome: Outcome) -> None:
        connection = Connection(url, token)
        while time.monotonic() < deadline or sum(o.requests for o in outcomes) < min_requests:
            request = next_request(next(numbers))
            began = time.perf_counter()
            status, _ = connection.send(request)
            if 200 <= status < 300:
                outcome.seconds.append(time.perf_counter() - began)
            else:
                outcome.errors[status] += 1
        connection.close()

    threads = [threading.Thread(target=run, args=(outcome,)) for outcome in outcomes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = Outcome()
    for outcome in outcomes:
        total.seconds += outcome.seconds
        total.errors += outcome.errors
    return total
