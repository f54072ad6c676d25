"""Watching a process at work: the ledger of usage, events to a collector, metrics. All of it is off
the path of requests and work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memservice.domain.filters import equals
from memservice.domain.records import PENDING, Task
from memservice.runtime import Runtime
from memservice.services.events.model_calls import CallEvents
from memservice.services.events.traces import TraceEvents, TraceFile
from memservice.services.tasks import outbox
from memservice.services.usage.ledger import Ledger
from memservice.spi.storage import Pooled
from memservice.telemetry.exporter import Exporter
from memservice.telemetry.meter import TRACE, Meter
from memservice.telemetry.metrics import Metrics

NAMES_KEPT = 10_000
"""Workspaces whose names are remembered."""


def observe(rt: Runtime, metrics: Metrics | None = None) -> None:
    """Begin to watch a runtime, before its storage is wrapped in anything; its `close` ends it and
    lets nothing that waits be lost. Once is enough."""
    if rt.observed:
        return
    rt.observed = True
    settings = rt.settings.telemetry
    ledger = Ledger(rt)
    rt.unwritten_tokens = ledger.unwritten
    rt.call_listeners += [ledger, CallEvents(rt)]
    rt.closing.append(ledger.close)
    if metrics is not None:
        rt.event_listeners.append(metrics)
        rt.work_listeners.append(_Tasks(rt, metrics))
        metrics.sampler = _sampler(rt, metrics)
    if settings.enabled:
        exporter = Exporter(
            settings, settings.namespace or rt.settings.app.namespace, metrics or Meter()
        )
        rt.event_listeners.append(exporter)
        rt.closing.append(exporter.close)
    if settings.enabled and settings.trace_payloads_enabled:
        traces = Exporter(
            settings, settings.namespace or rt.settings.app.namespace, metrics or Meter(), TRACE
        )
        rt.call_listeners.append(TraceEvents(rt, traces))
        rt.closing.append(traces.close)
    if rt.settings.app.reasoning_traces_file:
        rt.call_listeners.append(TraceFile(rt, Path(rt.settings.app.reasoning_traces_file)))


def count_waiting(rt: Runtime, metrics: Metrics) -> None:
    """What the store alone knows, for metrics. To be called when they are asked for. Raises
    `Unavailable`."""
    with rt.storage.read() as tx:
        metrics.pending(tx.rows.count(Task, equals(kind=outbox.EMBED, state=PENDING)))


class _Tasks:
    """Counts tasks under the names of their workspaces."""

    def __init__(self, rt: Runtime, metrics: Metrics) -> None:
        self._rt = rt
        self._metrics = metrics
        self._names: dict[int, str] = {}

    def __call__(self, kind: str, workspace_key: int | None, number: int) -> None:
        self._metrics.worked(
            kind, "" if workspace_key is None else self._name(workspace_key), number
        )

    def _name(self, key: int) -> str:
        name = self._names.get(key)
        if name is None:
            with self._rt.storage.read() as tx:
                workspace = tx.workspaces.by_key(key)
            if len(self._names) >= NAMES_KEPT:
                self._names.clear()
            name = self._names[key] = workspace.slug if workspace is not None else ""
        return name


def _sampler(rt: Runtime, metrics: Metrics) -> Callable[[], None]:
    storage = rt.storage

    def sample() -> None:
        state = storage.pool() if isinstance(storage, Pooled) else None
        if state is not None:
            metrics.pool(state.in_use, state.idle, state.size, state.overflow)

    return sample
