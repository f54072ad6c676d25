"""Metrics by the contract's names and labels, bounded sets of labels from the start, and counts
that are right."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from prometheus_client.mmap_dict import MmapedDict, mmap_key

import memservice
from memservice.app import create_app
from memservice.telemetry import metrics as telemetry_metrics
from memservice.telemetry.endpoint import MetricsEndpoint
from memservice.telemetry.events import DialecticCompleted, DreamSpecialist, Event, SummaryCreated
from memservice.telemetry.metrics import UNKNOWN, Metrics, template
from memservice.worker.polling import Worker
from services.conftest import OpenServices
from support.telemetry.contract import EVENTS

LISTED = """
api_requests_total counter method endpoint status_code
api_request_duration_seconds histogram method endpoint
messages_created_total counter workspace_name
dialectic_calls_total counter workspace_name reasoning_level
deriver_queue_items_processed_total counter workspace_name task_type
deriver_tokens_processed_total counter task_type token_type component
dialectic_tokens_processed_total counter token_type component reasoning_level
dreamer_tokens_processed_total counter specialist_name token_type
telemetry_events_emitted_total counter type
telemetry_events_sampled_out_total counter type
telemetry_events_dropped_total counter reason
telemetry_buffer_size gauge
embed_now_tasks_shed_total counter
embed_now_tasks_in_flight gauge
message_embeddings_pending gauge
models_unavailable gauge
db_queries_in_flight gauge instance_type
db_pool_connections gauge instance_type state
db_replica_reads gauge instance_type result
memservice_tasks gauge kind state
memservice_oldest_task_seconds gauge kind
memservice_task_failures_total counter kind error
memservice_webhook_deliveries_total counter outcome
memservice_workers gauge
memservice_part_up gauge part
memservice_build_info gauge version
"""
"""Those of the contract, and those of memservice. Each also has the label `namespace`."""

BUCKETS = "0.05 0.1 0.25 0.5 0.75 1.0 2.0 5.0 10.0 20.0 30.0 60.0 120.0 +Inf".split()
SAMPLE = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Sample = tuple[str, frozenset[tuple[str, str]]]


def samples(text: str) -> dict[Sample, float]:
    by_sample: dict[Sample, float] = {}
    for line in text.splitlines():
        match = SAMPLE.match(line)
        if match and not line.startswith("#"):
            by_sample[match["name"], frozenset(LABEL.findall(match["labels"] or ""))] = float(
                match["value"]
            )
    return by_sample


def value(text: str, name: str, **labels: str) -> float:
    return samples(text)[name, frozenset({"namespace": "memservice", **labels}.items())]


def exposition(metrics: Metrics) -> str:
    return metrics.exposition()[0].decode()


@pytest.fixture
def client(open_services: OpenServices) -> FlaskClient:
    services = open_services(role="api", METRICS_ENABLED="true")
    return create_app(runtime=services.rt).test_client()


def test_requests_are_counted_by_method_route_and_status() -> None:
    metrics = Metrics("memservice", "api")
    route, template_of_route = "/v3/x/<workspace_id>", "/v3/x/{workspace_id}"
    expected = {
        ("GET", template_of_route, "200"): 3,
        ("GET", template_of_route, "404"): 2,
        ("POST", template_of_route, "200"): 1,
        ("GET", "/v3/y", "200"): 1,
        ("GET", UNKNOWN, "404"): 1,
        (UNKNOWN, UNKNOWN, "404"): 1,
    }
    for method, rule, status, times in (
        ("GET", route, 200, 3),
        ("GET", route, 404, 2),
        ("POST", route, 200, 1),
        ("GET", "/v3/y", 200, 1),
        ("GET", None, 404, 1),
        ("BREW", None, 404, 1),
    ):
        for _ in range(times):
            metrics.answered(method, rule, status, 0.1)
    text = exposition(metrics)
    for (method, endpoint, code), number in expected.items():
        labels = {"method": method, "endpoint": endpoint}
        assert value(text, "api_requests_total", **labels, status_code=code) == number
    labels = {"method": "GET", "endpoint": template_of_route}
    assert value(text, "api_request_duration_seconds_count", **labels) == 5


@pytest.mark.slow
def test_every_metric_has_its_name_type_and_labels(open_services: OpenServices) -> None:
    metrics = Metrics("here", "deriver")
    services = open_services(role="worker", metrics=metrics)
    metrics.answered("GET", "/v3/x/<workspace_id>", 200, 0.3)
    metrics.worked("representation", "w", 1)
    metrics.failure("representation", "ValueError")
    metrics.replica(1, 0, 0)
    services.say("s", ("ann", "hi"))
    services.rt.emit(_chat())
    text = exposition(metrics)
    kinds = dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE"))
    expected = {}
    for line in LISTED.strip().splitlines():
        name, kind, *labels = line.split()
        expected[name] = kind
        label_sets = {
            frozenset(name for name, _ in labels)
            for (sample, labels) in samples(text)
            if sample in (name, f"{name}_count")
        }
        assert label_sets == {frozenset({"namespace", *labels})}, name
    assert kinds == expected
    assert {labels for _, labels in samples(text) if ("namespace", "here") not in labels} == set()


def test_bounded_labels_start_at_zero() -> None:
    text = exposition(Metrics("memservice", "api"))
    by_sample = samples(text)
    build = {"namespace": "memservice", "version": memservice.__version__}
    assert by_sample.pop(("memservice_build_info", frozenset(build.items()))) == 1
    assert set(by_sample.values()) == {0.0}
    for outcome in ("delivered", "to_be_retried", "dead_letter"):
        assert value(text, "memservice_webhook_deliveries_total", outcome=outcome) == 0
    for kind, listed in EVENTS.items():
        assert value(text, "telemetry_events_emitted_total", type=kind) == 0
        assert (
            (
                "telemetry_events_sampled_out_total",
                frozenset({("namespace", "memservice"), ("type", kind)}),
            )
            in samples(text)
        ) == listed.high_volume
    for reason in ("buffer_full", "send_failed", "trace_buffer_full", "trace_send_failed"):
        assert value(text, "telemetry_events_dropped_total", reason=reason) == 0
    for level in ("minimal", "low", "medium", "high", "max"):
        assert (
            value(
                text,
                "dialectic_tokens_processed_total",
                token_type="input",
                component="total",
                reasoning_level=level,
            )
            == 0
        )
    assert (
        value(
            text,
            "deriver_tokens_processed_total",
            task_type="summary",
            token_type="input",
            component="previous_summary",
        )
        == 0
    )
    assert (
        value(
            text, "dreamer_tokens_processed_total", specialist_name="deduction", token_type="output"
        )
        == 0
    )
    assert value(text, "embed_now_tasks_shed_total") == value(text, "telemetry_buffer_size") == 0


@pytest.mark.slow
def test_requests_count_under_their_route_and_unknown_paths_add_no_labels(
    client: FlaskClient,
) -> None:
    for workspace in ("w1", "w2"):
        assert client.post("/v3/workspaces", json={"id": workspace}).status_code == 201
        assert client.get(f"/v3/workspaces/{workspace}/queue/status").status_code == 200
    for number in range(5):
        assert client.get(f"/nothing/{number}").status_code == 404
    client.open("/v3/workspaces", method="BREW")
    answer = client.get("/metrics")
    assert answer.content_type.startswith("text/plain; version=")
    text = answer.text
    route = "/v3/workspaces/{workspace_id}/queue/status"
    assert value(text, "api_requests_total", method="GET", endpoint=route, status_code="200") == 2
    assert (
        value(text, "api_requests_total", method="GET", endpoint="unknown", status_code="404") == 5
    )
    assert value(text, "api_request_duration_seconds_count", method="GET", endpoint=route) == 2
    assert {
        dict(labels)["method"] for name, labels in samples(text) if name == "api_requests_total"
    } == {"GET", "POST", "unknown"}
    bounds = [
        dict(labels)["le"]
        for name, labels in samples(text)
        if name.endswith("_bucket") and ("endpoint", route) in labels
    ]
    assert bounds == BUCKETS
    again = client.get("/metrics").text
    assert (
        value(again, "api_requests_total", method="GET", endpoint="/metrics", status_code="200")
        == 1
    )


def test_metrics_that_are_off_are_not_found(open_services: OpenServices) -> None:
    answer = create_app(runtime=open_services().rt).test_client().get("/metrics")
    assert (answer.status_code, answer.mimetype) == (404, "text/plain")
    assert "METRICS_ENABLED" in answer.text


def test_metrics_need_no_key(open_services: OpenServices) -> None:
    services = open_services(
        role="api", METRICS_ENABLED="true", AUTH_USE_AUTH="true", AUTH_JWT_SECRET="x" * 40
    )
    assert create_app(runtime=services.rt).test_client().get("/metrics").status_code == 200


@pytest.mark.slow
def test_messages_and_tasks_count_by_workspace(open_services: OpenServices) -> None:
    metrics = Metrics("memservice", "deriver")
    services = open_services(role="worker", metrics=metrics)
    services.say("s", ("ann", "I like tea."), ("ann", "I own a boat."))
    services.say("s", ("bob", "I sail."))
    Worker(services.rt).run_until_idle(30)
    text = exposition(metrics)
    assert value(text, "messages_created_total", workspace_name="w") == 3
    assert (
        value(
            text,
            "deriver_queue_items_processed_total",
            workspace_name="w",
            task_type="representation",
        )
        == 3
    )


def _chat() -> Event:
    return DialecticCompleted(
        run_id="r",
        workspace_name="w",
        reasoning_level="low",
        total_iterations=1,
        prefetched_conclusion_count=0,
        tool_calls_count=0,
        total_duration_ms=1,
        input_tokens=30,
        output_tokens=4,
        cache_read_tokens=0,
        cache_creation_tokens=0,
        hit_input_token_cap=False,
    )


def test_tokens_come_from_the_events(open_services: OpenServices) -> None:
    metrics = Metrics("memservice", "deriver")
    services = open_services(role="worker", metrics=metrics)
    services.rt.emit(_chat())
    services.rt.emit(
        SummaryCreated(
            parent_category="summary",
            agent_type="summarizer",
            workspace_name="w",
            session_name="s",
            message_id="m",
            message_count=20,
            message_seq_in_session=20,
            summary_type="short",
            input_tokens=60,
            output_tokens=7,
            previous_summary_tokens=10,
            message_tokens=40,
            prompt_scaffold_tokens=5,
        )
    )
    services.rt.emit(
        DreamSpecialist(
            run_id="r",
            specialist_type="deduction",
            workspace_name="w",
            observer="a",
            observed="b",
            iterations=1,
            tool_calls_count=0,
            input_tokens=11,
            output_tokens=12,
            duration_ms=1,
            success=True,
            created_observation_count=0,
            deleted_observation_count=0,
            peer_card_updated=False,
            search_tool_calls_count=0,
        )
    )
    text = exposition(metrics)
    assert value(text, "dialectic_calls_total", workspace_name="w", reasoning_level="low") == 1
    assert (
        value(
            text,
            "dialectic_tokens_processed_total",
            token_type="input",
            component="total",
            reasoning_level="low",
        )
        == 30
    )
    summary = {"task_type": "summary", "token_type": "input"}
    assert value(text, "deriver_tokens_processed_total", component="messages", **summary) == 40
    assert (
        value(text, "deriver_tokens_processed_total", component="previous_summary", **summary) == 10
    )
    assert value(text, "deriver_tokens_processed_total", component="prompt", **summary) == 5
    assert (
        value(
            text, "dreamer_tokens_processed_total", specialist_name="deduction", token_type="output"
        )
        == 12
    )


@pytest.mark.every_storage("sqlite")
def test_connections_are_reported_if_the_storage_counts_them(open_services: OpenServices) -> None:
    metrics = Metrics("memservice", "deriver")
    services = open_services(role="worker", metrics=metrics)
    services.say("s", ("ann", "hi"))
    text = exposition(metrics)
    size = value(text, "db_pool_connections", instance_type="deriver", state="size")
    assert size == (2 if services.rt.storage.name == "sqlite" else 0), "as many as it keeps"
    assert value(text, "db_queries_in_flight", instance_type="deriver") == 0
    assert value(text, "message_embeddings_pending") == 0


def test_route_labels_have_the_notation_of_the_document() -> None:
    assert (
        template("/v3/workspaces/<workspace_id>/x/<path:rest>")
        == "/v3/workspaces/{workspace_id}/x/{rest}"
    )


@pytest.mark.slow
def test_a_second_worker_takes_over_the_metrics_port() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    first = MetricsEndpoint("127.0.0.1", port, lambda: (b"first\n", "text/plain"))
    assert first.listening.wait(30)
    second = MetricsEndpoint("127.0.0.1", port, lambda: (b"second\n", "text/plain"))
    url = f"http://127.0.0.1:{first.port}/metrics"
    with urllib.request.urlopen(url, timeout=5) as answer:
        assert answer.read() == b"first\n"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/other", timeout=5)
    assert refused.value.code == 404
    refused.value.close()
    first.close()
    assert second.listening.wait(30)
    with urllib.request.urlopen(url, timeout=5) as answer:
        assert answer.read() == b"second\n"
    second.close()


def test_values_that_another_process_is_about_to_write_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is empty between its creation and its first value."""
    (tmp_path / "counter_1.db").touch()
    untyped: Any = MmapedDict
    written = untyped(str(tmp_path / "counter_2.db"))
    written.write_value(mmap_key("lamps", "lamps_total", [], [], "Lamps."), 3.0, 0.0)
    written.close()
    monkeypatch.setenv(telemetry_metrics.DIRECTORY, str(tmp_path))
    assert "lamps_total 3.0" in exposition(Metrics("memservice", "deriver"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "level"), [(BrokenPipeError("gone"), "DEBUG"), (ValueError("broken"), "ERROR")]
)
def test_a_client_that_has_gone_is_no_error(
    error: Exception, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    def failing() -> tuple[bytes, str]:
        raise error

    caplog.set_level("DEBUG", "memservice.metrics")
    endpoint = MetricsEndpoint("127.0.0.1", 0, failing)
    assert endpoint.listening.wait(30)
    with pytest.raises(ConnectionError):
        urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics", timeout=5)
    endpoint.close()
    assert [record.levelname for record in caplog.records] == [level]


def test_the_number_of_workspace_labels_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that may create workspaces chooses their names, and each label stays in memory."""
    monkeypatch.setattr(telemetry_metrics, "MAX_WORKSPACES", 3)
    metrics = Metrics("memservice", "deriver")
    for number in range(50):
        metrics.worked("embed", f"w{number}", 1)
    metrics.worked("embed", "w1", 1)
    text = exposition(metrics)
    name = "deriver_queue_items_processed_total"
    assert value(text, name, workspace_name="w1", task_type="embed") == 2
    assert value(text, name, workspace_name="(other)", task_type="embed") == 47
    assert len([sample for sample, _ in samples(text) if sample == name]) == 4
