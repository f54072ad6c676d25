"""Removes what remains of erased messages elsewhere, and checks that nothing is left. The messages
themselves, and what rests on them alone, are gone when the task is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from memservice.domain.records import Task
from memservice.pipeline.deletion import reclaiming
from memservice.pipeline.handler import Outcome, Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services import webhooks
from memservice.services.erasure import receipts, remains
from memservice.services.erasure.remains import Erased
from memservice.spi.storage import Transaction
from memservice.telemetry.events import Event

CLEAN_RECORDS, CLEAN_TASKS, CHECK_RECORDS, CHECK_TASKS, RECLAIM = (
    "clean_records",
    "clean_tasks",
    "check_records",
    "check_tasks",
    "reclaim",
)
STAGES = (CLEAN_RECORDS, CLEAN_TASKS, CHECK_RECORDS, CHECK_TASKS, RECLAIM)
"""In this order. Each consists of steps of bounded size; the payload has the stage and the last
key."""
MAX_ROUNDS = 3
"""How often the remains are removed before the task fails."""


class NotErased(Exception):
    """The check found something that is left of erased rows. The task is repeated, and fails
    visibly in the end."""


def prepare(rt: Runtime, task: Task) -> Prepared:
    """The next step of an `erase` task with `messages` in its payload."""
    stage = task.payload.get("stage", CLEAN_RECORDS)
    erased = Erased.of(task.payload["workspace"], task.payload)
    after = task.payload.get("after", 0)
    if stage == CLEAN_RECORDS and not after:
        remains.remove_vectors(rt, erased)
    if stage == CHECK_TASKS and not after and (left := remains.vectors_left(rt, erased)):
        return Prepared(lambda tx: _again(task, left))
    if stage == RECLAIM and reclaiming.step(rt):
        return Prepared(lambda tx: Unfinished(task))
    if stage == RECLAIM:
        return finishing(rt, task)
    return Prepared(lambda tx: _STEPS[stage](rt, tx, task, erased, after))


def finishing(rt: Runtime, task: Task) -> Prepared:
    """The last step of an erasure: its receipt is `done`."""
    finished: list[webhooks.Event | None] = []

    def store(tx: Transaction) -> Outcome:
        finished.clear()
        finished.append(receipts.finish(rt, tx, task, task.outcome))
        return dict(task.outcome)

    def events(outcome: Outcome) -> Iterable[Event]:
        for event in finished:
            webhooks.notify_plugins(rt, event)
        return ()

    return Prepared(store, events)


def _clean_records(
    rt: Runtime, tx: Transaction, task: Task, erased: Erased, after: int
) -> Unfinished:
    if not after:
        receipts.begin(tx, task)
    session = tx.sessions.by_key(task.payload.get("messages", 0))
    last = None
    if session is not None:
        last = remains.clean_idempotency_keys(tx, session, erased, after)
    return _continued(task, CLEAN_RECORDS, last)


def _clean_tasks(
    rt: Runtime, tx: Transaction, task: Task, erased: Erased, after: int
) -> Unfinished:
    return _continued(task, CLEAN_TASKS, remains.clean_tasks(tx, erased, after))


def _check_records(
    rt: Runtime, tx: Transaction, task: Task, erased: Erased, after: int
) -> Unfinished:
    left = [] if after else remains.rows_left(rt, tx, erased)
    session = tx.sessions.by_key(task.payload.get("messages", 0))
    last = None
    if session is not None:
        more, last = remains.idempotency_left(tx, session, erased, after)
        left += more
    return _again(task, left) if left else _continued(task, CHECK_RECORDS, last)


def _check_tasks(
    rt: Runtime, tx: Transaction, task: Task, erased: Erased, after: int
) -> Unfinished:
    left, last = remains.tasks_left(tx, erased, after)
    return _again(task, left) if left else _continued(task, CHECK_TASKS, last)


_STEPS: dict[str, Callable[[Runtime, Transaction, Task, Erased, int], Unfinished]] = {
    CLEAN_RECORDS: _clean_records,
    CLEAN_TASKS: _clean_tasks,
    CHECK_RECORDS: _check_records,
    CHECK_TASKS: _check_tasks,
}


def _continued(task: Task, stage: str, last: int | None) -> Unfinished:
    """The task with the stage that follows a step; `last`: the last key if the stage has further
    steps."""
    following = stage if last is not None else STAGES[STAGES.index(stage) + 1]
    return _at(task, stage=following, after=last or 0)


def _again(task: Task, left: list[str]) -> Unfinished:
    """The task from its first stage on. Raises NotErased after `MAX_ROUNDS`."""
    rounds = task.payload.get("rounds", 0) + 1
    if rounds > MAX_ROUNDS:
        raise NotErased(f"still left of erased rows: {', '.join(sorted(set(left)))}")
    return _at(task, stage=CLEAN_RECORDS, after=0, rounds=rounds)


def _at(task: Task, **progress: Any) -> Unfinished:
    return Unfinished(replace(task, payload={**task.payload, **progress}))
