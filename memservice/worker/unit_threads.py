"""Additional threads of an RQ worker: for webhook deliveries, because endpoints may be slow, and
for local work while the current job waits on a model."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from memservice.services.tasks.kinds import DELIVERIES, lane_of
from memservice.worker.time_slice import MAX_CONCURRENT_DELIVERIES


def is_delivery(unit: str) -> bool:
    return lane_of(unit) == DELIVERIES


class UnitThreads:
    """Works on units in separate threads, never on the same unit twice at the same time."""

    def __init__(self, work: Callable[[str], None]) -> None:
        """`work` processes a unit and raises nothing."""
        self._work = work
        self._pool = ThreadPoolExecutor(MAX_CONCURRENT_DELIVERIES, thread_name_prefix="unit")
        self._changed = threading.Condition()
        self._active: set[str] = set()
        """In progress, or queued for a thread."""
        self._again: set[str] = set()

    def begin(self, unit: str) -> None:
        """Work on the unit soon. A unit in progress runs once more afterwards, because it may have
        missed new tasks."""
        with self._changed:
            if unit in self._active:
                self._again.add(unit)
                return
            self._active.add(unit)
        self._pool.submit(self._run, unit)

    def crowded(self) -> bool:
        """Whether some units are queued for a thread."""
        with self._changed:
            return len(self._active) > MAX_CONCURRENT_DELIVERIES

    def wait(self, seconds: float) -> bool:
        """Wait until no unit is in progress, at most `seconds`. Returns whether any was at the
        start."""
        with self._changed:
            was_active = bool(self._active)
            self._changed.wait_for(lambda: not self._active, seconds)
            return was_active

    def close(self) -> None:
        """Wait for the units in progress. Other workers take the queued ones."""
        self._pool.shutdown(cancel_futures=True)

    def _run(self, unit: str) -> None:
        self._work(unit)
        with self._changed:
            if unit in self._again:
                self._again.discard(unit)
                with suppress(RuntimeError):  # closed: another worker takes it
                    self._pool.submit(self._run, unit)  # behind the queued ones
                    return
            self._active.discard(unit)
            self._changed.notify_all()
