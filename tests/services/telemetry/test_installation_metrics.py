"""Metrics of the whole installation: the backlog by kind, failures, deliveries, workers, parts. The
alert rules over them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from memservice.domain.errors import Unavailable
from memservice.hookspecs import hookimpl
from memservice.services import webhooks
from memservice.services.tasks import lease_owner
from memservice.spi.providers import WebhookTransportProvider
from memservice.spi.webhooks import Outcome
from memservice.telemetry.metrics import MAX_ERRORS, OTHER_ERRORS, Metrics
from memservice.worker import heartbeats
from memservice.worker.installation_metrics import InstallationMetrics
from memservice.worker.polling import Worker
from services.conftest import OpenServices
from services.telemetry.test_metrics import exposition, samples, value
from support.pipeline.fakes import ScriptedReasoner
from support.services.services import ME, WORKSPACE, Services
from support.telemetry.rules import Rule, Samples

NOTHING = {"due": 0, "waiting": 0, "running": 0, "failed": 0}
TWICE = {"WORKER_MAX_ATTEMPTS": "2", "REASONER": "scripted"}
ONCE = {**TWICE, "WORKER_MAX_ATTEMPTS": "1"}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("memservice", "deriver")


def opened(
    open_services: OpenServices, metrics: Metrics, *plugins: object, **settings: str
) -> Services:
    services = open_services(*plugins, role="worker", metrics=metrics, **settings)
    metrics.collector = InstallationMetrics(services.rt, metrics, every=0)
    return services


def tasks(metrics: Metrics, kind: str) -> dict[str, float]:
    text = exposition(metrics)
    return {state: value(text, "memservice_tasks", kind=kind, state=state) for state in NOTHING}


def oldest(metrics: Metrics, kind: str) -> float:
    return value(exposition(metrics), "memservice_oldest_task_seconds", kind=kind)


def failing() -> ScriptedReasoner:
    reasoner = ScriptedReasoner()

    def act(request: object) -> None:
        raise RuntimeError("what ann said")

    reasoner.act = act
    return reasoner


@pytest.mark.slow
def test_tasks_are_counted_by_kind_and_state(open_services: OpenServices, metrics: Metrics) -> None:
    services = opened(open_services, metrics)
    assert tasks(metrics, "representation") == NOTHING
    services.say("s", ("ann", "I keep bees."))
    services.clock.advance(seconds=90)
    assert tasks(metrics, "representation") == {**NOTHING, "due": 1}
    assert (oldest(metrics, "representation"), oldest(metrics, "summary")) == (90, 0)
    with services.rt.storage.read() as tx:
        (unit,) = tx.tasks.ready(services.rt.clock(), 10)
    owner, now = lease_owner.start_claim(), services.rt.clock()
    lease = services.rt.storage.write(lambda tx: tx.tasks.claim(unit, owner, now, 60))
    assert lease is not None
    assert tasks(metrics, "representation") == {**NOTHING, "running": 1}
    assert oldest(metrics, "representation") == 0
    services.rt.storage.write(lambda tx: tx.tasks.release(lease))
    lease_owner.end_claim(owner)
    Worker(services.rt).run_until_idle(30)
    assert tasks(metrics, "representation") == NOTHING


@pytest.mark.slow
def test_failures_are_counted_by_kind_and_class_of_error(
    open_services: OpenServices, metrics: Metrics
) -> None:
    services = opened(open_services, metrics, failing(), **TWICE)
    services.say("s", ("ann", "I keep bees."))
    Worker(services.rt).run_until_idle(30)
    assert tasks(metrics, "representation") == {**NOTHING, "waiting": 1}
    services.clock.advance(hours=1)
    Worker(services.rt).run_until_idle(30)
    labels = {"kind": "representation", "error": "RuntimeError"}
    assert value(exposition(metrics), "memservice_task_failures_total", **labels) == 2
    assert tasks(metrics, "representation") == {**NOTHING, "failed": 1}
    assert "what ann said" not in exposition(metrics)


def test_the_number_of_error_classes_is_bounded(metrics: Metrics) -> None:
    for number in range(MAX_ERRORS + 5):
        metrics.failure("embed", f"Error{number}")
    labels = {"kind": "embed", "error": OTHER_ERRORS}
    assert value(exposition(metrics), "memservice_task_failures_total", **labels) == 5
    metrics.failure("embed", "Error0")
    error_labels = {"kind": "embed", "error": "Error0"}
    assert value(exposition(metrics), "memservice_task_failures_total", **error_labels) == 2


class Transport:
    """Accepts `odd:` URLs; each delivery has the next of these results."""

    def __init__(self, *statuses: int) -> None:
        self._statuses = list(statuses)

    def check(self, url: str) -> None:
        return None

    def deliver(self, url: str, body: bytes, headers: object) -> Outcome:
        return Outcome(status=self._statuses.pop(0))

    @hookimpl
    def memservice_webhook_transports(self) -> Iterator[WebhookTransportProvider]:
        yield WebhookTransportProvider(
            name="odd", schemes=("odd",), open=lambda settings, context: self
        )


@pytest.mark.slow
def test_deliveries_are_counted_by_outcome(open_services: OpenServices, metrics: Metrics) -> None:
    services = opened(
        open_services, metrics, Transport(500, 200, 500, 500), WEBHOOK_MAX_ATTEMPTS="2"
    )
    services.peer("ann")
    hook = webhooks.register(services.rt, ME, WORKSPACE, "odd:place").endpoint
    for _ in range(2):
        webhooks.send_test(services.rt, ME, WORKSPACE)
        for _ in range(2):
            Worker(services.rt).run_until_idle(30)
            services.clock.advance(hours=1)
    text = exposition(metrics)
    assert {
        outcome: value(text, "memservice_webhook_deliveries_total", outcome=outcome)
        for outcome in ("delivered", "to_be_retried", "dead_letter")
    } == {"delivered": 1, "to_be_retried": 2, "dead_letter": 1}
    assert tasks(metrics, "webhook") == {**NOTHING, "failed": 1}
    assert hook.uid


def parts(metrics: Metrics) -> dict[str, float]:
    return {
        dict(labels)["part"]: number
        for (name, labels), number in samples(exposition(metrics)).items()
        if name == "memservice_part_up"
    }


def test_parts_that_do_not_answer_are_down(
    open_services: OpenServices, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = opened(open_services, metrics)
    assert parts(metrics) == {"store": 1, "vector_index": 1}
    services.say("s", ("ann", "I keep bees."))
    assert tasks(metrics, "representation") == {**NOTHING, "due": 1}

    def away(*_: object) -> Any:
        raise Unavailable("the database is away")

    monkeypatch.setattr(services.rt.storage, "read", away)
    assert parts(metrics) == {"store": 0, "vector_index": 0}
    assert tasks(metrics, "representation") == {**NOTHING, "due": 1}, "the last numbers stay"


def test_redis_is_a_part_where_it_is_configured(
    open_services: OpenServices, metrics: Metrics
) -> None:
    opened(open_services, metrics, REDIS_URL="redis://127.0.0.1:1/0")
    assert parts(metrics)["redis"] == 0


def test_numbers_are_collected_once_in_a_while(
    open_services: OpenServices, metrics: Metrics
) -> None:
    services = open_services(role="worker", metrics=metrics)
    assert tasks(metrics, "representation") == NOTHING
    services.say("s", ("ann", "I keep bees."))
    assert tasks(metrics, "representation") == NOTHING


@pytest.fixture(scope="module")
def rules(root: Path) -> dict[str, Rule]:
    """By the name of the alert."""
    file = root / "config" / "memservice_deployment" / "docker" / "alerts.yml"
    (group,) = yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}
    return {rule["alert"]: Rule(rule["expr"]) for rule in group["rules"]}


def test_alerts_ask_for_metrics_and_labels_that_exist(
    rules: dict[str, Rule], open_services: OpenServices, metrics: Metrics
) -> None:
    opened(open_services, metrics)
    labels_of: dict[str, set[str]] = {}
    for name, labels in samples(exposition(metrics)):
        labels_of.setdefault(name, set()).update(dict(labels))
    assert len(rules) == 4
    for name, rule in rules.items():
        assert rule.labels <= labels_of[rule.metric], name


def firing(rules: dict[str, Rule], now: Samples, before: Samples) -> dict[str, list[str]]:
    """The alerts that fire, with the value of their last label."""
    return {
        name: sorted(list(labels.values())[-1] for labels in alerts)
        for name, rule in rules.items()
        if (alerts := rule.firing(now, before))
    }


@pytest.mark.slow
@pytest.mark.usefixtures("process_as_before")
def test_each_alert_fires_for_its_fault_alone(
    rules: dict[str, Rule], open_services: OpenServices, metrics: Metrics
) -> None:
    services = opened(open_services, metrics, failing(), REDIS_URL="redis://127.0.0.1:1/0", **ONCE)
    name = lease_owner.start_claim()

    def now() -> Samples:
        heartbeats.register(services.rt, name)
        return samples(exposition(metrics))

    well = now()
    assert firing(rules, well, well) == {"MemservicePartDown": ["redis"]}
    services.say("s", ("ann", "I keep bees."))
    services.clock.advance(seconds=301)
    late = now()
    assert firing(rules, late, well) == {
        "MemservicePartDown": ["redis"],
        "MemserviceWorkIsLate": ["representation"],
    }
    Worker(services.rt).run_until_idle(30)
    failed = now()
    assert firing(rules, failed, late) == {
        "MemservicePartDown": ["redis"],
        "MemserviceTasksFailed": ["representation"],
    }
    assert firing(rules, failed, failed) == {"MemservicePartDown": ["redis"]}
    services.clock.advance(seconds=61)
    alone = samples(exposition(metrics))
    assert firing(rules, alone, failed) == {
        "MemserviceNoWorker": ["memservice"],
        "MemservicePartDown": ["redis"],
    }
    lease_owner.end_claim(name)
