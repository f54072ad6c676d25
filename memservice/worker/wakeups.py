"""Waking workers: with REDIS_URL set, each commit enqueues jobs for the units that it gave work.

A separate thread does that, so a request neither waits for Redis nor fails with it. The sweep finds
units whose wake-up was lost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from memservice.settings import Settings

log = logging.getLogger("memservice.wakeups")

MAX_WAITING = 10_000
"""Units that are queued for a wake-up. The sweep wakes the units beyond that."""
BATCH_SIZE = 100
PAUSE_SECONDS = 1.0
"""Pause after Redis could not be reached. The sweep wakes units that get work during the pause."""
LAST_SECONDS = 2.0
"""How long `close` waits for the last wake-ups."""


class Wakes(Protocol):
    """The part of `memservice.worker.rq_queues.JobQueues` that wake-ups use."""

    def wake(self, units: Sequence[str]) -> int: ...


class Wakeups:
    """Collects units and wakes them from a thread, which starts with the first unit."""

    def __init__(self, connect: Callable[[], Wakes]) -> None:
        self._connect = connect
        self._changed = threading.Condition()
        self._units: dict[str, None] = {}
        """In the order in which they got work."""
        self._thread: threading.Thread | None = None
        self._closed = False
        self._reachable = True
        self._queues: Wakes | None = None

    @classmethod
    def to_queues(cls, settings: Settings) -> Wakeups:
        """Wake-ups through the queues in Redis."""

        def connect() -> Wakes:
            from memservice.worker.rq_queues import JobQueues

            return JobQueues.of(settings)

        return cls(connect)

    def wake(self, units: Collection[str]) -> None:
        """Wake the units soon. Returns at once."""
        with self._changed:
            if self._closed:
                return
            if len(self._units) < MAX_WAITING:
                self._units.update(dict.fromkeys(units))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="wakeups", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """Wake the queued units if Redis can be reached, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(LAST_SECONDS)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._units and not self._closed:
                    self._changed.wait()
                if not self._units:
                    return
                units = list(self._units)[:BATCH_SIZE]
                for unit in units:
                    del self._units[unit]
            if not self._try(units):
                self._pause()

    def _try(self, units: Sequence[str]) -> bool:
        from redis import RedisError

        try:
            if self._queues is None:
                self._queues = self._connect()
            self._queues.wake(units)
        except (RedisError, OSError) as error:
            if self._reachable:
                log.error(
                    "Redis cannot be reached, so workers are not woken; they find the work "
                    "when it is back: %s",
                    error,
                )
            self._reachable = False
            return False
        if not self._reachable:
            log.warning("Redis is reachable again: workers are woken by jobs")
        self._reachable = True
        return True

    def _pause(self) -> None:
        """Wait before the next try, and leave the queued units to the sweep."""
        deadline = time.monotonic() + PAUSE_SECONDS
        with self._changed:
            while not self._closed and (seconds_left := deadline - time.monotonic()) > 0:
                self._changed.wait(seconds_left)
            self._units.clear()
