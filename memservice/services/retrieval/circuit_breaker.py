"""Embedders that did not answer a query are not asked for a while, so that not every query waits in
vain."""

from __future__ import annotations

import time
from threading import Lock
from weakref import WeakKeyDictionary

from memservice.runtime import Runtime

OPEN_SECONDS = 5.0
"""How long. Then one query tries, and the others go on without until it had its answer."""


class CircuitBreaker:
    """Of one process, by the id of the embedder."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._lock = Lock()

    def allow(self, embedder: str) -> bool:
        with self._lock:
            now = time.monotonic()
            until = self._until.get(embedder)
            if until is not None and now < until:
                return False
            if until is not None:
                self._until[embedder] = now + OPEN_SECONDS
            return True

    def record_failure(self, embedder: str) -> None:
        with self._lock:
            self._until[embedder] = time.monotonic() + OPEN_SECONDS

    def record_success(self, embedder: str) -> None:
        with self._lock:
            self._until.pop(embedder, None)


_known: WeakKeyDictionary[Runtime, CircuitBreaker] = WeakKeyDictionary()
_lock = Lock()


def of(rt: Runtime) -> CircuitBreaker:
    with _lock:
        return _known.setdefault(rt, CircuitBreaker())
