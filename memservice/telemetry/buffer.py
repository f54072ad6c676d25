"""A bounded queue of pending items, first in, first out. When it is full, the oldest are
dropped."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class RingBuffer(Generic[T]):
    """Safe for threads. `dropped` is called with the number of dropped items, and whether sending
    them had failed before."""

    def __init__(self, limit: int, dropped: Callable[[int, bool], None]) -> None:
        self._limit = limit
        self._dropped = dropped
        self._items: deque[T] = deque()
        self._returned_count = 0
        """How many items at the head were taken and given back."""
        self._changed = threading.Condition()
        self._closed = False

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: T) -> None:
        with self._changed:
            self._items.append(item)
            dropped, dropped_returned = self._overflow()
            self._changed.notify()
        self._report_dropped(dropped, dropped_returned)

    def take(self, number: int) -> list[T]:
        """Remove and return the oldest items, at most `number`."""
        with self._changed:
            taken = [self._items.popleft() for _ in range(min(number, len(self._items)))]
            self._returned_count = max(0, self._returned_count - len(taken))
            return taken

    def give_back(self, items: Sequence[T]) -> None:
        """Put back items that were taken and could not be sent, in their order. They are next
        again, if there is space."""
        with self._changed:
            self._items.extendleft(reversed(items))
            self._returned_count += len(items)
            dropped, dropped_returned = self._overflow()
        self._report_dropped(dropped, dropped_returned)

    def _overflow(self) -> tuple[int, int]:
        dropped = max(0, len(self._items) - self._limit)
        dropped_returned = min(dropped, self._returned_count)
        for _ in range(dropped):
            self._items.popleft()
        self._returned_count -= dropped_returned
        return dropped, dropped_returned

    def _report_dropped(self, dropped: int, dropped_returned: int) -> None:
        if dropped_returned:
            self._dropped(dropped_returned, True)
        if dropped - dropped_returned:
            self._dropped(dropped - dropped_returned, False)

    def wait(self, threshold: int, seconds: float) -> bool:
        """Wait for an item, and then until there are `threshold` items or `seconds` have passed.
        False once closed."""
        with self._changed:
            while not self._items and not self._closed:
                self._changed.wait()
            deadline = time.monotonic() + seconds
            while (
                len(self._items) < threshold
                and not self._closed
                and (remaining := deadline - time.monotonic()) > 0
            ):
                self._changed.wait(remaining)
            return not self._closed

    def close(self) -> None:
        """End all waiting. Items in the buffer stay and can be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
