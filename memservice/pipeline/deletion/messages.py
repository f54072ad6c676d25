"""Removes what remains of erased messages or conclusions elsewhere, and checks that nothing is
left. They themselves, and what rests on them alone, are gone when the task is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from memservice.domain.records import Task
from memservice.pipeline.deletion import checking, outside_vectors
from memservice.pipeline.handler import Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services.erasure import receipts, remains
from memservice.services.erasure.erased import Erased
from memservice.spi.storage import Transaction

VECTORS, RECORDS, TASKS, CHECK, RECLAIM, END = (
    "vectors",
    "records",
    "tasks",
    "check",
    "reclaim",
    "end",
)
"""Stages, in this order. Each consists of steps of bounded size; the payload has the stage and the
last key."""


def prepare(rt: Runtime, task: Task) -> Prepared:
    """The next step of an `erase` task with `uids` in its payload."""
    stage = task.payload.get("stage", VECTORS)
    if stage == VECTORS:
        return outside_vectors.prepare(
            rt,
            task,
            task.payload["workspace"],
            lambda next_task: checking.at(next_task, stage=RECORDS),
        )
    with rt.storage.read() as tx:
        receipt = tx.erasures.of_task(task.uid)
    erased = replace(Erased.of(task, task.payload), receipt=receipt)
    after = task.payload.get("after", 0)
    if stage == RECORDS and not after:
        remains.remove_vectors(rt, erased)
        checking.remove_traces(rt, task)
    if stage == CHECK:
        return checking.search(rt, task, erased, before=RECORDS, then=RECLAIM)
    if stage == RECLAIM:
        return checking.reclaim(rt, task, END)
    if stage == END:
        return checking.finish(rt, task)
    return Prepared(lambda tx: _STEPS[stage](rt, tx, task, erased, after))


def _records(rt: Runtime, tx: Transaction, task: Task, erased: Erased, after: int) -> Unfinished:
    if not after:
        receipts.begin(tx, task)
    totals = Counter(task.outcome)
    rows: dict[str, Any] = {}
    if not after and checking.CHECKS in task.payload:
        totals, rows = checking.remove(rt, tx, task, erased, task.payload)
    last = remains.clean_idempotency_keys(tx, erased, after)
    stage = TASKS if last is None else RECORDS
    return checking.at(task, totals, **rows, stage=stage, after=last or 0)


def _tasks(rt: Runtime, tx: Transaction, task: Task, erased: Erased, after: int) -> Unfinished:
    last = remains.clean_tasks(tx, erased, after)
    return checking.at(task, stage=CHECK if last is None else TASKS, after=last or 0)


_STEPS: dict[str, Callable[[Runtime, Transaction, Task, Erased, int], Unfinished]] = {
    RECORDS: _records,
    TASKS: _tasks,
}
