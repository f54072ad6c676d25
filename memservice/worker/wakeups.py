"""Waking workers: with REDIS_URL set, each commit is followed by jobs for the units that it gave
work.

That happens in a thread of its own. A request neither waits for Redis nor fails with it; what
nobody was woken for, the sweep finds.
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
"""Units that are to be woken and were not yet; what is beyond is left to the sweep."""
BATCH_SIZE = 100
PAUSE_SECONDS = 1.0
"""Pause after Redis could not be reached. What is committed meanwhile is left to the sweep."""
LAST_SECONDS = 2.0
"""How long the end of a process waits for the last wake-ups."""


class Wakes(Protocol):
    """`memservice.worker.rq_queues.JobQueues`, as far as it is needed here."""

    def wake(self, units: Sequence[str]) -> int: ...


class Wakeups:
    """Remembers units, and wakes them from a thread that starts with the first."""

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
        """Wake-ups by the queues in Redis."""

        def connect() -> Wakes:
            from memservice.worker.rq_queues import JobQueues

            return JobQueues.of(settings)

        return cls(connect)

    def wake(self, units: Collection[str]) -> None:
        """Soon. Returns at once."""
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
        """Wake those that wait, if Redis is there, and end."""
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
                self._rest()

    def _try(self, units: Sequence[str]) -> bool:
        from redis import RedisError

        try:
            if self._queues is None:
                self._queues = self._connect()
            self._queues.wake(units)
        except (RedisError, OSError) as error:
            if self._reachable:
                log.error(
                    (
                        "Redis cannot be reached, so workers are not woken; they find the work "
                        "when it is back: %s"
                    ),
                    error,
                )
            self._reachable = False
            return False
        if not self._reachable:
            log.warning("Redis is back: workers are woken again")
        self._reachable = True
        return True

    def _rest(self) -> None:
        """While Redis is away everything waits for the sweep."""
        deadline = time.monotonic() + PAUSE_SECONDS
        with self._changed:
            while not self._closed and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            self._units.clear()
