"""Circuit breakers of language models, kept in the store so that all workers see them.

A failure of the provider (no connection, time-out, wrong key, quota, 5xx) is not the task's. It
opens the breaker of that model: tasks that need the model wait, with their tries untouched, until
the next probe, which is one call of one task at a time. The first answer closes the breaker and
lets all tasks run.

Waiting tasks are recognised by their `not_before`, which is the breaker's `retry_at` to the
microsecond.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from memservice.domain.filters import equals
from memservice.domain.filters.ast import Compare, Condition
from memservice.domain.records import IMMEDIATELY, PENDING, Fact, Task
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
MAX_RETRY_AFTER = 3_600.0
"""Longest pause, in seconds, that a provider can ask for."""
MAX_REASON = 500


@dataclass(frozen=True, slots=True)
class Outage:
    """An open breaker."""

    model: str
    since: datetime
    reason: str
    retry_at: datetime
    """When the next probe may start; during a probe, when another one may."""
    failures: int = 1
    probing: bool = False

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

    def __init__(self, rt: Runtime, models: tuple[str, ...], probed: tuple[str, ...]) -> None:
        self._rt = rt
        self._models = models
        self._probed = probed
        """Models that were unavailable when it began, and are not known to have recovered."""
        self._retried: set[str] = set()
        """Models whose failed calls this attempt repeats, and no other of this process."""

    def may_retry(self, model: str) -> bool:
        """Never in a probe; otherwise in one attempt of this process at a time. The others end, and
        wait for what becomes of that one."""
        if self._probed or self._rt.retrying.setdefault(model, self) is not self:
            return False
        self._retried.add(model)
        return True

    def answered(self) -> None:
        """Close the breakers that were open, or that other attempts opened during the retries."""
        models, self._probed = {*self._probed, *self._retried}, ()
        self._end_retries()
        for model in models:
            close(self._rt, model)

    def succeeded(self) -> None:
        """The work is done. Reasoners of plugins do not report each answer."""
        if _foreign(self._models) is not None:
            self.answered()

    def ended(self) -> None:
        """A probe that ended without a call leaves the next one to another task."""
        self._end_retries()
        for model in self._probed:
            _release_probe(self._rt, model)

    def _end_retries(self) -> None:
        for model in self._retried:
            self._rt.retrying.pop(model, None)
        self._retried.clear()

    def failed(self, error: Exception) -> Outage | None:
        """Open the breaker of the model that failed. None if the failure is the task's own."""
        if not isinstance(error, ModelFailure):
            return None
        if error.fault != "provider":
            self.answered()
            return None
        model = error.model or _foreign(self._models)
        if model is None:
            return None
        outage = open_(self._rt, model, error)
        self._probed = tuple(other for other in self._probed if other != model)
        return outage


def attempt(rt: Runtime, kind: str) -> Attempt | None:
    """Begin a try of a task of this kind. None if the kind calls no language model. Raises
    ModelUnavailable while a model that it needs is unavailable, unless this is the next probe."""
    models = models_of(rt, kind)
    if not models:
        return None
    with rt.storage.read() as tx:
        outages = [found for model in models if (found := _read(tx, model)) is not None]
    for outage in outages:
        if outage.retry_at > rt.clock() or not _begin_probe(rt, outage.model):
            with rt.storage.read() as tx:
                raise ModelUnavailable(_read(tx, outage.model) or outage)
    return Attempt(rt, models, tuple(outage.model for outage in outages))


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
    targets = [target(rt.settings.llm, config.fallback or config) for config in configs]
    return tuple(dict.fromkeys(model_name(found) for found in targets))


_REASONER = "reasoner "


def _foreign(models: tuple[str, ...]) -> str | None:
    """The reasoner of a plugin, which does not say which model failed."""
    return next((model for model in models if model.startswith(_REASONER)), None)


def current(tx: Transaction) -> list[Outage]:
    """Models that are unavailable, by name."""
    facts = tx.rows.page(Fact, Compare("name", "gte", PREFIX))
    found = [_parsed(fact) for fact in facts if fact.name.startswith(PREFIX)]
    return sorted(found, key=lambda outage: outage.model)


