"""The composition root: the one place that puts the parts of a process together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from memservice.domain.errors import ConfigurationError, NoStore
from memservice.plugins import Plugins, load_plugins
from memservice.runtime import Runtime, utc_now
from memservice.services.events.model_calls import CallEvents
from memservice.services.events.store_metrics import TaskCounter, pool_sampler
from memservice.services.events.trace_file import TraceFile
from memservice.services.events.traces import TraceEvents
from memservice.services.usage.ledger import Ledger
from memservice.settings import Settings, data_directory, load_settings
from memservice.spi.providers import Context
from memservice.spi.storage import Replicated, Storage
from memservice.telemetry.bus import Events
from memservice.telemetry.endpoint import MetricsEndpoint
from memservice.telemetry.exporter import Exporter
from memservice.telemetry.meter import TRACE, Meter
from memservice.telemetry.metrics import Metrics
from memservice.worker.wakeups import Wakeups

if TYPE_CHECKING:
    from memservice.reasoning.apart.reasoner import Stop

log = logging.getLogger("memservice")

Role = Literal["api", "worker", "batch", "command"]
"""`api` and `worker` report events, metrics and usage. So does `batch`, a command that calls an
embedder, but without metrics. `command` works on the store and reports nothing to a collector."""
COMPONENTS: Mapping[Role, Literal["api", "deriver"]] = {"api": "api", "worker": "deriver"}
"""The name of a role in metrics."""


def open_runtime(
    settings: Settings | None = None,
    role: Role = "command",
    *,
    plugins: Plugins | None = None,
    clock: Callable[[], datetime] = utc_now,
    metrics: Metrics | None = None,
    stop: Stop | None = None,
) -> Runtime:
    """Open the parts that the settings (default: those of the environment) ask for. Raises
    `ConfigurationError`; what was opened by then is closed.

    `metrics` are those of a caller that has them already. `stop` is a worker's: see `Runtime`.
    """
    settings = settings or load_settings()
    plugins = plugins or load_plugins(settings)
    plugins.check()
    if role in COMPONENTS:
        for failure in plugins.failures:
            log.warning("%s", failure.sentence)
        # These processes wait for a store; commands do not.
        data_directory.create(settings.data_directory)
    metrics = metrics or metrics_of(settings, role)
    events = Events(plugins, clock)
    closing = ExitStack()
    try:
        storage = _open_storage(settings, plugins, clock)
        closing.callback(storage.close)
        if settings.app.redis_url:
            wakeups = Wakeups.to_queues(settings)
            closing.callback(wakeups.close)
            storage.on_commit(wakeups.wake)
        ledger = None
        if role != "command":
            ledger = Ledger(storage, clock)
            closing.callback(ledger.close)
            events.on_call(ledger)
            _report(settings, clock, events, metrics, closing)
        if metrics is not None:
            events.on_event(metrics)
            events.on_tasks(TaskCounter(storage, metrics))
            metrics.sampler = pool_sampler(storage, metrics)
        runtime = Runtime(
            settings,
            plugins,
            clock,
            storage=storage,
            events=events,
            closing=closing,
            metrics=metrics,
            unwritten_tokens=None if ledger is None else ledger.unwritten,
            stop=stop,
        )
        if metrics is not None:
            _report_metrics(runtime, role, metrics, closing)
    except BaseException:
        closing.close()
        raise
    return runtime


def metrics_of(settings: Settings, role: Role) -> Metrics | None:
    """The metrics of a process in this role; None if it has none, or they are off."""
    if not settings.metrics.enabled or role not in COMPONENTS:
        return None
    return Metrics(settings.metrics.namespace or settings.app.namespace, COMPONENTS[role])


def _open_storage(settings: Settings, plugins: Plugins, clock: Callable[[], datetime]) -> Storage:
    uri, folder = settings.db.connection_uri, settings.data_directory
    if folder is not None and not folder.is_dir():
        raise NoStore(f"There is no directory {folder}")
    options = {"uri": uri, **settings.db.as_mapping()}
    storage: Storage = plugins.open_provider(plugins.storage(uri), options, Context(clock, log))
    if settings.db.read_connection_uri and not isinstance(storage, Replicated):
        storage.close()
        raise ConfigurationError(
            f"The storage {storage.name!r} cannot read from a replica: unset DB_READ_CONNECTION_URI"
        )
    return storage


def _report(
    settings: Settings,
    clock: Callable[[], datetime],
    events: Events,
    metrics: Metrics | None,
    closing: ExitStack,
) -> None:
    """Report calls and events to the collector and the file that the settings name."""
    telemetry = settings.telemetry
    namespace = telemetry.namespace or settings.app.namespace
    events.on_call(CallEvents(events))
    if telemetry.enabled:
        exporter = Exporter(telemetry, namespace, metrics or Meter())
        closing.callback(exporter.close)
        events.on_event(exporter)
    if telemetry.enabled and telemetry.trace_payloads_enabled:
        traces = Exporter(telemetry, namespace, metrics or Meter(), TRACE)
        closing.callback(traces.close)
        events.on_call(TraceEvents(telemetry, clock, traces))
    if settings.app.reasoning_traces_file:
        events.on_call(TraceFile(clock, Path(settings.app.reasoning_traces_file)))


def _report_metrics(runtime: Runtime, role: Role, metrics: Metrics, closing: ExitStack) -> None:
    """Let `metrics` include those of the whole installation. A worker serves them at an address of
    its own."""
    from memservice.worker.installation_metrics import InstallationMetrics

    metrics.collector = InstallationMetrics(runtime, metrics)
    if role == "worker":
        address = runtime.settings.metrics
        closing.callback(MetricsEndpoint(address.host, address.port, metrics.exposition).close)
