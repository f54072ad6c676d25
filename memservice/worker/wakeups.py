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
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from memservice.runtime import Runtime
from memservice.spi.storage import Finding, Storage, Transaction

if TYPE_CHECKING:
    from memservice.settings import Settings

log = logging.getLogger("memservice.wakeups")

T = TypeVar("T")

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


class WakingStorage:
    """`memservice.spi.storage.Storage`: `inner`, with a word after each commit that gave work to
    units."""

    def __init__(self, inner: Storage, wakeups: Wakeups) -> None:
        self.name = inner.name
        self.capabilities = inner.capabilities
        self.text = inner.text
        self.vectors = inner.vectors
        self._inner = inner
        self._wakeups = wakeups

    def write(self, fn: Callable[[Transaction], T]) -> T:
        units: set[str] = set()

        def then(tx: Transaction) -> T:
            units.clear()  # of a try that lost against another transaction
            result = fn(tx)
            units.update(tx.tasks.units_with_work)
            return result

        result = self._inner.write(then)
        if units:
            self._wakeups.wake(units)
        return result

    def read(self) -> AbstractContextManager[Transaction]:
        return self._inner.read()

    def wait_for_work(self, timeout: float) -> bool:
        return self._inner.wait_for_work(timeout)

    def check(self) -> None:
        self._inner.check()

    def examine(self, *, thorough: bool = False) -> Sequence[Finding]:
        return self._inner.examine(thorough=thorough)

    def reclaim(self, *, thorough: bool = False) -> bool:
        return self._inner.reclaim(thorough=thorough)

    def schema_version(self) -> str | None:
        return self._inner.schema_version()

    def migrate(self) -> None:
        self._inner.migrate()

    def close(self) -> None:
        self._wakeups.close()
        self._inner.close()

    def __getattr__(self, name: str) -> Any:
        """What a storage offers beyond the seam."""
        return getattr(self._inner, name)


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


def attach(rt: Runtime) -> None:
    """With REDIS_URL set, wake workers after each commit of this runtime from now on."""
    if rt.settings.app.redis_url and not isinstance(rt.storage, WakingStorage):
        rt.storage = WakingStorage(rt.storage, Wakeups(lambda: _connect(rt.settings)))


def _connect(settings: Settings) -> Wakes:
    from memservice.worker.rq_queues import JobQueues

    return JobQueues.of(settings)