def waiting(tx: Transaction, outage: Outage) -> int:
    """How many work units wait for the model."""
    return tx.rows.count(Task, _waiting(outage))


def open_(rt: Runtime, model: str, error: ModelFailure) -> Outage:
    """Record a failure of the provider; returns the outage, with the time of the next probe."""

    def change(tx: Transaction) -> tuple[Outage, webhooks.Event | None]:
        now, before = rt.clock(), _read(tx, model, lock=True)
        asked = min(error.retry_after or 0.0, MAX_RETRY_AFTER)
        reason = str(error)[:MAX_REASON]
        if before is not None and not before.probing and before.retry_at > now:
            # A call that began before the breaker opened.
            retry_at = max(before.retry_at, now + timedelta(seconds=asked))
            outage = replace(before, retry_at=retry_at)
        else:
            failures = 1 if before is None else before.failures + 1
            retry_at = now + timedelta(seconds=max(asked, _pause(rt, failures)))
            since = now if before is None else before.since
            outage = Outage(model, since, reason, retry_at, failures)
        _save(tx, outage)
        if before is not None:
            tx.rows.change(Task, _waiting(before), not_before=outage.retry_at)
            return outage, None
        return outage, webhooks.emit_everywhere(
            rt, tx, webhooks.Event(webhooks.MODEL_UNAVAILABLE, _data(outage))
        )

    try:
        outage, event = rt.storage.write(change)
    except UniqueViolation:  # another worker has opened it at this moment
        outage, event = rt.storage.write(change)
    if event is not None:
        log.error("%s is unavailable since now, work that needs it waits: %s", model, outage.reason)
        webhooks.tell(rt, event)
    return outage


def _pause(rt: Runtime, failures: int) -> float:
    worker = rt.settings.worker
    pause: float = worker.model_retry_seconds * 2 ** min(failures - 1, 30)
    return min(pause, worker.model_retry_max_seconds)


def _begin_probe(rt: Runtime, model: str) -> bool:
    """Take the next probe; False if it is not due, or another worker has taken it."""

    def change(tx: Transaction) -> bool:
        before = _read(tx, model, lock=True)
        if before is None:
            return True
        if before.retry_at > rt.clock():
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


def wait_until(tx: Transaction, outage: Outage) -> datetime:
    """When a task that needs this model is due; at once if the model has recovered meanwhile."""
    found = _read(tx, outage.model, lock=True)
    return IMMEDIATELY if found is None else found.retry_at


def close(rt: Runtime, model: str) -> None:
    """The model has answered: all tasks that waited for it are due."""

    def change(tx: Transaction) -> tuple[Outage, webhooks.Event] | None:
        outage = _read(tx, model, lock=True)
        if outage is None:
            return None
        _end(tx, outage)
        data = _data(outage) | {"recovered_at": rt.clock().isoformat()}
        event = webhooks.Event(webhooks.MODEL_RECOVERED, data)
        return outage, webhooks.emit_everywhere(rt, tx, event)

    closed = rt.storage.write(change)
    if closed is not None:
        outage, event = closed
        log.warning("%s is available again, after %s", model, rt.clock() - outage.since)
        webhooks.tell(rt, event)


def retry_now(rt: Runtime) -> None:
    """For a worker that starts: the configuration may be another one. Models that are still
    configured are probed at once; outages of the others are forgotten."""
    configured = {model for kind in KINDS for model in models_of(rt, kind)}

    def change(tx: Transaction) -> None:
        for outage in current(tx):
            _end(tx, outage)
            if outage.model in configured:
                _save(tx, replace(outage, retry_at=rt.clock(), probing=False))

    rt.storage.write(change)


def _end(tx: Transaction, outage: Outage) -> None:
    tx.rows.delete(Fact, equals(name=PREFIX + outage.model))
    tasks = tx.rows.page(Task, _waiting(outage))
    tx.rows.change(Task, _waiting(outage), not_before=IMMEDIATELY)
    tx.tasks.units_with_work.update(task.unit for task in tasks)


def _waiting(outage: Outage) -> Condition:
    return equals(state=PENDING, not_before=outage.retry_at)


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
