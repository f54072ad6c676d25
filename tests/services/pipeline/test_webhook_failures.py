"""What is not taken is tried again, recorded, given up and delivered again; endpoints that keep
failing rest."""

from __future__ import annotations

import logging

import pytest

from memservice.domain.errors import NotFound
from memservice.domain.records import WebhookEndpoint
from memservice.services import webhooks
from memservice.services.tasks import kinds
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.pipeline.webhooks import (
    OpenPipeline,
    attempts,
    emit_test,
    endpoint,
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


@pytest.mark.slow
def test_a_failed_delivery_is_retried_and_every_attempt_recorded(
    pipeline: Pipeline, receiver: Receiver
) -> None:
    hook = register(pipeline, receiver)
    receiver.answers(500, 302, 200)
    emit_test(pipeline)
    pipeline.work()
    assert len(receiver.requests) == 1
    pipeline.work()
    assert len(receiver.requests) == 1, "not before its time"
    pipeline.clock.advance(seconds=30 * 1.2)
    pipeline.work()
    pipeline.clock.advance(seconds=90 * 1.2)
    pipeline.work()
    assert [(one.attempt, one.status, one.error) for one in attempts(pipeline, hook.uid)] == [
        (1, 500, None),
        (2, 302, None),
        (3, 200, None),
    ]
    assert all(
        one.duration_ms is not None and one.duration_ms >= 0 for one in attempts(pipeline, hook.uid)
    )
    assert {one.event_uid for one in attempts(pipeline, hook.uid)} == {
        request.headers["webhook-id"] for request in receiver.requests
    }
    assert len({request.body for request in receiver.requests}) == 1
    assert letters(pipeline, hook.uid) == []
    stamps = [request.headers["webhook-timestamp"] for request in receiver.requests]
    assert len(set(stamps)) == 3, "each attempt is signed anew"
    for request in receiver.requests:
        headers = request.headers
        assert headers["webhook-signature"] == standard_signature(
            hook.secret, headers["webhook-id"], headers["webhook-timestamp"], request.body
        )


@pytest.mark.slow
def test_pauses_grow_with_jitter(open_pipeline: OpenPipeline, receiver: Receiver) -> None:
    pipeline = opened(open_pipeline, WEBHOOK_MAX_ATTEMPTS="8")
    register(pipeline, receiver)
    receiver.answers(500)
    emit_test(pipeline)
    waited = []
    while True:
        pipeline.work()
        (task,) = pipeline.tasks(kinds.WEBHOOK)
        if task.state != "pending":
            break
        waited.append((task.not_before - pipeline.clock()).total_seconds())
        pipeline.clock.now = task.not_before
    assert len(waited) == 7
    for pause, base in zip(waited, (30, 90, 270, 810, 2430, 7290, 14400), strict=True):
        assert 0.8 * base <= pause <= 1.2 * base
    assert any(
        pause != base
        for pause, base in zip(waited, (30, 90, 270, 810, 2430, 7290, 14400), strict=True)
    )
    assert 3600 * 5 < sum(waited) < 3600 * 10
    assert len(receiver.requests) == 8


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://127.0.0.1:9/", "ConnectError"),
        ("http://nowhere.invalid/", "NoAddress: no public address was found for nowhere.invalid"),
    ],
)
def test_an_unreachable_endpoint_is_reported(pipeline: Pipeline, url: str, error: str) -> None:
    hook = webhooks.register(pipeline.rt, PRINCIPAL, WORKSPACE, url).endpoint
    emit_test(pipeline)
    pipeline.work()
    (attempt,) = attempts(pipeline, hook.uid)
    assert attempt.status is None
    assert attempt.error is not None
    assert attempt.error.startswith(error)


