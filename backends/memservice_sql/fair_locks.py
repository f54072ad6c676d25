"""Locks that the transactions of a process get in the order in which they asked: of a row, or of a
whole database.

A database, and Python, give a lock to a transaction that has just begun before others that have
waited for it: with 32 connections that write to one session, the slowest of a hundred writes took
five to nine times as long as the average one.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Hashable
from types import TracebackType

from memservice.spi.waiting import about_to_wait

ROW_SECONDS = 1.0
"""How long a transaction waits for its turn with a row. It may keep another one waiting meanwhile,
for rows that it has changed, and that one may have the turn. After this time the database decides,
which notices if two wait for each other."""


class FairLocks:
    """Named locks of one process. After a fork, the child has its own."""

    def __init__(self) -> None:
        self._reset()

    def turn(self) -> Turn:
        """A transaction's turn; enter it before the transaction begins."""
        if self._pid != os.getpid():
            self._reset()
        return Turn(self)

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._queues: dict[Hashable, deque[threading.Lock]] = {}
        """The transactions that wait, for each lock that one has."""

    def acquire(self, name: Hashable, seconds: float) -> bool:
        """Whether the lock was free, or it was this transaction's turn, within `seconds`."""
        with self._lock:
            queue = self._queues.get(name)
            if queue is None:
                self._queues[name] = deque()
                return True
            mine = threading.Lock()
            mine.acquire()
            queue.append(mine)
        about_to_wait()
        if mine.acquire(timeout=seconds):
            return True
        with self._lock:
            if mine not in queue:  # it was given a moment ago
                return True
            queue.remove(mine)
            return False

    def release(self, name: Hashable) -> None:
        """Give the lock to the next transaction."""
        with self._lock:
            if queue := self._queues[name]:
                queue.popleft().release()
            else:
                del self._queues[name]


class Turn:
    """One transaction's turn with the first row that it locks. With one row at a time, two
    transactions never wait for each other's turns."""

    def __init__(self, locks: FairLocks) -> None:
        self._locks = locks
        self._row: Hashable = None
        self._has_waited = False

    def wait(self, row: Hashable) -> None:
        """Wait for the turn with this row. Returns at once for any further row."""
        if not self._has_waited:
            self._has_waited = True
            if self._locks.acquire(row, ROW_SECONDS):
                self._row = row

    def __enter__(self) -> Turn:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._row is not None:
            self._locks.release(self._row)
