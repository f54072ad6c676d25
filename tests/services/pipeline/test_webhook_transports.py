"""Other transports, plugins that listen, and how long records are kept."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain.records import Delivery
from memservice.hookspecs import hookimpl
from memservice.services import webhooks
from memservice.services.tasks import kinds
from memservice.spi.providers import WebhookTransportProvider
from memservice.spi.webhooks import Outcome
from memservice.worker import retention
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.pipeline.webhooks import (
    OpenPipeline,
    attempts,
    emit_test,
    letters,
    opened,
    register,
    standard_signature,
    try_all,
)
from support.receiver import Receiver


@pytest.fixture
def pipeline(open_pipeline: OpenPipeline) -> Pipeline:
    return opened(open_pipeline)


class Transport:
    """Accepts `odd:` URLs and handles them as the test says."""

    def __init__(self, act: Callable[[], Outcome]) -> None:
        self.act = act

    def check(self, url: str) -> None:
        return None

    def deliver(self, url: str, body: bytes, headers: object) -> Outcome:
        return self.act()

    @hookimpl
    def memservice_webhook_transports(self) -> Iterator[WebhookTransportProvider]:
        yield WebhookTransportProvider(
            name="odd", schemes=("odd",), open=lambda settings, context: self
        )


def test_a_transport_that_raises_counts_as_a_failed_attempt(open_pipeline: OpenPipeline) -> None:
    def act() -> Outcome:
        raise ZeroDivisionError("odd")

    pipeline = opened(open_pipeline, Transport(act))
    hook = webhooks.register(pipeline.rt, PRINCIPAL, WORKSPACE, "odd:somewhere").endpoint
    emit_test(pipeline)
    try_all(pipeline)
    assert [(one.status, one.error) for one in attempts(pipeline, hook.uid)] == [
        (None, "ZeroDivisionError: odd")
    ] * 3
    assert len(letters(pipeline, hook.uid)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "recorded"),
    [("a\0b", "ab"), ("a\ud800b", "a\ufffdb"), ("x" * 300_000, "x" * 2_000)],
    ids=["NUL", "surrogate", "long"],
)
@pytest.mark.parametrize("raised", [False, True], ids=["said", "raised"])
def test_any_error_text_is_recorded_in_a_storable_form(
    open_pipeline: OpenPipeline, error: str, recorded: str, raised: bool
) -> None:
    """Else the attempt would be lost with it, and made again and again for ever."""

    def act() -> Outcome:
        if raised:
            raise OSError(error)
        return Outcome(error=error)

    pipeline = opened(open_pipeline, Transport(act))
    hook = webhooks.register(pipeline.rt, PRINCIPAL, WORKSPACE, "odd:somewhere").endpoint
    emit_test(pipeline)
    try_all(pipeline)
    (letter,) = letters(pipeline, hook.uid)
    assert [one.error for one in attempts(pipeline, hook.uid)] == [
        f"OSError: {recorded}"[:2_000] if raised else recorded
    ] * 3
    assert letter.error == (f"NotDelivered: {'OSError: ' * raised}{recorded}")[:2_000]


def test_events_can_be_written_to_a_file(open_pipeline: OpenPipeline, tmp_path: Any) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    pipeline = opened(open_pipeline, WEBHOOK_JSONL_DIRECTORY=str(folder))
    secret = webhooks.register(pipeline.rt, PRINCIPAL, WORKSPACE, "jsonl:mine").endpoint.secret
    emit_test(pipeline)
    emit_test(pipeline)
    pipeline.work()
    lines = [json.loads(line) for line in (folder / "mine.jsonl").read_text().splitlines()]
    assert [json.loads(line["body"])["type"] for line in lines] == ["test.event"] * 2
    headers = lines[0]["headers"]
    assert headers["webhook-signature"] == standard_signature(
        secret, headers["webhook-id"], headers["webhook-timestamp"], lines[0]["body"].encode()
    )
    assert (folder / "mine.jsonl").stat().st_mode & 0o777 == 0o600


TOLD_TO_ENDPOINTS = ("test", "queue_empty")
"""Plugins hear of more: of what operators are told."""


class Heard:
    def __init__(self, pipeline: Callable[[], Pipeline] | None = None) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.fails = False
        self.inside: list[bool] = []

    @hookimpl
    def memservice_event_emitted(self, type: str, data: dict[str, Any]) -> None:
        if type not in TOLD_TO_ENDPOINTS:
            return
        self.events.append((type, data))
        if self.fails:
            raise RuntimeError("no")


def test_plugins_get_events_with_or_without_endpoints(open_pipeline: OpenPipeline) -> None:
    plugin = Heard()
    pipeline = opened(open_pipeline, plugin)
    emit_test(pipeline)
    pipeline.say("s", ("alice", "I like tea."))
    assert plugin.events == [("test", {"workspace_id": "w"})]
    pipeline.work()
    assert plugin.events[1:] == [
        (
            "queue_empty",
            {
                "workspace_id": "w",
                "queue_type": "representation",
                "session_id": "s",
                "observer": None,
                "observed": "alice",
            },
        )
    ]


def test_plugins_get_committed_events_only(open_pipeline: OpenPipeline) -> None:
    """And outside the transaction: a listener may use the store."""
    pipeline: Pipeline

    class Reader(Heard):
        @hookimpl
        def memservice_event_emitted(self, type: str, data: dict[str, Any]) -> None:
            if type in TOLD_TO_ENDPOINTS:
                self.events.append(
                    (
                        type,
                        {"queued": len(pipeline.tasks(kinds.WEBHOOK)), "leases": _leases(pipeline)},
                    )
                )

    plugin = Reader()
    pipeline = opened(open_pipeline, plugin, WEBHOOK_JSONL_DIRECTORY="/nowhere")
    webhooks.register(pipeline.rt, PRINCIPAL, WORKSPACE, "jsonl:mine")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.run(pipeline.unit())
    assert plugin.events == [("queue_empty", {"queued": 1, "leases": 0})]


def _leases(pipeline: Pipeline) -> int:
    with pipeline.rt.storage.read() as tx:
        return len(tx.tasks.leases())


def test_a_failing_plugin_stops_nothing(
    open_pipeline: OpenPipeline, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = Heard()
    plugin.fails = True
    pipeline = opened(open_pipeline, plugin)
    register(pipeline, receiver)
    with caplog.at_level(logging.ERROR):
        emit_test(pipeline)
        pipeline.say("s", ("alice", "I like tea."))
        pipeline.work()
    assert sorted(event["type"] for event in receiver.events) == ["queue.empty", "test.event"]
    assert "a plugin failed on the event queue_empty: RuntimeError" in caplog.text


def test_records_of_deliveries_are_erased_after_thirty_days(
    pipeline: Pipeline, receiver: Receiver
) -> None:
    hook = register(pipeline, receiver)
    emit_test(pipeline)
    pipeline.work()
    pipeline.clock.advance(days=29.9)
    emit_test(pipeline)
    pipeline.work()
    assert retention.sweep(pipeline.rt)["deliveries"] == 0
    erased = 0
    for _ in range(5):
        pipeline.clock.advance(hours=1)
        erased += retention.sweep(pipeline.rt)["deliveries"]
    assert erased == 1
    assert len(attempts(pipeline, hook.uid)) == 1


def test_many_old_records_are_erased_in_pieces(
    pipeline: Pipeline, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(pipeline, receiver)
    emit_test(pipeline)
    pipeline.work()
    monkeypatch.setattr(retention, "BATCH_SIZE", 2)
    with pipeline.rt.storage.read() as tx:
        (row,) = tx.rows.page(Delivery)
    pipeline.rt.storage.write(
        lambda tx: tx.rows.put([replace(row, key=0, uid=f"{n:021d}") for n in range(4)])
    )
    pipeline.clock.advance(days=31)
    assert retention.sweep(pipeline.rt)["deliveries"] == 5


def test_a_deleted_workspace_gets_no_events(pipeline: Pipeline, receiver: Receiver) -> None:
    register(pipeline, receiver)
    emit_test(pipeline)
    with pipeline.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(WORKSPACE)
    assert workspace is not None
    pipeline.rt.storage.write(lambda tx: tx.workspaces.save(replace(workspace, state="deleting")))
    pipeline.work()
    assert receiver.requests == []
