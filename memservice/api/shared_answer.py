"""An answer that costs something and that everybody may ask for: found once for all who ask at
about the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

FRESH_SECONDS = 2.0
"""For which an answer is given again."""
USABLE_SECONDS = 10.0
"""For which it is given while another is being found."""


class SharedAnswer(Generic[T]):
    """Safe to call from several threads."""

    def __init__(self, find: Callable[[], T]) -> None:
        self._find = find
        self._finding = threading.Lock()
        self._found: tuple[float, T] | None = None
        """With the moment at which it was found, by the monotonic clock."""

    def get(self) -> T:
        """Raises what finding it raises, which is not kept."""
        found = self._found
        if found is not None and time.monotonic() - found[0] < FRESH_SECONDS:
            return found[1]
        usable = found is not None and time.monotonic() - found[0] < USABLE_SECONDS
        if not self._finding.acquire(blocking=not usable):
            assert found is not None
            return found[1]
        try:
            latest = self._found
            if latest is None or time.monotonic() - latest[0] >= FRESH_SECONDS:
                value = self._find()
                self._found = latest = (time.monotonic(), value)
            return latest[1]
        finally:
            self._finding.release()
