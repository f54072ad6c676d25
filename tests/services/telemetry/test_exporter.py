"""Events on their way to a real collector over a real socket, which works, refuses, fails, hangs
and recovers."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import jsonschema
import pytest

import memservice
from memservice.settings.service import Telemetry
from memservice.telemetry import exporter as module
from memservice.telemetry.cloudevents import envelope, event_id, is_sampled
from memservice.telemetry.events import AgentIteration, MessageCreated
from memservice.telemetry.exporter import Exporter
from memservice.telemetry.meter import Meter
from support.receiver import Receiver, drip_body, hang, receiving
from support.telemetry.contract import EVENTS

NOON = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)


class Counted(Meter):
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def emitted(self, kind: str) -> None:
        self.counts[f"emitted {kind}"] += 1

    def sampled_out(self, kind: str) -> None:
        self.counts[f"sampled out {kind}"] += 1

    def dropped(self, reason: str, number: int) -> None:
        self.counts[reason] += number


def created(number: int) -> MessageCreated:
    return MessageCreated(
        workspace_name="w",
        session_name="s",
        message_count=number,
        total_tokens=2,
        source="api",
        last_message_id=f"m{number}",
    )


def iteration(run: str) -> AgentIteration:
    return AgentIteration(
        run_id=run,
        parent_category="dream",
        agent_type="deduction",
        workspace_name="w",
        iteration=1,
        tool_calls=(),
        input_tokens=1,
        output_tokens=1,
        cache_read_tokens=0,
        cache_creation_tokens=0,
    )


Start = Callable[..., Exporter]


@pytest.fixture
def collector() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
def start(collector: Receiver, counted: Counted) -> Iterator[Start]:
    exporters: list[Exporter] = []

    def open_exporter(**settings: Any) -> Exporter:
        fields: dict[str, Any] = {
            "enabled": True,
            "endpoint": collector.url("/events"),
            "flush_interval_seconds": 0.05,
            **settings,
        }
        exporters.append(Exporter(Telemetry(**fields), "here", counted))
        return exporters[-1]

    yield open_exporter
    for exporter in exporters:
        exporter.close(0.2)


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def numbers(collector: Receiver) -> list[int]:
    """Of the events in the requests, in the order in which they came."""
    bodies = [json.loads(request.body) for request in collector.requests]
    return [
        event["data"]["message_count"]
        for body in bodies
        for event in (body if isinstance(body, list) else [body])
    ]


@pytest.mark.slow
def test_one_event_is_sent_alone_with_headers_and_envelope(
    start: Start, collector: Receiver
) -> None:
    exporter = start(headers={"Authorization": "Bearer x", "X-Number": 7})
    exporter(created(1), NOON)
    until(lambda: bool(collector.requests))
    (request,) = collector.requests
    assert (request.method, request.path) == ("POST", "/events")
    assert request.headers["content-type"] == "application/cloudevents+json"
    assert (request.headers["authorization"], request.headers["x-number"]) == ("Bearer x", "7")
    event = json.loads(request.body)
    jsonschema.validate(event, EVENTS["message.created"].envelope_schema("here"))
    assert event["time"] == event["data"]["timestamp"] == "2026-01-01T12:00:00.123456+00:00"
    assert event["data"]["honcho_version"] == memservice.__version__
    assert "subject" not in event


def test_the_address_of_the_collector_is_not_logged(
    start: Start, collector: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """It may contain a secret, whatever the application logs of its libraries."""
    library = logging.getLogger("httpx")
    level = library.level
    library.setLevel(logging.NOTSET)
    try:
        with caplog.at_level(logging.INFO):
            exporter = start(endpoint=collector.url("/events?token=secret-token"))
            exporter(created(1), NOON)
            until(lambda: bool(collector.requests))
            exporter.close(1.0)
        assert "secret-token" not in caplog.text
    finally:
        library.setLevel(level)


@pytest.mark.slow
def test_several_events_are_sent_in_batches(start: Start, collector: Receiver) -> None:
    exporter = start(flush_interval_seconds=30.0, flush_threshold=7, batch_size=3)
    for number in range(6):
        exporter(created(number), NOON)
    time.sleep(0.1)
    assert collector.requests == [], "neither are there enough nor is it late"
    exporter(created(6), NOON)
    until(lambda: len(numbers(collector)) == 7)
    assert numbers(collector) == list(range(7))
    kinds = [request.headers["content-type"] for request in collector.requests]
    assert kinds == [
        "application/cloudevents-batch+json",
        "application/cloudevents-batch+json",
        "application/cloudevents+json",
    ]


@pytest.mark.slow
def test_a_rejected_batch_is_retried_after_growing_pauses(
    start: Start, collector: Receiver, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = start(max_retries=3)
    pauses: list[float] = []
    monkeypatch.setattr(exporter._stop, "wait", lambda seconds: pauses.append(seconds))
    collector.answers(500, 429, 503, 204)
    exporter(created(1), NOON)
    until(lambda: len(collector.requests) == 4)
    # Three tries, back into the buffer, and once more.
    assert pauses == [1.0, 2.0, 4.0]
    assert {request.body for request in collector.requests} == {collector.requests[0].body}
    assert counted.counts == {"emitted message.created": 1}


@pytest.mark.slow
def test_events_arrive_after_an_outage_of_the_collector(start: Start, collector: Receiver) -> None:
    exporter = start(max_retries=1)
    collector.answers(503)
    for number in range(5):
        exporter(created(number), NOON)
    until(lambda: bool(collector.requests))
    collector.answers(204)
    until(lambda: len(set(numbers(collector)) & set(range(5))) == 5 and len(exporter._buffer) == 0)
    assert numbers(collector)[-5:] == list(range(5))


@pytest.mark.slow
def test_a_full_queue_drops_and_counts_the_oldest_events(
    start: Start, collector: Receiver, counted: Counted
) -> None:
    exporter = start(max_buffer_size=10, flush_threshold=1)
    collector.behave = hang
    exporter(created(-1 + 1), NOON)
    until(lambda: bool(collector.requests))
    for number in range(1, 26):
        exporter(created(number), NOON)
    assert counted.counts["buffer_full"] == 15
    waiting = [event["data"]["message_count"] for event in exporter._buffer.take(100)]
    assert waiting == list(range(16, 26))


@pytest.mark.slow
def test_returned_events_that_do_not_fit_count_as_failed(
    start: Start, collector: Receiver, counted: Counted
) -> None:
    exporter = start(
        max_buffer_size=4, flush_threshold=4, flush_interval_seconds=30.0, max_retries=1
    )
    answered: list[int] = []

    def fill_up_and_fail(handler: Any) -> None:
        if not answered:
            for number in range(4, 8):
                exporter(created(number), NOON)
        answered.append(1)
        handler.answer(500)

    collector.behave = fill_up_and_fail
    for number in range(4):
        exporter(created(number), NOON)
    until(lambda: counted.counts["send_failed"] == 4)
    assert counted.counts["buffer_full"] == 0
    assert [event["data"]["message_count"] for event in exporter._buffer.take(10)] == [4, 5, 6, 7]


@pytest.mark.slow
def test_an_invalid_event_delays_no_other(
    start: Start, collector: Receiver, counted: Counted
) -> None:
    def refuse_three(handler: Any) -> None:
        handler.answer(400 if b'"m3"' in collector.requests[-1].body else 204)

    exporter = start(flush_threshold=6, flush_interval_seconds=30.0)
    collector.behave = refuse_three
    for number in range(6):
        exporter(created(number), NOON)
    until(lambda: counted.counts["send_failed"] == 1)
    until(lambda: len(exporter._buffer) == 0)
    exporter.close()
    bodies = [request.body for request in collector.requests]
    taken = {
        number
        for number in range(6)
        if any(f'"m{number}"'.encode() in body and b'"m3"' not in body for body in bodies)
    }
    assert taken == {0, 1, 2, 4, 5}


@pytest.mark.slow
def test_closing_sends_queued_events(start: Start, collector: Receiver, counted: Counted) -> None:
    exporter = start(flush_interval_seconds=60.0, batch_size=4)
    for number in range(10):
        exporter(created(number), NOON)
    exporter.close()
    assert numbers(collector) == list(range(10))
    assert counted.counts["send_failed"] == 0


@pytest.mark.parametrize("behave", [hang, drip_body], ids=["hangs", "never ends its answer"])
@pytest.mark.slow
def test_closing_is_bounded_in_time(
    start: Start, collector: Receiver, counted: Counted, behave: Callable[[Any], None]
) -> None:
    exporter = start(flush_interval_seconds=60.0, flush_threshold=5)
    collector.behave = behave
    for number in range(4):
        exporter(created(number), NOON)
    # The status of a slow body arrives in time; a request that hangs would wait for ever.
    exporter.close(0.5 if behave is hang else 20)
    assert counted.counts["send_failed"] == (4 if behave is hang else 0), (
        "only the status counts, so a slow body is nothing"
    )


@pytest.mark.slow
def test_an_unreachable_collector_is_logged_once(
    start: Start,
    counted: Counted,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exporter = start(endpoint="http://127.0.0.1:9/?token=hidden", max_retries=1)
    failures: list[int] = []
    pause = exporter._stop.wait

    def shorter(seconds: float) -> bool:
        failures.append(1)
        return pause(0.01)

    monkeypatch.setattr(exporter._stop, "wait", shorter)
    exporter(created(1), NOON)
    until(lambda: len(failures) >= 3)
    exporter.close(0.2)
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0] == "events are not delivered: the collector cannot be reached (ConnectError)"
    assert len(messages) == 2
    assert messages[1] == "1 event(s) were not delivered before the exporter was closed"
    assert "hidden" not in caplog.text
    assert counted.counts["send_failed"] == 1


@pytest.mark.slow
def test_high_volume_events_are_sampled_by_run_and_others_never(
    start: Start, collector: Receiver, counted: Counted
) -> None:
    exporter = start(high_volume_sample_rate=0.25)
    runs = [f"run{number}" for number in range(400)]
    for run in runs:
        exporter(iteration(run), NOON)
        exporter(iteration(run), NOON)
    for number in range(20):
        exporter(created(number), NOON)
    sampled = [run for run in runs if is_sampled(run, 0.25)]
    assert 60 < len(sampled) < 140
    assert counted.counts["emitted agent.iteration"] == 2 * len(sampled)
    assert counted.counts["sampled out agent.iteration"] == 2 * (400 - len(sampled))
    assert counted.counts["emitted message.created"] == 20


def test_sampling_equals_that_of_the_contract() -> None:
    import hashlib

    part = int.from_bytes(hashlib.sha256(b"run1").digest()[:4], "big") % 10_000
    assert is_sampled("run1", (part + 1) / 10_000)
    assert not is_sampled("run1", part / 10_000)
    assert not is_sampled("anything", 0.0)
    assert is_sampled("anything", 1.0)


def test_ids_equal_those_of_the_contract() -> None:
    import base64
    import hashlib

    digest = hashlib.sha256(b"message.created:w/s/m1:2026-01-01T12:00:00.123456+00:00:1").digest()[
        :16
    ]
    expected = "evt_" + base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert (
        event_id(created(1), NOON.isoformat())
        == expected
        == envelope(created(1), NOON, "here", "1")["id"]
    )
    assert envelope(created(1), NOON, None, "1")["source"] == "/honcho/api"


def test_no_thread_runs_before_the_first_event(start: Start) -> None:
    assert start()._thread is None
    assert module.CLOSE_TIMEOUT_SECONDS <= 10
