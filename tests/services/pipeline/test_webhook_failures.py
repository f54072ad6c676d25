"""What is not taken is tried again, recorded, given up and delivered again; endpoints that keep
failing rest."""

from __future__ import annotations

import logging

import pytest

from memservice.domain.errors import NotFound
from memservice.domain.records import WebhookEndpoint
from memservice.services import webhooks
from memservice.services.tasks import kinds
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place
from support.pipeline.webhook_places import (
    Start,
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
def place(start: Start) -> Place:
    return opened(start)


def test_a_failed_delivery_is_retried_and_every_attempt_recorded(
    place: Place, receiver: Receiver
) -> None:
    hook = register(place, receiver)
    receiver.answers(500, 302, 200)
    emit_test(place)
    place.work()
    assert len(receiver.requests) == 1
    place.work()
    assert len(receiver.requests) == 1, "not before its time"
    place.clock.advance(seconds=30 * 1.2)
    place.work()
    place.clock.advance(seconds=90 * 1.2)
    place.work()
    assert [(one.attempt, one.status, one.error) for one in attempts(place, hook.uid)] == [
        (1, 500, None),
        (2, 302, None),
        (3, 200, None),
    ]
    assert all(
        one.duration_ms is not None and one.duration_ms >= 0 for one in attempts(place, hook.uid)
    )
    assert {one.event_uid for one in attempts(place, hook.uid)} == {
        request.headers["webhook-id"] for request in receiver.requests
    }
    assert len({request.body for request in receiver.requests}) == 1
    assert letters(place, hook.uid) == []
    stamps = [request.headers["webhook-timestamp"] for request in receiver.requests]
    assert len(set(stamps)) == 3, "each attempt is signed anew"
    for request in receiver.requests:
        headers = request.headers
        assert headers["webhook-signature"] == standard_signature(
            hook.secret, headers["webhook-id"], headers["webhook-timestamp"], request.body
        )


def test_pauses_grow_with_jitter(start: Start, receiver: Receiver) -> None:
    place = opened(start, WEBHOOK_MAX_ATTEMPTS="8")
    register(place, receiver)
    receiver.answers(500)
    emit_test(place)
    waited = []
    while True:
        place.work()
        (task,) = place.tasks(kinds.WEBHOOK)
        if task.state != "pending":
            break
        waited.append((task.not_before - place.clock()).total_seconds())
        place.clock.now = task.not_before
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
def test_an_unreachable_endpoint_is_reported(place: Place, url: str, error: str) -> None:
    hook = webhooks.register(place.rt, PRINCIPAL, WORKSPACE, url).endpoint
    emit_test(place)
    place.work()
    (attempt,) = attempts(place, hook.uid)
    assert attempt.status is None
    assert attempt.error is not None
    assert attempt.error.startswith(error)


def test_an_undeliverable_event_becomes_a_dead_letter_and_can_be_redelivered(
    place: Place, receiver: Receiver
) -> None:
    hook = register(place, receiver)
    receiver.answers(500)
    emit_test(place)
    try_all(place)
    (letter,) = letters(place, hook.uid)
    assert (letter.event, letter.attempts, letter.error) == (
        "test.event",
        3,
        "NotDelivered: the endpoint answered 500",
    )
    assert letter.event_uid == attempts(place, hook.uid)[0].event_uid
    receiver.answers(200)
    webhooks.redeliver(place.rt, PRINCIPAL, WORKSPACE, letter.uid)
    place.work()
    assert letters(place, hook.uid) == []
    assert [one.status for one in attempts(place, hook.uid)] == [500, 500, 500, 200]
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1


def test_a_dead_letter_is_also_found_by_one_of_its_attempts(
    place: Place, receiver: Receiver
) -> None:
    hook = register(place, receiver)
    receiver.answers(500)
    emit_test(place)
    try_all(place)
    receiver.answers(200)
    for _ in range(2):
        webhooks.redeliver(place.rt, PRINCIPAL, WORKSPACE, attempts(place, hook.uid)[0].uid)
    place.work()
    assert len(receiver.requests) == 4, "asked for twice before it went out, it goes out once"
    assert letters(place, hook.uid) == []


def test_a_pending_retry_can_be_made_at_once(place: Place, receiver: Receiver) -> None:
    hook = register(place, receiver)
    receiver.answers(500, 200)
    emit_test(place)
    place.work()
    webhooks.redeliver(place.rt, PRINCIPAL, WORKSPACE, attempts(place, hook.uid)[0].uid)
    place.work()
    assert [one.status for one in attempts(place, hook.uid)] == [500, 200]
    try_all(place)
    assert len(receiver.requests) == 2


def test_a_delivered_event_can_be_redelivered(place: Place, receiver: Receiver) -> None:
    hook = register(place, receiver)
    emit_test(place)
    place.work()
    webhooks.redeliver(place.rt, PRINCIPAL, WORKSPACE, attempts(place, hook.uid)[0].uid)
    place.work()
    first, second = receiver.requests
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert [one.attempt for one in attempts(place, hook.uid)] == [1, 1]


def delivered_late(place: Place, receiver: Receiver) -> tuple[WebhookEndpoint, webhooks.DeadLetter]:
    """An endpoint, and what was a dead letter of it until it was delivered after all."""
    hook = register(place, receiver)
    receiver.answers(500)
    emit_test(place)
    try_all(place)
    (letter,) = letters(place, hook.uid)
    receiver.answers(200)
    webhooks.redeliver(place.rt, PRINCIPAL, WORKSPACE, letter.uid)
    place.work()
    return hook, letter


def test_a_delivered_dead_letter_can_be_redelivered(place: Place, receiver: Receiver) -> None:
    _, letter = delivered_late(place, receiver)
    assert len(receiver.requests) == 4
    for _ in range(2):
        webhooks.redeliver(place.rt, PRINCIPAL, WORKSPACE, letter.uid)
    place.work()
    assert len(receiver.requests) == 5, "asked for twice before it went out, it goes out once"
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1


def test_an_event_of_a_deleted_endpoint_cannot_be_redelivered(
    place: Place, receiver: Receiver
) -> None:
    hook, letter = delivered_late(place, receiver)
    webhooks.delete(place.rt, PRINCIPAL, WORKSPACE, hook.uid)
    with pytest.raises(NotFound, match=letter.uid):
        webhooks.redeliver(place.rt, PRINCIPAL, WORKSPACE, letter.uid)
    assert place.tasks(kinds.WEBHOOK, state="pending") == []


def test_an_endpoint_that_keeps_failing_is_paused_and_says_so(
    place: Place, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    hook = register(place, receiver)
    receiver.answers(500)
    for _ in range(4):
        emit_test(place)
    with caplog.at_level(logging.WARNING, "memservice.webhooks"):
        try_all(place)
    assert endpoint(place, hook.uid).state == "paused"
    assert f"endpoint {hook.uid} is paused" in caplog.text
    assert len(receiver.requests) == 6, (
        "two events were tried three times each; the others only wait"
    )
    assert [letter.error for letter in letters(place, hook.uid)] == [
        "NotDelivered: the endpoint answered 500",
        "NotDelivered: the endpoint answered 500",
        "the endpoint is paused",
        "the endpoint is paused",
    ]


def test_a_paused_endpoint_gets_nothing_until_a_manual_redelivery(
    place: Place, receiver: Receiver
) -> None:
    hook = register(place, receiver)
    receiver.answers(500)
    for _ in range(2):
        emit_test(place)
    try_all(place)
    asked = len(receiver.requests)
    receiver.answers(200)
    emit_test(place)
    try_all(place)
    assert len(receiver.requests) == asked
    assert len(letters(place, hook.uid)) == 3, "what came meanwhile is kept"
    webhooks.redeliver(place.rt, PRINCIPAL, WORKSPACE, letters(place, hook.uid)[0].uid)
    place.work()
    again = endpoint(place, hook.uid)
    assert (again.state, again.failures) == ("active", 0)
    emit_test(place)
    place.work()
    assert len(receiver.requests) == asked + 2


def test_a_success_resets_the_failure_count(place: Place, receiver: Receiver) -> None:
    hook = register(place, receiver)
    receiver.answers(500)
    emit_test(place)
    try_all(place)
    assert endpoint(place, hook.uid).failures == 1
    receiver.answers(200)
    emit_test(place)
    place.work()
    assert endpoint(place, hook.uid).failures == 0
    assert len(letters(place, hook.uid)) == 1
