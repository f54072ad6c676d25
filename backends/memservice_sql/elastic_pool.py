"""A pool whose additional connections outlive the request that opened them."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from sqlalchemy.pool import ConnectionPoolEntry, QueuePool
from sqlalchemy.util import queue

IDLE_SECONDS = 60.0
"""Additional connections that nobody used for this time are closed."""


class ElasticPool(QueuePool):
    """SQLAlchemy's pool, which itself closes each connection beyond `pool_size` as soon as it is
    returned, so that a busy process opens and closes one for most requests. This one keeps up to
    `max_overflow` of them until they were idle for `idle_seconds`. It looks for idle ones
    whenever a connection is returned.
    """

    idle_seconds = IDLE_SECONDS

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._additional: deque[tuple[float, ConnectionPoolEntry]] = deque()
        """Time of return and connection, oldest first. Filled only while the queue is full, so a
        thread that waits for the queue never misses one."""

    def _do_get(self) -> ConnectionPoolEntry:
        try:
            return self._pool.get(block=False)
        except queue.Empty:
            pass
        try:
            return self._additional.pop()[1]
        except IndexError:
            return super()._do_get()

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        try:
            self._pool.put(record, block=False)
        except queue.Full:
            self._additional.append((time.monotonic(), record))
        self._close_idle(time.monotonic() - self.idle_seconds)

    def _close_idle(self, returned_before: float) -> None:
        while self._additional and self._additional[0][0] <= returned_before:
            try:
                returned, record = self._additional.popleft()
            except IndexError:  # another thread has taken the last one
                return
            if returned > returned_before:  # another thread has taken the oldest one
                self._additional.appendleft((returned, record))
                return
            self._close(record)

    def _close(self, record: ConnectionPoolEntry) -> None:
        try:
            record.close()
        finally:
            self._dec_overflow()

    def dispose(self) -> None:
        self._close_idle(time.monotonic())
        super().dispose()

    def checkedin(self) -> int:
        return super().checkedin() + len(self._additional)

    def checkedout(self) -> int:
        return super().checkedout() - len(self._additional)
