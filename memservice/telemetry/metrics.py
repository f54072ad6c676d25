"""Prometheus metrics of one process, and the exposition of all that share a directory.

prometheus_client decides at import whether it keeps values in the process or in files of
`PROMETHEUS_MULTIPROC_DIR`. So it is imported only if metrics are enabled, after the parent process
has set this variable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import memservice
from memservice.telemetry.events import (
    TYPES,
    DialecticCompleted,
    DreamSpecialist,
    Event,
    MessageCreated,
    RepresentationCompleted,
    SummaryCreated,
)
from memservice.telemetry.meter import BUFFER_FULL, SEND_FAILED, TRACE, Meter

if TYPE_CHECKING:
    from prometheus_client import Counter, Gauge, Histogram, Metric
    from prometheus_client.metrics import MetricWrapperBase

DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable: the directory for the values of all processes of one server or worker."""

Instance = Literal["api", "deriver"]
"""The role of a process: answering requests, or background work."""

BUCKETS = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0)
"""Seconds of a request."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNKNOWN = "unknown"
"""The label of an unknown endpoint or method, so that callers cannot create labels."""
MAX_WORKSPACES = 1_000
"""Maximum number of workspace labels in one process. A label is kept until the process ends, and
callers choose the names of workspaces."""
OTHER_WORKSPACES = "(other)"
"""The label of all other workspaces; not a valid name of a workspace."""
LEVELS = ("minimal", "low", "medium", "high", "max")
SPECIALISTS = ("deduction", "induction", "card_refresh")
TOKEN_TYPES = ("input", "output")
DERIVER_TOKENS = (
    ("ingestion", "input", "prompt"),
    ("ingestion", "input", "messages"),
    ("ingestion", "output", "output_total"),
    ("summary", "input", "prompt"),
    ("summary", "input", "messages"),
    ("summary", "input", "previous_summary"),
    ("summary", "output", "output_total"),
)
REASONS = tuple(prefix + reason for prefix in ("", TRACE) for reason in (BUFFER_FULL, SEND_FAILED))
MAX_ERRORS = 100
"""Maximum number of labels for classes of errors in one process."""
OTHER_ERRORS = "(other)"
DELIVERED, TO_BE_RETRIED, DEAD_LETTER = "delivered", "to_be_retried", "dead_letter"
"""Outcomes of one attempt to deliver a webhook event."""
DUE, WAITING, RUNNING, FAILED = "due", "waiting", "running", "failed"
"""States of tasks: due and not in progress; due later; in a work unit that is in progress; failed
permanently."""
REPLICA_RESULTS = ("replica", "behind", "away")
CONNECTIONS = ("checked_out", "checked_in", "size", "overflow")
_PARAMETER = re.compile(r"<(?:[^:<>]+:)?([^<>]+)>")

M = TypeVar("M", bound="MetricWrapperBase")


class Metrics(Meter):
    """Also a listener of events. Create it in the process that uses it, after forking."""

    def __init__(self, namespace: str, instance: Instance) -> None:
        """`namespace` is a label of every metric."""
        import prometheus_client as prometheus

        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves some functions without types
        self._namespace = namespace
        self._instance = instance
        self._workspaces: set[str] = set()
        self._errors: set[str] = set()
        self._answered: dict[tuple[str, str | None, int], tuple[Counter, Histogram]] = {}
        """By method, rule and status, of which there are few. Looking up the labels takes longer
        than counting."""
        self.sampler: Callable[[], None] = lambda: None
        """Updates gauges of this process. Called after each request and before each exposition."""
        self.collector: Callable[[], None] = lambda: None
        """Updates gauges of the whole installation. Called before each exposition."""
        self._registry = prometheus.CollectorRegistry()

        def counter(name: str, help: str, *labels: str) -> Counter:
            return prometheus.Counter(name, help, ["namespace", *labels], registry=self._registry)

        def gauge(
            name: str,
            help: str,
            *labels: str,
            mode: Literal["livesum", "mostrecent", "livemax"] = "livesum",
        ) -> Gauge:
            return prometheus.Gauge(
                name, help, ["namespace", *labels], registry=self._registry, multiprocess_mode=mode
            )

        self.requests = counter(
            "api_requests_total", "Answered requests", "method", "endpoint", "status_code"
        )
        self.request_seconds: Histogram = prometheus.Histogram(
            "api_request_duration_seconds",
            "Time until the response, or the end of a streamed response",
            ["namespace", "method", "endpoint"],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self.messages = counter("messages_created_total", "Stored messages", "workspace_name")
        self.chats = counter(
            "dialectic_calls_total",
            "Answered questions",
            "workspace_name",
            "reasoning_level",
        )
        self.tasks = counter(
            "deriver_queue_items_processed_total",
            "Completed tasks",
            "workspace_name",
            "task_type",
        )
        self.deriver_tokens = counter(
            "deriver_tokens_processed_total",
            "Tokens for deriving and summarising",
            "task_type",
            "token_type",
            "component",
        )
        self.chat_tokens = counter(
            "dialectic_tokens_processed_total",
            "Tokens for answering",
            "token_type",
            "component",
            "reasoning_level",
        )
        self.dream_tokens = counter(
            "dreamer_tokens_processed_total",
            "Tokens for consolidating",
            "specialist_name",
            "token_type",
        )
        self.events_emitted = counter(
            "telemetry_events_emitted_total", "Events queued for the collector", "type"
        )
        self.events_sampled_out = counter(
            "telemetry_events_sampled_out_total", "Events outside the sample", "type"
        )
        self.events_dropped = counter("telemetry_events_dropped_total", "Dropped events", "reason")
        self.buffer_size = gauge("telemetry_buffer_size", "Pending events")
        self.embeddings_pending = gauge(
            "message_embeddings_pending",
            "Pending tasks that embed rows",
            mode="mostrecent",
        )
        self.models_unavailable = gauge(
            "models_unavailable",
            "Language models that are unavailable",
            mode="mostrecent",
        )
        self.queries = gauge(
            "db_queries_in_flight", "Connections to the database in use", "instance_type"
        )
        self.connections = gauge(
            "db_pool_connections", "Connections to the database", "instance_type", "state"
        )
        self.replica_reads = gauge(
            "db_replica_reads", "Reads that were allowed at a replica", "instance_type", "result"
        )
        self.backlog = gauge(
            "memservice_tasks", "Background tasks", "kind", "state", mode="mostrecent"
        )
        self.oldest = gauge(
            "memservice_oldest_task_seconds",
            "Time since the oldest task that is due, and not in progress, became due",
            "kind",
            mode="mostrecent",
        )
        self.failures = counter(
            "memservice_task_failures_total", "Failed attempts of tasks", "kind", "error"
        )
        self.deliveries = counter(
            "memservice_webhook_deliveries_total", "Attempts to deliver webhook events", "outcome"
        )
        self.workers = gauge(
            "memservice_workers", "Workers with a recent heartbeat", mode="mostrecent"
        )
        self.parts = gauge(
            "memservice_part_up",
            "Whether a part of the installation answers: 1 or 0",
            "part",
            mode="mostrecent",
        )
        self.build = gauge("memservice_build_info", "This release: 1", "version", mode="livemax")
        # No text is embedded in the path of a request, so these stay at 0. Dashboards query them.
        never = (counter("embed_now_tasks_shed_total", "Texts not embedded immediately"),)
        idle = (gauge("embed_now_tasks_in_flight", "Texts being embedded immediately"),)
        for metric in (
            *never,
            *idle,
            self.buffer_size,
            self.embeddings_pending,
            self.models_unavailable,
            self.workers,
        ):
            metric.labels(namespace)
        self._initialise_series()

    def _initialise_series(self) -> None:
        """Create all series with a bounded set of labels, at 0."""
        for metric, label_sets in (
            (self.deriver_tokens, DERIVER_TOKENS),
            (self.chat_tokens, tuple(product(TOKEN_TYPES, ("total",), LEVELS))),
            (self.dream_tokens, tuple(product(SPECIALISTS, TOKEN_TYPES))),
            (self.events_emitted, tuple((kind.TYPE,) for kind in TYPES)),
            (self.events_sampled_out, tuple((kind.TYPE,) for kind in TYPES if kind.HIGH_VOLUME)),
            (self.events_dropped, tuple((reason,) for reason in REASONS)),
            (self.deliveries, ((DELIVERED,), (TO_BE_RETRIED,), (DEAD_LETTER,))),
            (self.queries, ((self._instance,),)),
            (self.connections, tuple((self._instance, state) for state in CONNECTIONS)),
        ):
            for labels in label_sets:
                self._labelled(metric, *labels)
        self._labelled(self.build, memservice.__version__).set(1)

    def _workspace(self, name: str) -> str:
        """The label of a workspace: its name, up to `MAX_WORKSPACES` different ones."""
        if name not in self._workspaces:
            if len(self._workspaces) >= MAX_WORKSPACES:
                return OTHER_WORKSPACES
            self._workspaces.add(name)
        return name

    def _labelled(self, metric: M, *labels: str) -> M:
        return metric.labels(self._namespace, *labels)

    # The methods of `Meter`.

    def emitted(self, kind: str) -> None:
        self._labelled(self.events_emitted, kind).inc()

    def sampled_out(self, kind: str) -> None:
        self._labelled(self.events_sampled_out, kind).inc()

    def dropped(self, reason: str, number: int) -> None:
        self._labelled(self.events_dropped, reason).inc(number)

    def waiting(self, number: int) -> None:
        self._labelled(self.buffer_size).set(number)

    # Requests, tasks and events.

    def __call__(self, event: Event, at: datetime) -> None:
        if isinstance(event, MessageCreated):
            self._labelled(self.messages, self._workspace(event.workspace_name)).inc(
                event.message_count
            )
        elif isinstance(event, DialecticCompleted):
            level = event.reasoning_level
            self._labelled(self.chats, self._workspace(event.workspace_name), level).inc()
            self._labelled(self.chat_tokens, "input", "total", level).inc(event.input_tokens)
            self._labelled(self.chat_tokens, "output", "total", level).inc(event.output_tokens)
        elif isinstance(event, RepresentationCompleted):
            self._labelled(self.deriver_tokens, "ingestion", "input", "prompt").inc(
                event.prompt_scaffold_tokens
            )
            self._labelled(self.deriver_tokens, "ingestion", "input", "messages").inc(
                event.prompt_message_tokens
            )
            self._labelled(self.deriver_tokens, "ingestion", "output", "output_total").inc(
                event.output_tokens
            )
        elif isinstance(event, SummaryCreated):
            self._labelled(self.deriver_tokens, "summary", "input", "prompt").inc(
                event.prompt_scaffold_tokens
            )
            self._labelled(self.deriver_tokens, "summary", "input", "messages").inc(
                event.message_tokens
            )
            self._labelled(self.deriver_tokens, "summary", "input", "previous_summary").inc(
                event.previous_summary_tokens
            )
            self._labelled(self.deriver_tokens, "summary", "output", "output_total").inc(
                event.output_tokens
            )
        elif isinstance(event, DreamSpecialist):
            self._labelled(self.dream_tokens, event.specialist_type, "input").inc(
                event.input_tokens
            )
            self._labelled(self.dream_tokens, event.specialist_type, "output").inc(
                event.output_tokens
            )

    def answered(self, method: str, rule: str | None, status: int, seconds: float) -> None:
        """Count an answered request. `rule` is Flask's; None without a route."""
        known_method = method if method in METHODS else UNKNOWN
        key = known_method, rule, status
        if key not in self._answered:
            endpoint = UNKNOWN if rule is None else template(rule)
            self._answered[key] = (
                self._labelled(self.requests, known_method, endpoint, str(status)),
                self._labelled(self.request_seconds, known_method, endpoint),
            )
        number, duration = self._answered[key]
        number.inc()
        duration.observe(seconds)
        self.sampler()

    def worked(self, kind: str, workspace_id: str, number: int) -> None:
        """Count completed tasks of a workspace."""
        self._labelled(self.tasks, self._workspace(workspace_id), kind).inc(number)

    def pool(self, in_use: int, idle: int, size: int, overflow: int) -> None:
        """Set the current numbers of this process's database connections."""
        self._labelled(self.queries, self._instance).set(in_use)
        for state, number in zip(CONNECTIONS, (in_use, idle, size, overflow), strict=True):
            self._labelled(self.connections, self._instance, state).set(number)

    def replica(self, at_replica: int, behind: int, away: int) -> None:
        """Set the numbers of reads of this process since its start: answered by a replica, and by
        the primary because the replica was behind or away."""
        for result, number in zip(REPLICA_RESULTS, (at_replica, behind, away), strict=True):
            self._labelled(self.replica_reads, self._instance, result).set(number)

    def failure(self, kind: str, error: str) -> None:
        """Count a failed attempt of a task. `error` is the class of the error; plugins define
        some."""
        if error not in self._errors:
            if len(self._errors) >= MAX_ERRORS:
                error = OTHER_ERRORS
            self._errors.add(error)
        self._labelled(self.failures, kind, error).inc()

    def delivery(self, outcome: str) -> None:
        """Count an attempt to deliver an event."""
        self._labelled(self.deliveries, outcome).inc()

    # Gauges of the installation, set by `collector`.

    def pending(self, embeddings: int, models_unavailable: int) -> None:
        self._labelled(self.embeddings_pending).set(embeddings)
        self._labelled(self.models_unavailable).set(models_unavailable)

    def tasks_of(self, kind: str, numbers: Mapping[str, int], oldest_seconds: float) -> None:
        """Set the number of tasks of a kind by state, and the age of the oldest due one (0:
        none)."""
        for state, number in numbers.items():
            self._labelled(self.backlog, kind, state).set(number)
        self._labelled(self.oldest, kind).set(oldest_seconds)

    def alive(self, workers: int) -> None:
        self._labelled(self.workers).set(workers)

    def part(self, name: str, is_up: bool) -> None:
        """Set whether a part answers."""
        self._labelled(self.parts, name).set(is_up)

    def exposition(self) -> tuple[bytes, str]:
        """The metrics of all processes that share this one's directory, in Prometheus's format, and
        the content type."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

        self.sampler()
        self.collector()
        registry = self._registry
        directory = os.environ.get(DIRECTORY)
        if directory:
            _delete_stale_gauges(Path(directory))
            registry = CollectorRegistry()
            registry.register(_SharedValues(Path(directory)))
        return generate_latest(registry), CONTENT_TYPE_LATEST


class _SharedValues:
    """The values of all processes that share a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def collect(self) -> Iterable[Metric]:
        from prometheus_client.multiprocess import MultiProcessCollector

        # prometheus_client's own collector fails at a file that another process has just created:
        # it is empty for a moment.
        files = [str(file) for file in self._directory.glob("*.db") if _has_values(file)]
        metrics: Iterable[Metric] = MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]
        return metrics


def _has_values(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:  # of a process that has ended
        return False


def template(rule: str) -> str:
    """A Flask rule as a template, as in OpenAPI: `/v3/workspaces/{workspace_id}`."""
    return _PARAMETER.sub(r"{\1}", rule)


def _delete_stale_gauges(directory: Path) -> None:
    """Delete the gauges of processes that have ended, which would count forever. Their counters
    stay."""
    for file in directory.glob("gauge_live*_*.db"):
        pid = file.stem.rpartition("_")[2]
        if pid.isdecimal() and not _is_alive(int(pid)):
            file.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
