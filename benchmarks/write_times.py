"""Times of the steps of background work, by kind of task and stage."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from memservice.domain.records import Task
from memservice.pipeline.handler import Prepared
from memservice.pipeline.registry import HANDLERS
from memservice.runtime import Runtime
from memservice.spi.storage import Transaction

PREPARED, STORED, RECLAIMED = "prepared", "stored", "reclaimed"
"""What is timed: the work before a transaction; a write transaction, from the moment when it has
begun to the end of its commit; a call of `Storage.reclaim`, during which no other write
begins on SQLite."""

Prepare = Callable[[Runtime, Sequence[Task]], Prepared]


class WriteTimes:
    """Times the background work of this process from `begin` to `end`."""

    def __init__(self, rt: Runtime) -> None:
        storage: Any = rt.storage
        self._storage = storage
        self._transaction, self._reclaim = storage.transaction, storage.reclaim
        self._prepares: dict[str, Prepare] = {}
        self._step = threading.local()
        """`name`: the kind and stage of the task that this thread works on."""
        self._seconds: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        """By step and what is timed: elapsed seconds, and CPU seconds of the thread."""

    def begin(self) -> None:
        for kind, handler in HANDLERS.items():
            self._prepares[kind] = handler.prepare
            setattr(handler, "prepare", self._preparing(handler.prepare))  # noqa: B010 - a method
        self._storage.transaction, self._storage.reclaim = self._in_transaction, self._reclaiming

    def end(self) -> None:
        for kind, prepare in self._prepares.items():
            setattr(HANDLERS[kind], "prepare", prepare)  # noqa: B010 - a method
        self._storage.transaction, self._storage.reclaim = self._transaction, self._reclaim

    def lines(self) -> Iterator[str]:
        """A table, one line for each step and what is timed."""
        columns = ("number", "sum s", "median ms", "99 % ms", "longest ms", "most CPU ms")
        yield f"{'':32}" + "".join(f"{column:>{max(11, len(column) + 2)}}" for column in columns)
        for (step, timed), times in self._seconds.items():
            ordered = sorted(elapsed for elapsed, _ in times)
            most_cpu = max(cpu for _, cpu in times)
            middle, high = ordered[len(times) // 2], ordered[len(times) * 99 // 100]
            yield (
                f"{f'{step}, {timed}':32}{len(times):11}{sum(ordered):11.2f}"
                f"{middle * 1e3:11.1f}{high * 1e3:11.1f}{ordered[-1] * 1e3:11.1f}"
                f"{most_cpu * 1e3:13.1f}"
            )

    @contextmanager
    def _timing(self, timed: str) -> Iterator[None]:
        began, cpu_began = time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            step = getattr(self._step, "name", None)
            if step is not None:
                cpu = time.thread_time() - cpu_began
                self._seconds[step, timed].append((time.perf_counter() - began, cpu))

    def _preparing(self, prepare: Prepare) -> Prepare:
        def timed(rt: Runtime, tasks: Sequence[Task]) -> Prepared:
            first = tasks[0]
            self._step.name = f"{first.kind} {first.payload.get('stage', '')}".strip()
            with self._timing(PREPARED):
                return prepare(rt, tasks)

        return timed

    @contextmanager
    def _in_transaction(self) -> Iterator[Transaction]:
        timing = self._timing(STORED)
        with self._transaction() as tx:
            timing.__enter__()
            yield tx
        timing.__exit__(None, None, None)

    def _reclaiming(self, **options: bool) -> bool:
        with self._timing(RECLAIMED):
            more: bool = self._reclaim(**options)
        return more
