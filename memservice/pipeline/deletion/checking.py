"""The end of every erasure: every place is searched for what is left of the erased rows, and the
receipt is `done` only if nothing is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from memservice.domain.records import Erasure, Task
from memservice.pipeline.deletion import reclaiming
from memservice.pipeline.handler import Outcome, Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services import webhooks
from memservice.services.erasure import receipts, remains
from memservice.services.erasure.erased import Erased, NotErased, joined, named
from memservice.services.erasure.searches import SEARCHES
from memservice.spi.storage import Transaction
from memservice.telemetry.events import ErasureCompleted, Event

SECONDS = 0.25
"""About the time of one step."""
MAX_ROUNDS = 3
"""How often the remains are removed before the task fails."""
CHECKED_ROWS = 400
"""Rows that are checked together: each check costs as much as a hundred rows."""
LAST, DUE = "last", "due"
"""Entries of the payload: the erased rows that are not checked yet (`erased.named`), and in it,
whether they must be before the next step."""
CHECKS, ROUNDS = "checks", "rounds"
"""Entries of the payload: how often the whole search, and that of one batch, found something."""
_PROGRESS = ("search", "after", "left")


def search(rt: Runtime, task: Task, erased: Erased, before: str, then: str) -> Prepared:
    """The next step of the search. At its end the task goes on with the stage `then`, or, if
    something is left, with the stage `before`, which removes it."""
    ends = time.monotonic() + SECONDS
    number, after = task.payload.get("search", 0), task.payload.get("after", 0)
    left = set(task.payload.get("left", ()))
    while number < len(SEARCHES):
        is_left, last = SEARCHES[number].search(rt, erased, after)
        if is_left:
            left.add(SEARCHES[number].name)
        if last is None or is_left:
            number += 1
        after = last if last is not None and not is_left else 0
        if time.monotonic() >= ends:
            break
    if number < len(SEARCHES):
        following = at(task, search=number, after=after, left=sorted(left))
    elif left:
        following = again(task, sorted(left), stage=before)
    else:
        following = at(task, stage=then)
    return Prepared(lambda tx: following)


def remove(
    rt: Runtime, tx: Transaction, task: Task, erased: Erased, rows: Mapping[str, Any]
) -> tuple[Counter[str], dict[str, Any]]:
    """Remove what a search found of these rows. Returns the counts, and the rows with conclusions
    that were stored meanwhile."""
    late = remains.remove_from_store(rt, tx, erased)
    totals = Counter(task.outcome)
    totals["conclusions"] += len(late)
    return totals, joined(rows, named({}, (), late))


def is_full(rows: Mapping[str, Any]) -> bool:
    """Whether erased rows must be checked before others are erased."""
    return bool(rows.get(DUE)) or sum(map(len, rows["keys"].values())) >= CHECKED_ROWS


def with_unchecked(step: Unfinished, rows: Mapping[str, Any] | None) -> Unfinished:
    """A step, with the rows that earlier steps erased and that are not checked yet."""
    if rows is None:
        return step
    own = step.task.payload.get(LAST)
    last = rows if own is None else joined(rows, own)
    return Unfinished(replace(step.task, payload={**step.task.payload, LAST: last}))


def again(
    task: Task,
    left: Sequence[str],
    counter: str = CHECKS,
    totals: Counter[str] | None = None,
    **progress: Any,
) -> Unfinished:
    """The task with this progress, after a search found something in the places `left`. Raises
    NotErased after `MAX_ROUNDS` in one attempt. `counter`: the entry of the payload that counts."""
    before = task.payload.get(counter, {})
    rounds = before["rounds"] if before.get("attempts") == task.attempts else 0
    if rounds >= MAX_ROUNDS:
        raise NotErased(f"still left of erased rows: {', '.join(left)}")
    progress[counter] = {"rounds": rounds + 1, "attempts": task.attempts}
    return at(task, totals, **progress)


def at(task: Task, totals: Counter[str] | None = None, **progress: Any) -> Unfinished:
    """The task with this progress. A search begins at the first place."""
    payload = {name: task.payload[name] for name in task.payload if name not in _PROGRESS}
    counts = task.outcome if totals is None else dict(+totals)
    return Unfinished(replace(task, payload={**payload, **progress}, outcome=counts))


def reclaim(rt: Runtime, task: Task, then: str) -> Prepared:
    """Remove the remains from the files of the storage, step by step."""
    following = Unfinished(task) if reclaiming.step(rt) else at(task, stage=then)
    return Prepared(lambda tx: following)


def remove_traces(rt: Runtime, task: Task) -> None:
    """Remove the traces of the workspace from the file that this process can write."""
    with rt.storage.read() as tx:
        erasure = tx.erasures.of_task(task.uid)
    if erasure is not None:
        remains.remove_traces(rt, erasure.workspace, task.created_at)


def finish(rt: Runtime, task: Task, telemetry: Iterable[Event] = ()) -> Prepared:
    """The last step of an erasure: its receipt is `done`. `telemetry`: further events."""
    finished: list[webhooks.Event | None] = []

    def store(tx: Transaction) -> Outcome:
        finished.clear()
        finished.append(receipts.finish(rt, tx, task, task.outcome))
        return dict(task.outcome)

    def events(outcome: Outcome) -> Iterable[Event]:
        for event in finished:
            webhooks.notify_plugins(rt, event)
        with rt.storage.read() as tx:
            erasure = tx.erasures.of_task(task.uid)
        return [*telemetry, *completed(erasure, task.outcome)]

    return Prepared(store, events)


def completed(
    erasure: Erasure | None, counts: Mapping[str, int], error: str | None = None
) -> list[Event]:
    """The event of the end of an erasure; none without a receipt."""
    if erasure is None:
        return []
    return [
        ErasureCompleted(
            workspace_name=erasure.workspace,
            erasure_id=erasure.uid,
            erasure_type=erasure.kind,
            success=error is None,
            peers_deleted=counts.get("peers", 0),
            sessions_deleted=counts.get("sessions", 0),
            messages_deleted=counts.get("messages", 0),
            conclusions_deleted=counts.get("conclusions", 0),
            error_class=error,
        )
    ]
