"""Circuit breakers of language models, kept in the store so that all workers see them.

A failure of the provider (no connection, time-out, wrong key, quota, 5xx) is not the task's. It
opens the breaker of that model: tasks that need the model wait, with their tries untouched, until
the next probe, which is one call of one task at a time. The first answer closes the breaker and
lets all tasks run.

A task that fails opens the breaker; if the model then answers other tasks, the next failure counts
against the task. A failure after that opens the breaker again: it may be the start of a new outage.
While no other task has failed, the cause may be that task: the others do not wait, and webhooks
report no outage.

Waiting tasks are recognised by their `not_before`, which is the breaker's `retry_at` to the
microsecond, or one second later.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import asdict, replace

from memservice.domain.filters import equals
from memservice.domain.filters.ast import Compare, Condition
from memservice.domain.records import IMMEDIATELY, PENDING, Fact, Task
from memservice.domain.values import storable
from memservice.reasoning import choice
from memservice.reasoning.models import target
from memservice.reasoning.outages import model_name
from memservice.runtime import Runtime
from memservice.services import webhooks
from memservice.services.tasks.kinds import KINDS
from memservice.spi.capabilities import Capability
from memservice.spi.llm import ModelFailure
from memservice.spi.rows import UniqueViolation
from memservice.spi.storage import Transaction

log = logging.getLogger("memservice.pipeline")

PREFIX = "model unavailable: "
"""Of the names of facts."""
PROBE_SECONDS = 600.0
"""A probe that has not ended after this time counts as lost, and another one starts."""
MIN_BOUND, MAX_SHARE_OF_AGE = 7, 1 / 3
"""Bounds of the pause between two probes: so many times the first pause, or this share of the time
since the outage began, whichever is longer."""
MAX_RETRY_AFTER = 3_600.0
"""Longest pause, in seconds, that a provider can ask for."""
MAX_REASON = 500
NOT_LAST, LAST = timedelta(), timedelta(seconds=1)
"""After the start of the next probe: when tasks are due that wait, and those that failed. Otherwise
a task that always fails could be every probe."""
FAILED_BEFORE = "model_failed"
"""In the outcome of a pending task: the model that failed when the task was tried."""


class Outage(Struct, frozen=True):
    """An open breaker."""

    model: str
    since: datetime
    reason: str
    retry_at: datetime
    """When the next probe may start; during a probe, when another one may."""
    failures: int = 1
    probing: bool = False
    only: str | None = None
    """The uid of the task whose calls failed, if no other task's did: the cause may be that task,
    so another one may probe at once."""
    is_announced: bool = False
    """Whether webhooks have reported the outage."""

    def need_not_wait(self, task: Task) -> bool:
        """Whether this task may probe at once, because only another one has failed."""
        return self.only not in (None, task.uid) and not self.probing

    def may_probe(self, task: Task, now: datetime, latest: datetime) -> bool:
        """`latest`: see `_latest_retry`."""
        return not now < self.retry_at <= latest or self.need_not_wait(task)

    def shown(self) -> str:
        """One line for operators."""
        since, retry_at = (f"{at:%Y-%m-%d %H:%M:%S} UTC" for at in (self.since, self.retry_at))
        following = "is being tried now" if self.probing else f"next try at {retry_at}"
        return f"{self.model} is unavailable since {since}: {self.reason}; {following}"


class ModelUnavailable(Exception):
    """The model that a task needs is unavailable; the task waits until `retry_at`."""

    def __init__(self, outage: Outage) -> None:
        super().__init__(f"{outage.model} is unavailable: {outage.reason}")
        self.outage = outage


class Attempt:
    """One try of a task that calls language models."""

    def __init__(
        self, rt: Runtime, task: Task, models: tuple[str, ...], probed: tuple[str, ...]
    ) -> None:
        self._rt = rt
        self._task = task
        self._began = time.monotonic()
        self._models = models
        self._probed = probed
        """Models that were unavailable when it began, and are not known to have recovered."""
        self._answers: dict[str, float] = {}
        """By model, when it last answered this attempt (monotonic seconds)."""
        self._retried: set[str] = set()
        """Models whose failed calls this attempt repeats, and no other of this process."""

    def may_retry(self, model: str) -> bool:
        """Never in a probe; otherwise in one attempt of this process at a time. The others end, and
        wait for what becomes of that one."""
        if self._probed or self._rt.retrying.setdefault(model, self) is not self:
            return False
        self._retried.add(model)
        return True

    def answered(self, model: str) -> None:
        """Close the breaker of this model if it was open, or if other attempts opened it during the
        retries."""
        was_open = model in self._probed or model in self._retried
        self._probed = tuple(other for other in self._probed if other != model)
        self._end_retries(model)
        self._rt.models_answered[model] = self._answers[model] = time.monotonic()
        if was_open:
            close(self._rt, model)

    def succeeded(self) -> None:
        """The work is done. Reasoners of plugins do not report each answer."""
        reasoner = _foreign(self._models)
        if reasoner is not None:
            self.answered(reasoner)

    def ended(self) -> None:
        """A probe that ended without a call leaves the next one to another task."""
        self._end_retries(*self._retried)
        for model in self._probed:
            _release_probe(self._rt, model)

    def _end_retries(self, *models: str) -> None:
        for model in self._retried.intersection(models):
            self._rt.retrying.pop(model, None)
            self._retried.discard(model)

    def _has_answered(self, model: str, since: float) -> bool:
        """Whether the model has answered any attempt of this process since then."""
        return self._rt.models_answered.get(model, 0.0) > since

    def failed(self, error: Exception) -> Outage | None:
        """Open the breaker of the model that failed. None if the failure counts against the task:
        because it is of the content, or because the model answers other tasks, but repeatedly not
        this one."""
        if not isinstance(error, ModelFailure):
            return None
        if error.fault != "provider":
            self.succeeded()  # it answered, although not in a usable form
            return None
        model = error.model or _foreign(self._models)
        if model is None:
            return None
        since = self._answers.get(model, self._began)
        answered = self._has_answered(model, since)
        outage = open_(self._rt, model, error, self._task, answered=answered)
        if not answered and self._has_answered(model, since):
            close(self._rt, model)  # what answered may have looked for an open breaker before
        self._probed = tuple(other for other in self._probed if other != model)
        return outage


def attempt(rt: Runtime, task: Task) -> Attempt | None:
    """Begin a try of a task. None if its kind calls no language model. Raises ModelUnavailable
    while a model that it needs is unavailable, unless this is the next probe."""
    models = models_of(rt, task.kind)
    if not models:
        return None
    with rt.storage.read() as tx:
        outages = [outage for model in models if (outage := _read(tx, model)) is not None]
    for outage in outages:
        if not outage.may_probe(task, rt.clock(), _latest_retry(rt)):
            raise ModelUnavailable(outage)
    for number, outage in enumerate(outages):
        if not _begin_probe(rt, outage.model, task):
            for begun in outages[:number]:
                _release_probe(rt, begun.model)
            with rt.storage.read() as tx:
                raise ModelUnavailable(_read(tx, outage.model) or outage)
    return Attempt(rt, task, models, tuple(outage.model for outage in outages))


def models_of(rt: Runtime, kind: str) -> tuple[str, ...]:
    """The models without which tasks of this kind cannot be done: of each configuration the last
    one that is tried."""
    declared = KINDS.get(kind)
    task = None if declared is None else declared.reasoning
    if task is None:
        return ()
    reasoner = rt.reasoners[task]
    if reasoner != choice.LLM:
        return (_REASONER + reasoner,) if rt.reasoner_can(task, Capability.REMOTE) else ()
    configs = [choice.models_of(rt.settings)[task]]
    if task == choice.CONSOLIDATE:
        configs.append(rt.settings.dream.induction_model_config)
    targets = [target(rt.settings.llm, config.fallback or config, rt.plugins) for config in configs]
    return tuple(dict.fromkeys(map(model_name, targets)))


_REASONER = "reasoner "


def _foreign(models: tuple[str, ...]) -> str | None:
    """The reasoner of a plugin, which does not say which model failed."""
    return next((model for model in models if model.startswith(_REASONER)), None)


def current(tx: Transaction) -> list[Outage]:
    """Models that are unavailable, by name."""
    facts = tx.rows.page(Fact, Compare("name", "gte", PREFIX))
    outages = [_parsed(fact) for fact in facts if fact.name.startswith(PREFIX)]
    return sorted(outages, key=lambda outage: outage.model)


def waiting(tx: Transaction, outage: Outage) -> int:
    """Number of work units that wait for the model: the first task of each is marked."""
    return tx.rows.count(Task, _waiting(outage))


def open_(
    rt: Runtime, model: str, error: ModelFailure, task: Task, *, answered: bool = False
) -> Outage | None:
    """Record a failure of the provider; returns the outage, with the time of the next probe. None
    if the model was available when the task failed, and so it was the last time; then the task
    begins again. `answered`: the model has answered another task since the call began."""

    def change(tx: Transaction) -> tuple[Outage | None, webhooks.Event | None]:
        now, before = rt.clock(), _read(tx, model, lock=True)
        if before is None and task.outcome.get(FAILED_BEFORE) == model:
            # The mark counts once: in a new outage the next failure opens the breaker.
            tx.rows.change(Task, equals(key=task.key), outcome={})
            return None, None
        if before is None and answered:
            return Outage(model, now, storable(str(error), MAX_REASON), now), None
        requested_pause = min(error.retry_after or 0.0, MAX_RETRY_AFTER)
        reason = storable(str(error), MAX_REASON)
        if before is not None and not before.probing and before.retry_at > now:
            # A call that began before the breaker opened.
            retry_at = max(before.retry_at, now + timedelta(seconds=requested_pause))
            only = task.uid if before.only == task.uid else None
            outage = replace(before, retry_at=retry_at, only=only)
        else:
            confirms = before is not None and before.only not in (None, task.uid)
            failures = 1 if before is None else before.failures + (not confirms)
            is_alone = before is None or before.only == task.uid
            only = task.uid if is_alone and not requested_pause else None
            since = now if before is None else before.since
            pause = max(requested_pause, _pause(rt, failures, now - since))
            retry_at = now + timedelta(seconds=pause)
            outage = Outage(model, since, reason, retry_at, failures, only=only)
        if before is not None:
            outage = replace(outage, is_announced=before.is_announced)
            if outage.only is None:
                tx.rows.change(Task, _waiting(before), not_before=outage.retry_at)
            else:
                _wake(tx, before)
        if outage.is_announced or not _is_confirmed(outage, task):
            _save(tx, outage)
            return outage, None
        outage = replace(outage, is_announced=True)
        _save(tx, outage)
        event = webhooks.Event(webhooks.MODEL_UNAVAILABLE, _data(outage))
        return outage, webhooks.emit_everywhere(rt, tx, event)

    try:
        outage, event = rt.storage.write(change)
    except UniqueViolation:  # another worker has opened it at this moment
        outage, event = rt.storage.write(change)
    if outage is not None and event is not None:
        log.error("%s is unavailable, work that needs it waits: %s", model, outage.reason)
        webhooks.notify_plugins(rt, event)
    return outage


def _is_confirmed(outage: Outage, task: Task) -> bool:
    """Whether an outage is more than the failure of one task: several tasks failed, the provider
    asked for a pause, or the first task that failed did so again. A task that failed while the
    model answered others confirms nothing."""
    return outage.only is None or (outage.failures > 1 and task.attempts == 0)


def _latest_retry(rt: Runtime) -> datetime:
    """The latest plausible `retry_at`. A later one was set by a clock that was ahead."""
    longest = max(MAX_RETRY_AFTER, PROBE_SECONDS, rt.settings.worker.model_retry_max_seconds)
    return rt.clock() + timedelta(seconds=longest) + LAST


def _pause(rt: Runtime, failures: int, age: timedelta) -> float:
    """Seconds until the next probe. Pauses double, but to no more than a share of the outage's age,
    so that the end of a short outage is noticed soon: ten minutes take four failed probes, and the
    fifth follows half a minute later."""
    worker = rt.settings.worker
    doubled = worker.model_retry_seconds * 2 ** min(failures - 1, 30)
    bound = max(MIN_BOUND * worker.model_retry_seconds, age.total_seconds() * MAX_SHARE_OF_AGE)
    pause: float = min(doubled, bound, worker.model_retry_max_seconds)
    return pause


def _begin_probe(rt: Runtime, model: str, task: Task) -> bool:
    """Take the next probe; False if it is not due, or another worker has taken it."""

    def change(tx: Transaction) -> bool:
        before = _read(tx, model, lock=True)
        if before is None:
            return True
        if not before.may_probe(task, rt.clock(), _latest_retry(rt)):
            return False
        until = rt.clock() + timedelta(seconds=PROBE_SECONDS)
        _save(tx, replace(before, retry_at=until, probing=True))
        tx.rows.change(Task, _waiting(before), not_before=until)
        return True

    return rt.storage.write(change)


def _release_probe(rt: Runtime, model: str) -> None:
    def change(tx: Transaction) -> None:
        outage = _read(tx, model, lock=True)
        if outage is not None and outage.probing:
            _end(tx, outage)
            _save(tx, replace(outage, retry_at=rt.clock(), probing=False))

    rt.storage.write(change)


def postponed(tx: Transaction, task: Task, error: ModelUnavailable) -> Task:
    """The task as it waits for the model; it is due at once if the model has recovered since. A
    task that failed itself is the last to probe."""
    failed = error.__cause__ is not None
    outage = _read(tx, error.outage.model, lock=True)
    if outage is None or (outage.need_not_wait(task) and not failed):
        until = IMMEDIATELY
    else:
        until = outage.retry_at + (LAST if failed else NOT_LAST)
    outcome = {"paused": "a language model is unavailable"}
    failing = error.outage.model if failed else task.outcome.get(FAILED_BEFORE)
    if isinstance(failing, str):
        outcome[FAILED_BEFORE] = failing
    return replace(task, not_before=until, outcome=outcome, last_error=str(error))


def close(rt: Runtime, model: str) -> None:
    """The model has answered: all tasks that waited for it are due."""

    def change(tx: Transaction) -> tuple[Outage, webhooks.Event] | None:
        outage = _read(tx, model, lock=True)
        if outage is None:
            return None
        _end(tx, outage)
        if not outage.is_announced:
            return None
        data = _data(outage) | {"recovered_at": rt.clock().isoformat()}
        event = webhooks.Event(webhooks.MODEL_RECOVERED, data)
        return outage, webhooks.emit_everywhere(rt, tx, event)

    closed = rt.storage.write(change)
    if closed is not None:
        outage, event = closed
        log.warning("%s is available again, after %s", model, rt.clock() - outage.since)
        webhooks.notify_plugins(rt, event)


def retry_now(rt: Runtime) -> None:
    """For a worker that starts: the configuration may be another one. Models that are still
    configured are probed at once; outages of the others are forgotten."""
    _restart(rt, lambda outage, configured: True)


def end_stale(rt: Runtime) -> None:
    """Housekeeping. Forget outages of models that are no longer configured, and let models be
    probed at once whose next probe was set by a clock that was ahead."""
    latest = _latest_retry(rt)
    _restart(rt, lambda outage, configured: not configured or outage.retry_at > latest)


def _restart(rt: Runtime, is_chosen: Callable[[Outage, bool], bool]) -> None:
    """Probe the models of these outages at once, if they are still configured; else forget the
    outages."""
    configured = {model for kind in KINDS for model in models_of(rt, kind)}

    def chosen(tx: Transaction) -> list[Outage]:
        return [outage for outage in current(tx) if is_chosen(outage, outage.model in configured)]

    def change(tx: Transaction) -> None:
        now = rt.clock()
        for outage in chosen(tx):
            _end(tx, outage)
            if outage.model in configured:
                since = min(outage.since, now)
                _save(tx, replace(outage, since=since, retry_at=now, probing=False))

    with rt.storage.read() as tx:
        if not chosen(tx):
            return
    rt.storage.write(change)


def _end(tx: Transaction, outage: Outage) -> None:
    tx.rows.delete(Fact, equals(name=PREFIX + outage.model))
    _wake(tx, outage)


def _wake(tx: Transaction, outage: Outage) -> None:
    """Let the tasks that wait for the model be due."""
    tasks = tx.rows.page(Task, _waiting(outage))
    tx.rows.change(Task, _waiting(outage), not_before=IMMEDIATELY)
    tx.tasks.units_with_work.update(task.unit for task in tasks)


def _waiting(outage: Outage) -> Condition:
    return equals(state=PENDING, not_before=(outage.retry_at, outage.retry_at + LAST))


def _data(outage: Outage) -> dict[str, str]:
    """What endpoints of any workspace may know: no address, and no text of the provider."""
    return {
        "model": outage.model.partition(" at ")[0],
        "since": outage.since.isoformat(),
    }


def _read(tx: Transaction, model: str, *, lock: bool = False) -> Outage | None:
    fact = tx.rows.get(Fact, equals(name=PREFIX + model), lock=lock)
    return None if fact is None else _parsed(fact)


def _parsed(fact: Fact) -> Outage:
    values = json.loads(fact.value)
    times = {name: datetime.fromisoformat(values[name]) for name in ("since", "retry_at")}
    return Outage(**values | times)


def _save(tx: Transaction, outage: Outage) -> None:
    values = asdict(outage) | {
        "since": outage.since.isoformat(),
        "retry_at": outage.retry_at.isoformat(),
    }
    tx.facts.set(PREFIX + outage.model, json.dumps(values))