def test_the_reason_of_a_failed_delivery_is_logged_without_the_answer(
    pipeline: Pipeline, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    hook = register(pipeline, receiver)
    receiver.answers(500)
    emit_test(pipeline)
    pipeline.work()
    reason = f"NotDelivered: the endpoint {hook.uid} answered 500"
    assert f"webhook workspace={WORKSPACE} task=" in caplog.text
    assert f"failed ({reason}), attempt=1 unit=webhook:" in caplog.text


def test_an_undeliverable_event_becomes_a_dead_letter_and_can_be_redelivered(
    pipeline: Pipeline, receiver: Receiver
) -> None:
    hook = register(pipeline, receiver)
    receiver.answers(500)
    emit_test(pipeline)
    try_all(pipeline)
    (letter,) = letters(pipeline, hook.uid)
    assert (letter.event, letter.attempts, letter.error) == (
        "test.event",
        3,
        "NotDelivered: the endpoint answered 500",
    )
    assert letter.event_uid == attempts(pipeline, hook.uid)[0].event_uid
    receiver.answers(200)
    webhooks.redeliver(pipeline.rt, PRINCIPAL, WORKSPACE, letter.uid)
    pipeline.work()
    assert letters(pipeline, hook.uid) == []
    assert [one.status for one in attempts(pipeline, hook.uid)] == [500, 500, 500, 200]
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1


def test_a_dead_letter_is_also_found_by_one_of_its_attempts(
    pipeline: Pipeline, receiver: Receiver
) -> None:
    hook = register(pipeline, receiver)
    receiver.answers(500)
    emit_test(pipeline)
    try_all(pipeline)
    receiver.answers(200)
    for _ in range(2):
        webhooks.redeliver(pipeline.rt, PRINCIPAL, WORKSPACE, attempts(pipeline, hook.uid)[0].uid)
    pipeline.work()
    assert len(receiver.requests) == 4, "asked for twice before it went out, it goes out once"
    assert letters(pipeline, hook.uid) == []


def test_a_pending_retry_can_be_made_at_once(pipeline: Pipeline, receiver: Receiver) -> None:
    hook = register(pipeline, receiver)
    receiver.answers(500, 200)
    emit_test(pipeline)
    pipeline.work()
    webhooks.redeliver(pipeline.rt, PRINCIPAL, WORKSPACE, attempts(pipeline, hook.uid)[0].uid)
    pipeline.work()
    assert [one.status for one in attempts(pipeline, hook.uid)] == [500, 200]
    try_all(pipeline)
    assert len(receiver.requests) == 2


def test_a_delivered_event_can_be_redelivered(pipeline: Pipeline, receiver: Receiver) -> None:
    hook = register(pipeline, receiver)
    emit_test(pipeline)
    pipeline.work()
    webhooks.redeliver(pipeline.rt, PRINCIPAL, WORKSPACE, attempts(pipeline, hook.uid)[0].uid)
    pipeline.work()
    first, second = receiver.requests
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert [one.attempt for one in attempts(pipeline, hook.uid)] == [1, 1]


def delivered_late(
    pipeline: Pipeline, receiver: Receiver
) -> tuple[WebhookEndpoint, webhooks.DeadLetter]:
    """An endpoint, and what was a dead letter of it until it was delivered after all."""
    hook = register(pipeline, receiver)
    receiver.answers(500)
    emit_test(pipeline)
    try_all(pipeline)
    (letter,) = letters(pipeline, hook.uid)
    receiver.answers(200)
    webhooks.redeliver(pipeline.rt, PRINCIPAL, WORKSPACE, letter.uid)
    pipeline.work()
    return hook, letter


def test_a_delivered_dead_letter_can_be_redelivered(pipeline: Pipeline, receiver: Receiver) -> None:
    _, letter = delivered_late(pipeline, receiver)
    assert len(receiver.requests) == 4
    for _ in range(2):
        webhooks.redeliver(pipeline.rt, PRINCIPAL, WORKSPACE, letter.uid)
    pipeline.work()
    assert len(receiver.requests) == 5, "asked for twice before it went out, it goes out once"
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1


def test_an_event_of_a_deleted_endpoint_cannot_be_redelivered(
    pipeline: Pipeline, receiver: Receiver
) -> None:
    hook, letter = delivered_late(pipeline, receiver)
    webhooks.delete(pipeline.rt, PRINCIPAL, WORKSPACE, hook.uid)
    with pytest.raises(NotFound, match=letter.uid):
        webhooks.redeliver(pipeline.rt, PRINCIPAL, WORKSPACE, letter.uid)
    assert pipeline.tasks(kinds.WEBHOOK, state="pending") == []


def test_an_endpoint_that_keeps_failing_is_paused_and_says_so(
    pipeline: Pipeline, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    hook = register(pipeline, receiver)
    receiver.answers(500)
    for _ in range(4):
        emit_test(pipeline)
    with caplog.at_level(logging.WARNING, "memservice.webhooks"):
        try_all(pipeline)
    assert endpoint(pipeline, hook.uid).state == "paused"
    assert f"endpoint {hook.uid} is paused" in caplog.text
    assert len(receiver.requests) == 6, (
        "two events were tried three times each; the others only wait"
    )
    assert [letter.error for letter in letters(pipeline, hook.uid)] == [
        "NotDelivered: the endpoint answered 500",
        "NotDelivered: the endpoint answered 500",
        "the endpoint is paused",
        "the endpoint is paused",
    ]


@pytest.mark.slow
def test_a_paused_endpoint_gets_nothing_until_a_manual_redelivery(
    pipeline: Pipeline, receiver: Receiver
) -> None:
    hook = register(pipeline, receiver)
    receiver.answers(500)
    for _ in range(2):
        emit_test(pipeline)
    try_all(pipeline)
    request_count = len(receiver.requests)
    receiver.answers(200)
    emit_test(pipeline)
    try_all(pipeline)
    assert len(receiver.requests) == request_count
    assert len(letters(pipeline, hook.uid)) == 3, "what came meanwhile is kept"
    webhooks.redeliver(pipeline.rt, PRINCIPAL, WORKSPACE, letters(pipeline, hook.uid)[0].uid)
    pipeline.work()
    again = endpoint(pipeline, hook.uid)
    assert (again.state, again.failures) == ("active", 0)
    emit_test(pipeline)
    pipeline.work()
    assert len(receiver.requests) == request_count + 2


def test_a_success_resets_the_failure_count(pipeline: Pipeline, receiver: Receiver) -> None:
    hook = register(pipeline, receiver)
    receiver.answers(500)
    emit_test(pipeline)
    try_all(pipeline)
    assert endpoint(pipeline, hook.uid).failures == 1
    receiver.answers(200)
    emit_test(pipeline)
    pipeline.work()
    assert endpoint(pipeline, hook.uid).failures == 0
    assert len(letters(pipeline, hook.uid)) == 1
