"""The function that does background work: `run(rt, unit)`. The polling worker and RQ workers call
it.

A unit is processed under a numbered lease. One transaction stores the results, marks the tasks as
done and checks the lease. So interrupted work starts again from its beginning, and nothing is
stored twice."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import takewhile
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from memservice.domain.errors import (
    IndexUnavailable,
    SchemaVersionError,
    Unavailable,
)
from memservice.domain.failures import redacted_traceback
from memservice.domain.records import DELETING, Lease, Task
from memservice.domain.values import storable
from memservice.pipeline.handler import (
    Failed,
    Handler,
    InputErased,
    Outcome,
    Prepared,
    Unfinished,
    backoff,
)
from memservice.pipeline.registry import HANDLERS, handler_of
from memservice.reasoning import outages
from memservice.reasoning.apart.reasoner import Stopped
from memservice.runtime import Runtime
from memservice.services import webhooks
from memservice.services.tasks import jobs, kinds, lease_owner, model_breaker, outbox
from memservice.services.tasks.kinds import KINDS
from memservice.services.tasks.model_breaker import ModelUnavailable
from memservice.services.usage import budget
from memservice.spi.capabilities import Capability
from memservice.spi.storage import Transaction
from memservice.telemetry.context import set_request_id, working_for
from memservice.telemetry.events import Event
from memservice.worker import log_lines
from memservice.worker.lease_heartbeat import LeaseHeartbeat

log = logging.getLogger("memservice.pipeline")

PENDING_BATCH_SIZE = 500
"""Pending tasks of a unit per query."""
SHRINK_FACTOR = 4
"""The next batch is smaller by this factor after a failed batch, and larger after a successful
one."""
TIME_SLICE_SECONDS = 0.5
"""After this time a task with many steps releases its unit, so that other units get their turn."""
MAX_INDEX_PAUSE_SECONDS = 60.0
"""Longest pause of a task while the vector index is unavailable. Such a task never fails
permanently: the index would stay wrong."""
MAX_ERROR = 2_000
"""Characters of an error that are stored with a task."""


class LeaseLost(Exception):
    """Another process took over the unit."""


class RunReport(Struct):
    """The result of a run of one unit."""

    unit: str
    claimed: bool = False
    done: int = 0
    failed: int = 0
    steps: int = 0
    """Steps of tasks that are not finished yet."""
    outcome: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    more_due: bool = False
    """Whether it was stopped while a task was due."""
    first: Task | None = None
    """The first task that was due; None: there was none."""
    last: Task | None = None
    """The last completed task."""

    def counts(self) -> dict[str, int]:
        """Finished and failed tasks, steps, and the results of tasks by name."""
        own = {"done": self.done, "failed": self.failed, "steps": self.steps}
        return {**own, **dict(sorted(self.outcome.items()))}


class Stop(Protocol):
    """A signal for a run to release its unit, usually a `threading.Event`."""

    def is_set(self) -> bool: ...


def run(
    rt: Runtime, unit: str, stop: Stop | None = None, time_slice: Stop | None = None
) -> RunReport:
    """Claim a unit, process its pending tasks in order until none is due, and release it. Returns
    at once if another process holds it.

    If `stop` is set, it finishes the current batch and releases the unit. The same applies to
    `time_slice`, except while smaller batches isolate a failing task: that search would start
    again. Raises `Unavailable` if the store cannot be reached; the next clean-up then frees the
    lease, or it expires.
    """
    with working_for(None):
        never = threading.Event()
        return _run(rt, unit, stop or never, time_slice or never)


def _run(rt: Runtime, unit: str, stop: Stop, time_slice: Stop) -> RunReport:
    report = RunReport(unit)
    began = time.monotonic()
    seconds = rt.settings.deriver.stale_session_timeout_minutes * 60
    owner = lease_owner.start_claim()
    try:
        lease = rt.storage.write(lambda tx: tx.tasks.claim(unit, owner, rt.clock(), seconds))
        if lease is None:
            return report
        report.claimed = True
        _work(rt, lease, seconds, report, stop, time_slice)
    finally:
        lease_owner.end_claim(owner)
        report.seconds = time.monotonic() - began
    if report.first is not None and log.isEnabledFor(logging.INFO):
        line = log_lines.of_run(rt, report.first, report.counts(), report.seconds, unit)
        log.info("%s", line)
    return report


def _work(
    rt: Runtime, lease: Lease, seconds: float, report: RunReport, stop: Stop, time_slice: Stop
) -> None:
    heartbeat = LeaseHeartbeat(rt, lease, seconds)
    try:
        _Drain(rt, lease, report).run(stop, time_slice)
    except LeaseLost:
        log.warning("lost the lease of %s: the current batch is not stored", lease.unit)
    finally:
        heartbeat.end()


class _Drain:
    """Processes the pending tasks of one leased unit, in batches, in order."""

    def __init__(self, rt: Runtime, lease: Lease, report: RunReport) -> None:
        self._rt = rt
        self._lease = lease
        self._report = report
        self._maximum = PENDING_BATCH_SIZE
        """Tasks of the next batch: fewer after a failure, until batches succeed again."""
        self._begun = False
        self._slice_ends = time.monotonic() + TIME_SLICE_SECONDS

    def run(self, stop: Stop, time_slice: Stop) -> None:
        """Until no task is due, the unit has to wait, or the lease is released for others."""
        while True:
            must_release = (
                time_slice.is_set() and self._maximum == PENDING_BATCH_SIZE
            ) or stop.is_set()
            pending = [] if must_release else _due(self._rt, self._lease.unit, self._begun)
            self._begun = self._begun or bool(pending)
            more = self._process(pending) if pending else self._is_not_released(must_release)
            if not more:
                return

    def _is_not_released(self, stopping: bool) -> bool:
        """Release the lease. True if tasks became due before that."""
        rt = self._rt
        released = rt.storage.write(
            lambda tx: _release(rt, tx, self._lease, self._report, stopping)
        )
        if released is None:
            return True
        self._report.more_due = released.more_due
        webhooks.notify_plugins(rt, released.event)
        return False

    def _process(self, pending: Sequence[Task]) -> bool:
        """Process one batch. False if the unit has to wait or was released."""
        rt, lease, tasks = self._rt, self._lease, pending[:1]
        self._report.first = self._report.first or tasks[0]
        resume_at = _paused_until(rt, tasks[0])
        if resume_at is not None:
            _postpone(rt, lease, tasks[0], resume_at)
            return False
        try:
            handler = handler_of(tasks[0].kind)
            tasks = self._batch(handler, pending)
            set_request_id(tasks[0].request_id)
            prepared = _prepare(rt, handler, tasks)
            outcome = rt.storage.write(lambda tx: _commit(rt, tx, lease, prepared, tasks))
        except (LeaseLost, Unavailable, SchemaVersionError):
            raise
        except Stopped:
            rt.storage.write(lambda tx: tx.tasks.release(lease))
            self._report.more_due = True
            return False
        except InputErased:
            log.info("%s starts again: part of its input was erased while it ran", lease.unit)
            return True
        except ModelUnavailable as error:
            _wait_for_model(rt, lease, tasks[0], error)
            return False
        except Exception as error:  # raised by a plugin: recorded on the task, which is retried
            self._failed(tasks, error)
            return True
        if isinstance(outcome, Unfinished):
            return self._is_in_time_slice()
        self._succeeded(tasks, prepared, outcome)
        return True

    def _batch(self, handler: Handler, pending: Sequence[Task]) -> Sequence[Task]:
        """A task that failed before is tried alone, so that it cannot delay others in its batch."""
        untried = _untried(pending)[: self._maximum]
        return untried[: max(1, handler.batch(self._rt, untried))] if untried else pending[:1]

    def _is_in_time_slice(self) -> bool:
        """After a step of an unfinished task: release the lease once the time slice is over."""
        self._report.steps += 1
        if time.monotonic() < self._slice_ends:
            return True
        self._rt.storage.write(lambda tx: tx.tasks.release(self._lease))
        return False

    def _failed(self, tasks: Sequence[Task], error: Exception) -> None:
        if len(tasks) == 1:
            _record_failure(self._rt, self._lease, tasks[0], error)
            self._report.failed += 1
            return
        # Smaller batches isolate the failing task; only a task that fails alone has failed.
        self._maximum = max(1, len(tasks) // SHRINK_FACTOR)
        log.warning(
            "a batch of %d tasks of %s failed (%s): trying a smaller one",
            len(tasks),
            self._lease.unit,
            type(error).__name__,
        )

    def _succeeded(self, tasks: Sequence[Task], prepared: Prepared, outcome: Outcome) -> None:
        if prepared.events is not None and "skipped" not in outcome:
            _emit_events(self._rt, partial(prepared.events, outcome))
        self._rt.events.worked(tasks[0].kind, tasks[0].workspace_key, len(tasks), outcome)
        self._maximum = min(PENDING_BATCH_SIZE, self._maximum * SHRINK_FACTOR)
        report = self._report
        report.done += len(tasks)
        report.last = tasks[-1]
        report.outcome.update(
            {name: number for name, number in outcome.items() if isinstance(number, int)}
        )


def _prepare(rt: Runtime, handler: Handler, tasks: Sequence[Task]) -> Prepared:
    """Call the handler. Raises ModelUnavailable if the tasks have to wait for a language model."""
    attempt = model_breaker.attempt(rt, tasks[0]) if handler.needs_model(tasks[0]) else None
    if attempt is None:
        return handler.prepare(rt, tasks)
    try:
        with outages.attempting(attempt):
            prepared = handler.prepare(rt, tasks)
        attempt.succeeded()
    except Exception as error:
        outage = attempt.failed(error)
        if outage is None:
            raise
        raise ModelUnavailable(outage) from error
    finally:
        attempt.ended()
    return prepared


def _batches(task: Task) -> bool:
    kind = KINDS.get(task.kind)
    return kind is not None and kind.batches


def _paused_until(rt: Runtime, task: Task) -> datetime | None:
    """The time until which a task of a costly reasoner has to wait because its workspace has used
    its budget; else None."""
    kind, handler = KINDS.get(task.kind), HANDLERS.get(task.kind)
    reasoning = None if kind is None else kind.reasoning
    if (
        reasoning is None
        or task.workspace_key is None
        or handler is None
        or not handler.needs_model(task)
        or not rt.reasoner_can(reasoning, Capability.COSTLY)
    ):
        return None
    return budget.paused_until(rt, task.workspace_key)


def _postpone(rt: Runtime, lease: Lease, task: Task, until: datetime) -> None:
    """Postpone the unit and release it. This does not count as a try."""
    outcome = {"paused": "the token budget of today is spent"}

    def postpone(tx: Transaction) -> None:
        if not tx.tasks.holds(lease):
            raise LeaseLost(lease.unit)
        tx.tasks.save(replace(task, not_before=until, outcome=outcome))
        tx.tasks.release(lease)

    rt.storage.write(postpone)
    log.info(
        "%s waits until %s: the token budget of today is spent",
        lease.unit,
        until.isoformat(),
    )


def _wait_for_model(rt: Runtime, lease: Lease, task: Task, error: ModelUnavailable) -> None:
    """Postpone the unit until its model is available, and release it. This does not count as a
    try."""

    def postpone(tx: Transaction) -> None:
        if not tx.tasks.holds(lease):
            raise LeaseLost(lease.unit)
        tx.tasks.save(model_breaker.postponed(tx, task, error))
        tx.tasks.release(lease)

    rt.storage.write(postpone)
    log.info("%s %s waits: %s", task.kind, " ".join(jobs.about(rt, task)), error)


def _emit_events(rt: Runtime, events: Callable[[], Iterable[Event]]) -> None:
    """Emit the events of stored results if there is a subscriber. An error here must not fail the
    task."""
    if not rt.hears_events:
        return
    try:
        for event in events():
            rt.emit(event)
    except Exception as error:
        log.error(
            "events of a finished task could not be emitted: %s\n%s",
            type(error).__name__,
            redacted_traceback(error),
        )


def _untried(pending: Sequence[Task]) -> list[Task]:
    """The first tasks, as far as they are of one kind and were never tried."""
    return list(
        takewhile(lambda task: task.attempts == 0 and task.kind == pending[0].kind, pending)
    )


def _due(rt: Runtime, unit: str, begun: bool) -> list[Task]:
    """The unit's pending tasks, if the first one is due. Once the unit is being processed
    (`begun`), none of them waits for a full batch."""
    with rt.storage.read() as tx:
        pending = tx.tasks.pending(unit, PENDING_BATCH_SIZE)
    waits = bool(pending) and not outbox.is_due(rt, pending[0])
    if waits and begun and _batches(pending[0]) and not pending[0].attempts:
        waits = False
    return [] if waits else pending


class _Released(Struct, frozen=True):
    event: webhooks.Event | None
    """The event to send if the unit is empty."""
    more_due: bool = False


def _release(
    rt: Runtime, tx: Transaction, lease: Lease, report: RunReport, stopping: bool
) -> _Released | None:
    """Release the unit; None if a task became due since. One transaction, so that no task is missed
    between two runs."""
    first = tx.tasks.pending(lease.unit, 1)
    more_due = bool(first) and outbox.is_due(rt, first[0])
    if first and not more_due and stopping and report.done and _batches(first[0]):
        more_due = tx.tasks.make_due_if_untried(first[0])  # it waited for a full batch
    if more_due and not stopping:
        return None
    if (
        tx.tasks.release(lease)
        and not first
        and report.last is not None
        and KINDS[report.last.kind].reports_empty
    ):
        return _Released(webhooks.queue_empty(rt, tx, report.last))
    return _Released(None, more_due)


def _commit(
    rt: Runtime, tx: Transaction, lease: Lease, prepared: Prepared, tasks: Sequence[Task]
) -> Outcome | Unfinished:
    if not tx.tasks.holds(lease):
        raise LeaseLost(lease.unit)
    first, *rest_of_batch = tasks
    outcome = (
        {"skipped": "its session or workspace is being erased"}
        if _is_erased(tx, first)
        else prepared.store(tx)
    )
    if isinstance(outcome, Unfinished):
        _require_unchanged(tx, first)
        tx.tasks.save(outcome.task)
        return outcome
    tx.tasks.finish([first.key], outcome, rt.clock())
    if rest_of_batch:
        # The counts are those of the batch. They are stored once, so that sums over tasks are
        # right.
        tx.tasks.finish([task.key for task in rest_of_batch], {"done_with": first.uid}, rt.clock())
    return outcome


def _require_unchanged(tx: Transaction, task: Task) -> None:
    """Raise InputErased if an erasure removed rows from the payload of a task, or the task, since
    it was read: its progress would name them again. Only an erasure's own step changes its own."""
    if task.kind == kinds.ERASE:
        return
    (current,) = tx.locked(Task, [task.key]) or (None,)
    if current is None or current.payload != task.payload:
        raise InputErased


