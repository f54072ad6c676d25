"""A costly result for all callers, computed once for simultaneous requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

FRESH_SECONDS = 2.0
"""Time for which a result is reused."""
USABLE_SECONDS = 10.0
"""Time for which it is reused while a new one is being computed."""


class SharedAnswer(Generic[T]):
    """A cached result. Safe to use from several threads."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute = compute
        self._computing = threading.Lock()
        self._result: tuple[float, T] | None = None
        """With the time of its computation, by the monotonic clock."""

    def get(self) -> T:
        """Raises the errors of the computation, which are not cached."""
        result = self._result
        if result is not None and time.monotonic() - result[0] < FRESH_SECONDS:
            return result[1]
        usable = result is not None and time.monotonic() - result[0] < USABLE_SECONDS
        if not self._computing.acquire(blocking=not usable):
            assert result is not None
            return result[1]
        try:
            latest = self._result
            if latest is None or time.monotonic() - latest[0] >= FRESH_SECONDS:
                value = self._compute()
                self._result = latest = (time.monotonic(), value)
            return latest[1]
        finally:
            self._computing.release()
