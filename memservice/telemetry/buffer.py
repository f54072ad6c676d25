"""What waits to be sent: bounded, first in, first out; when it is full the oldest go."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class RingBuffer(Generic[T]):
    """Safe to use from several threads. `dropped` is told how many were lost, and whether sending
    them had failed."""

    def __init__(self, limit: int, dropped: Callable[[int, bool], None]) -> None:
        self._limit = limit
        self._dropped = dropped
        self._items: deque[T] = deque()
        self._returned = 0
        """How many at the head were taken and given back."""
        self._changed = threading.Condition()
        self._closed = False

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: T) -> None:
        with self._changed:
            self._items.append(item)
            lost, of_returned = self._overflow()
            self._changed.notify()
        self._tell(lost, of_returned)

    def take(self, number: int) -> list[T]:
        """The oldest, at most so many."""
        with self._changed:
            taken = [self._items.popleft() for _ in range(min(number, len(self._items)))]
            self._returned = max(0, self._returned - len(taken))
            return taken

    def give_back(self, items: Sequence[T]) -> None:
        """Items that were taken, in their order, and could not be sent: they are the next again, if
        there is room."""
        with self._changed:
            self._items.extendleft(reversed(items))
            self._returned += len(items)
            lost, of_returned = self._overflow()
        self._tell(lost, of_returned)

    def _overflow(self) -> tuple[int, int]:
        lost = max(0, len(self._items) - self._limit)
        of_returned = min(lost, self._returned)
        for _ in range(lost):
            self._items.popleft()
        self._returned -= of_returned
        return lost, of_returned

    def _tell(self, lost: int, of_returned: int) -> None:
        if of_returned:
            self._dropped(of_returned, True)
        if lost - of_returned:
            self._dropped(lost - of_returned, False)

    def wait(self, threshold: int, seconds: float) -> bool:
        """Until there is something, and then until there are `threshold` of it or the first of it
        waited `seconds`. False once closed."""
        with self._changed:
            while not self._items and not self._closed:
                self._changed.wait()
            deadline = time.monotonic() + seconds
            while (
                len(self._items) < threshold
                and not self._closed
                and (left := deadline - time.monotonic()) > 0
            ):
                self._changed.wait(left)
            return not self._closed

    def close(self) -> None:
        """Nobody waits from now on. What is in it stays, and can be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
