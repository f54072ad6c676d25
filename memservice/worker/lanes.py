"""The threads of a worker. Each lane has its own threads, so no lane waits for another: work with
language models, work with embedders and vector indexes, and local work, which needs only the
store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial

from memservice.compute_lock import ComputeLock
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
    """Units in progress and free threads. Not thread-safe."""

    def __init__(self, units_at_once: int) -> None:
        """`units_at_once`: units with a language model that run for one workspace at the same time.
        One more thread is reserved for the other workspaces. Dreams use at most half of these
        threads, and never the only one of a workspace."""
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
        self._computing = ComputeLock()
        self._running: dict[str, Future[RunReport]] = {}

    def __contains__(self, unit: str) -> bool:
        return unit in self._running

    def __len__(self) -> int:
        return len(self._running)

    def closed(self) -> tuple[str, ...]:
        """Kinds of tasks without a free thread."""
        running = Counter(map(lane_of, self._running))
        full = {lane for lane in self._limits if not self._has_thread(lane, running)}
        return tuple(kind.name for kind in KINDS.values() if kind.lane in full)

    def startable(self, units: Iterable[str]) -> list[str]:
        """Those of the units that a thread is free for."""
        running = Counter(map(lane_of, self._running))
        of_workspaces = Counter((workspace_of(unit), lane_of(unit)) for unit in self._running)
        return [unit for unit in units if self._has_thread_for(unit, running, of_workspaces)]

    def _has_thread_for(
        self, unit: str, running: Counter[str], of_workspaces: Counter[tuple[str, str]]
    ) -> bool:
        """`running`, `of_workspaces`: the number of units in progress of each lane, and of each
        workspace and lane."""
        lane, workspace = lane_of(unit), workspace_of(unit)
        if not self._has_thread(lane, running):
            return False
        models = of_workspaces[workspace, MODEL] + of_workspaces[workspace, DREAMS]
        if lane in (MODEL, DREAMS) and models >= self._shared:
            return False
        return of_workspaces[workspace, lane] < self._workspace_limits[lane]

    def _has_thread(self, lane: str, running: Counter[str]) -> bool:
        if lane in (MODEL, DREAMS) and running[MODEL] + running[DREAMS] > self._shared:
            return False
        return running[lane] < self._limits[lane]

    def start(self, unit: str, work: Callable[[], RunReport]) -> None:
        lane = lane_of(unit)
        locked = partial(self._computing.run, work) if lane in (MODEL, DREAMS) else work
        self._running[unit] = self._pools[lane].submit(locked)

    def wait(self, seconds: float, other_futures: Iterable[Future[RunReport]] = ()) -> None:
        """Wait until one unit has ended, at most `seconds`."""
        wait([*self._running.values(), *other_futures], max(0.0, seconds), FIRST_COMPLETED)

    def ended(self) -> list[RunReport]:
        """Reports of the units that ended since the last call. Raises the error of a run."""
        return take_ended(self._running)

    def close(self) -> None:
        """Wait for the units in progress."""
        for pool in self._pools.values():
            pool.shutdown(cancel_futures=True)


def take_ended(running: dict[str, Future[RunReport]]) -> list[RunReport]:
    """Remove the runs that have ended, and return their reports."""
    ended = {unit: future for unit, future in running.items() if future.done()}
    for unit in ended:
        del running[unit]
    return [future.result() for future in ended.values()]
