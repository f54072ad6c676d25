"""The one function that does background work: `run(rt, unit)`. Every runner calls it, however it learnt of the unit.

A unit is worked on under a numbered lease. Its results, "task done" and "the lease is mine" are one transaction, so work that was
interrupted anywhere is done again from its beginning and nothing is stored twice.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from memservice.domain.errors import Unavailable
from memservice.domain.records import Lease, Task
from memservice.pipeline import derive, embed, owner, scope_backfill, summarise
from memservice.pipeline.handler import Handler, Outcome, Prepared
from memservice.runtime import Runtime
from memservice.services import outbox
from memservice.spi.storage import View

log = logging.getLogger("memservice.pipeline")

HANDLERS: Mapping[str, Handler] = {
    outbox.REPRESENTATION: derive.Derive(),
    outbox.SUMMARY: summarise.Summarise(),
    outbox.EMBED: embed.Embed(),
    outbox.SCOPE_BACKFILL: scope_backfill.ScopeBackfill(),
}

PENDING_READ = 500
"""Pending tasks of a unit that are looked at together."""
LONGEST_BACKOFF_SECONDS = 600.0
MAX_ERROR = 2_000
"""Characters of an error that are kept with a task."""


class LeaseLost(Exception):
    """Somebody else took the unit over while this process was away."""


@dataclass(slots=True)
class RunReport:
    """What a run of one unit did."""

    unit: str
    claimed: bool = False
    done: int = 0
    failed: int = 0
    outcome: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def run(rt: Runtime, unit: str, stop: threading.Event | None = None) -> RunReport:
    """Claim a unit, do its pending tasks in order until none is due, and release it. Returns at once if somebody else holds it.

    With `stop` set, the batch in hand is finished and the unit released. Raises `Unavailable` if the store cannot be reached; the
    lease then runs out by itself.
    """
    report = RunReport(unit)
    began = time.monotonic()
    seconds = rt.settings.deriver.stale_session_timeout_minutes * 60
    mine = owner.this_process()
    lease = rt.storage.write(lambda view: view.tasks.claim(unit, mine, rt.clock(), seconds))
    if lease is None:
        return report
    report.claimed = True
    heartbeat = _Heartbeat(rt, lease, seconds)
    try:
        _drain(rt, lease, report, stop or threading.Event())
    except LeaseLost:
        log.warning("lost the lease of %s; what was in hand was not stored", unit)
    finally:
        heartbeat.end()
        report.seconds = time.monotonic() - began
    log.info("%s: %d done, %d failed, %s, %.0f ms", unit, report.done, report.failed, _shown(report.outcome), report.seconds * 1000)
    return report


def _shown(outcome: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(outcome.items())) or "nothing to tell"


def _drain(rt: Runtime, lease: Lease, report: RunReport, stop: threading.Event) -> None:
    while True:
        pending = [] if stop.is_set() else _due(rt, lease.unit)
        if not pending:
            if rt.storage.write(lambda view: _release(rt, view, lease, stop.is_set())):
                return
            continue
        tasks = pending[:1]
        try:
            handler = HANDLERS.get(tasks[0].kind)
            if handler is None:
                raise LookupError(f"no handler for tasks of kind {tasks[0].kind!r}; known: {', '.join(sorted(HANDLERS))}")
            # A task that failed before is tried alone, so that it cannot hold up the others in its batch.
            if tasks[0].attempts == 0:
                fresh = [task for task in pending if task.attempts == 0 and task.kind == tasks[0].kind]
                tasks = pending[: min(len(fresh), max(1, handler.batch(rt, pending)))]
            prepared = handler.prepare(rt, tasks)
            outcome = rt.storage.write(lambda view, p=prepared, t=tasks: _commit(rt, view, lease, p, t))  # type: ignore[misc]
        except (LeaseLost, Unavailable):
            raise
        except Exception as error:  # whatever a reasoner or an embedder raises, the task keeps it and rests or tries again
            _record_failure(rt, lease, tasks[0], error)
            report.failed += 1
            continue
        report.done += len(tasks)
        report.outcome.update({name: number for name, number in outcome.items() if isinstance(number, int)})


def _due(rt: Runtime, unit: str) -> list[Task]:
    """The unit's pending tasks, if the first of them is due."""
    with rt.storage.read() as view:
        pending = view.tasks.pending(unit, PENDING_READ)
    return pending if pending and pending[0].not_before <= rt.clock() else []


def _release(rt: Runtime, view: View, lease: Lease, stopping: bool) -> bool:
    """Give the unit up, unless work arrived in the meantime; in one transaction, so that nothing falls between two runs."""
    first = view.tasks.pending(lease.unit, 1)
    if first and first[0].not_before <= rt.clock() and not stopping:
        return False
    view.tasks.release(lease)
    return True


def _commit(rt: Runtime, view: View, lease: Lease, prepared: Prepared, tasks: Sequence[Task]) -> Outcome:
    if not view.tasks.holds(lease):
        raise LeaseLost(lease.unit)
    outcome = prepared.store(view)
    view.tasks.finish([task.key for task in tasks], outcome, rt.clock())
    return outcome


def _record_failure(rt: Runtime, lease: Lease, task: Task, error: Exception) -> None:
    attempts = task.attempts + 1
    text = f"{type(error).__name__}: {error}"[:MAX_ERROR]
    rests = attempts >= rt.settings.worker.max_attempts
    pause = min(rt.settings.worker.retry_backoff_seconds * 2 ** (attempts - 1), LONGEST_BACKOFF_SECONDS)
    retry_at = None if rests else rt.clock() + timedelta(seconds=pause * random.uniform(0.8, 1.2))

    def record(view: View) -> None:
        if not view.tasks.holds(lease):
            raise LeaseLost(lease.unit)
        view.tasks.fail(task.key, text, rt.clock(), retry_at)

    rt.storage.write(record)
    # The error's own text may quote a message, so the log names its class only; the text is kept with the task.
    log.error("task %s of %s failed (%s), attempt %d%s", task.uid, task.unit, type(error).__name__, attempts, ": it rests" if rests else "")


class _Heartbeat:
    """Prolongs a lease from the process that does the work, as long as that work lasts."""

    def __init__(self, rt: Runtime, lease: Lease, seconds: float) -> None:
        self._rt, self._lease, self._seconds = rt, lease, seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"heartbeat {lease.unit}", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._ended.wait(self._seconds / 3):
            try:
                if not self._rt.storage.write(lambda view: view.tasks.renew(self._lease, self._rt.clock(), self._seconds)):
                    return
            except Unavailable as error:
                log.warning("could not prolong the lease of %s: %s", self._lease.unit, error)

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
