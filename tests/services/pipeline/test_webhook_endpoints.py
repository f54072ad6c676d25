"""Endpoints side by side: each in order, none waiting for another, and gone when they are
deleted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from memservice.domain.records import Delivery, WebhookEndpoint
from memservice.services import deletion, webhooks
from memservice.services.tasks import kinds
from memservice.worker import polling, time_slice
from memservice.worker.polling import Worker
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.pipeline.webhooks import OpenPipeline, emit_test, opened, register, try_all
from support.receiver import Handler, Receiver, hang, receiving


@pytest.fixture
def pipeline(open_pipeline: OpenPipeline) -> Pipeline:
    return opened(open_pipeline)


def test_events_are_delivered_in_order_despite_retries(
    pipeline: Pipeline, receiver: Receiver
) -> None:
    register(pipeline, receiver)
    receiver.answers(200, 500, 200)
    for n in range(4):
        pipeline.rt.storage.write(
            lambda tx, n=n: webhooks.emit(  # type: ignore[misc]
                pipeline.rt,
                tx,
                tx.workspaces.by_slug(WORKSPACE).key,  # pyrefly: ignore[missing-attribute]
                webhooks.Event(webhooks.TEST, {"n": n}),
            )
        )
    try_all(pipeline)
    assert [event["data"]["n"] for event in receiver.events] == [0, 1, 1, 2, 3]


@pytest.mark.slow
def test_one_endpoint_does_not_wait_for_another(pipeline: Pipeline, receiver: Receiver) -> None:
    with receiving() as stuck:
        stuck.behave = hang
        register(pipeline, stuck)
        register(pipeline, receiver)
        for _ in range(3):
            emit_test(pipeline)
        began = time.monotonic()
        pipeline.work()
        assert time.monotonic() - began < 20
        assert len(receiver.requests) == 3
        assert len(stuck.requests) == 1


@pytest.mark.slow
def test_endpoints_that_hang_delay_no_other_work(open_pipeline: OpenPipeline) -> None:
    """More of them than there are threads for them."""
    pipeline = opened(open_pipeline, WEBHOOK_TIMEOUT_SECONDS="20", WEBHOOK_MAX_WORKSPACE_LIMIT="40")
    stop = threading.Event()
    with receiving() as stuck:
        stuck.behave = hang
        for n in range(20):
            register(pipeline, stuck, f"/{n}")
        emit_test(pipeline)
        thread = threading.Thread(target=Worker(pipeline.rt).run, args=(stop,))
        thread.start()
        try:
            _until(lambda: len(stuck.requests) >= 8)
            pipeline.say("s", ("alice", "I like tea."))
            assert _until(lambda: pipeline.texts("alice") == ["I like tea."]) < 2.0
        finally:
            stop.set()
            stuck.close()
            thread.join(30)
        assert not thread.is_alive()


class SlowToSubmit(ThreadPoolExecutor):
    """The thread that queues work is interrupted after each piece, as on a busy machine."""

    def submit(self, *args: Any, **named: Any) -> Any:
        future = super().submit(*args, **named)
        time.sleep(0.05)
        return future


def test_more_endpoints_than_threads_take_turns(
    open_pipeline: OpenPipeline, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An endpoint that answers just in time, and has many events, would delay all others."""
    monkeypatch.setattr(polling, "MAX_CONCURRENT_DELIVERIES", 1)
    monkeypatch.setattr(polling, "ThreadPoolExecutor", SlowToSubmit)
    monkeypatch.setattr(time_slice, "TIME_SLICE_SECONDS", 0.0)
    pipeline = opened(open_pipeline)
    register(pipeline, receiver, "/slow")
    for _ in range(4):
        emit_test(pipeline)
    register(pipeline, receiver, "/other")
    emit_test(pipeline)
    pipeline.work()
    paths = [request.path for request in receiver.requests]
    assert sorted(paths) == ["/other"] + ["/slow"] * 5
    assert paths.index("/other") <= 2
    slow = [
        request.headers["webhook-id"] for request in receiver.requests if request.path == "/slow"
    ]
    assert slow == [
        task.payload["event_uid"]
        for task in pipeline.tasks(kinds.WEBHOOK)
        if task.payload["event_uid"] in slow
    ], "in order"


def test_a_single_endpoint_gets_all_events_in_one_run(
    pipeline: Pipeline, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_slice, "TIME_SLICE_SECONDS", 0.0)
    register(pipeline, receiver)
    for _ in range(5):
        emit_test(pipeline)
    assert [report.done for report in pipeline.work()] == [5]


def _until(condition: Callable[[], bool], seconds: float = 15.0) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds
        time.sleep(0.01)
    return time.monotonic() - began


def test_deleting_an_endpoint_ends_its_deliveries(pipeline: Pipeline, receiver: Receiver) -> None:
    deleted, remaining = (
        register(pipeline, receiver, "/gone"),
        register(pipeline, receiver, "/kept"),
    )
    receiver.answers(500)
    emit_test(pipeline)
    pipeline.work()
    emit_test(pipeline)
    webhooks.delete(pipeline.rt, PRINCIPAL, WORKSPACE, deleted.uid)
    receiver.answers(200)
    try_all(pipeline)
    assert [request.path for request in receiver.requests].count("/gone") == 1
    assert {task.payload["endpoint"] for task in pipeline.tasks(kinds.WEBHOOK)} == {remaining.key}
    with pipeline.rt.storage.read() as tx:
        assert {row.endpoint_key for row in tx.rows.page(Delivery)} == {remaining.key}


def test_an_endpoint_deleted_during_a_delivery_stays_deleted(
    pipeline: Pipeline, receiver: Receiver
) -> None:
    for status in (200, 500):
        hook = register(pipeline, receiver)

        def behave(handler: Handler, uid: str = hook.uid, status: int = status) -> None:
            webhooks.delete(pipeline.rt, PRINCIPAL, WORKSPACE, uid)
            handler.answer(status)

        receiver.behave = behave
        emit_test(pipeline)
        pipeline.work()
        with pipeline.rt.storage.read() as tx:
            assert tx.rows.page(Delivery) == []
            assert tx.rows.page(WebhookEndpoint) == []


@pytest.mark.parametrize("status", [200, 500])
def test_a_workspace_deleted_during_a_delivery_leaves_no_rows(
    pipeline: Pipeline, receiver: Receiver, status: int
) -> None:
    register(pipeline, receiver)

    def behave(handler: Handler) -> None:
        deletion.delete_workspace(pipeline.rt, PRINCIPAL, WORKSPACE, with_sessions=True)
        handler.answer(status)

    receiver.behave = behave
    emit_test(pipeline)
    try_all(pipeline)
    assert len(receiver.requests) == 1
    with pipeline.rt.storage.read() as tx:
        assert [tx.rows.page(record) for record in (Delivery, WebhookEndpoint)] == [[], []]
    assert pipeline.tasks(kinds.WEBHOOK) == []
