"""The threads of a worker. Work that waits on language models, on embedders and vector indexes, and
on nothing outside the store has threads of its own, so that none of them waits for another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from memservice.services.tasks.kinds import (
    DREAMS,
    KINDS,
    LOCAL,
    MODEL,
    VECTORS,
    lane_of,
    workspace_of,
)
from memservice.worker.runner import RunReport

LOCAL_THREADS = 3
MIN_VECTOR_THREADS = 3


class Lanes:
    """Units in progress, and the threads that are free for more. Used by one thread."""

    def __init__(self, units_at_once: int) -> None:
        """`units_at_once`: units that wait on a language model and may run for one workspace at the
        same time. One thread more is kept for the other workspaces. Dreams have at most half of
        these threads, and never the only one of a workspace."""
        vectors = max(units_at_once, MIN_VECTOR_THREADS)
        # Of all workspaces together, and of each.
        self._limits = {MODEL: units_at_once + 1, DREAMS: max(1, (units_at_once + 1) // 2)} | {
            VECTORS: vectors,
            LOCAL: LOCAL_THREADS,
        }
        self._workspace_limits = {
            MODEL: units_at_once,
            DREAMS: self._limits[DREAMS],
            VECTORS: vectors - 1,
            LOCAL: LOCAL_THREADS - 1,
        }
        self._shared = max(units_at_once, 2)
        """Units of models and dreams together that run for one workspace."""
        self._pools = {
            MODEL: ThreadPoolExecutor(self._shared + 1, thread_name_prefix="model"),
            VECTORS: ThreadPoolExecutor(vectors, thread_name_prefix="vectors"),
            LOCAL: ThreadPoolExecutor(LOCAL_THREADS, thread_name_prefix="local"),
        }
        self._pools[DREAMS] = self._pools[MODEL]
        self._running: dict[str, Future[RunReport]] = {}

    def __contains__(self, unit: str) -> bool:
        return unit in self._running

    def __len__(self) -> int:
        return len(self._running)

    def closed(self) -> tuple[str, ...]:
        """Kinds of tasks that no thread is free for."""
        full = {lane for lane in self._limits if not self._has_thread(lane)}
        return tuple(kind.name for kind in KINDS.values() if kind.lane in full)

    def has_room(self, unit: str) -> bool:
        lane = lane_of(unit)
        if not self._has_thread(lane):
            return False
        workspace = workspace_of(unit)
        here = Counter(
            lane_of(other) for other in self._running if workspace_of(other) == workspace
        )
        if lane in (MODEL, DREAMS) and here[MODEL] + here[DREAMS] >= self._shared:
            return False
        return here[lane] < self._workspace_limits[lane]

    def _has_thread(self, lane: str) -> bool:
        running = Counter(map(lane_of, self._running))
        if lane in (MODEL, DREAMS) and running[MODEL] + running[DREAMS] > self._shared:
            return False
        return running[lane] < self._limits[lane]

    def start(self, unit: str, work: Callable[[], RunReport]) -> None:
        self._running[unit] = self._pools[lane_of(unit)].submit(work)

    def wait(self, seconds: float, others: Iterable[Future[RunReport]] = ()) -> None:
        """Until one unit has ended, or the time is over."""
        wait([*self._running.values(), *others], max(0.0, seconds), FIRST_COMPLETED)

    def ended(self) -> list[RunReport]:
        """Reports of units that have ended since the last call. Raises the error of a run."""
        return take_ended(self._running)

    def close(self) -> None:
        """Waits for units in progress."""
        for pool in self._pools.values():
            pool.shutdown(cancel_futures=True)


def take_ended(running: dict[str, Future[RunReport]]) -> list[RunReport]:
    """Remove the runs that have ended; returns their reports."""
    ended = {unit: future for unit, future in running.items() if future.done()}
    for unit in ended:
        del running[unit]
    return [future.result() for future in ended.values()]