def _is_erased(tx: Transaction, task: Task) -> bool:
    """Whether the session or workspace of a task was deleted, maybe during the work. Then nothing
    more is stored there."""
    if task.session_key is not None:
        session = tx.sessions.by_key(task.session_key)
        if session is None or session.state == DELETING:
            return True
    workspace = None if task.workspace_key is None else tx.workspaces.by_key(task.workspace_key)
    return task.workspace_key is not None and (workspace is None or workspace.state == DELETING)


def _record_failure(rt: Runtime, lease: Lease, task: Task, error: Exception) -> None:
    attempts = task.attempts + 1
    text = storable(f"{type(error).__name__}: {error}", MAX_ERROR)
    handler = HANDLERS.get(task.kind)
    pause = _pause(rt, handler, attempts, error)
    retry_at = None if pause is None else rt.clock() + timedelta(seconds=pause)

    def record(tx: Transaction) -> None:
        if not tx.tasks.holds(lease):
            raise LeaseLost(lease.unit)
        tx.tasks.fail(task.key, text, rt.clock(), retry_at)
        if isinstance(error, Failed):
            error.record(tx, retry_at is None)
        if retry_at is None and handler is not None:
            handler.on_failed(rt, tx, task)

    rt.storage.write(record)
    rt.events.failed(task.kind, error, retry_at is None)
    if retry_at is None and handler is not None:
        _emit_events(rt, partial(handler.failure_events, rt, task, error))
    log.error(
        "%s %s task=%s failed (%s), attempt=%d unit=%s%s",
        task.kind,
        " ".join(jobs.about(rt, task)),
        task.uid,
        log_lines.reason(error),
        attempts,
        task.unit,
        "" if retry_at else ": it has failed permanently",
    )


def _pause(rt: Runtime, handler: Handler | None, attempts: int, error: Exception) -> float | None:
    """Seconds until the next try of a task; None if it has failed permanently."""
    if isinstance(error, IndexUnavailable):
        return min(backoff(rt, attempts), MAX_INDEX_PAUSE_SECONDS)
    if handler is None:
        return None if attempts >= rt.settings.worker.max_attempts else backoff(rt, attempts)
    return handler.retry_after(rt, attempts, error)
