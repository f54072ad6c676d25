"""Webhooks as work: events that are queued with what caused them, delivered in order, tried again, and never lost silently."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from memservice.domain.errors import NotFound
from memservice.domain.records import Delivery, Task, WebhookEndpoint
from memservice.hookspecs import hookimpl
from memservice.pipeline import maintenance, turns, worker
from memservice.pipeline.worker import Worker
from memservice.runtime import Runtime
from memservice.services import erasure, outbox, sessions, webhooks, workspaces
from memservice.services.paging import Paging
from memservice.spi.providers import WebhookTransportProvider
from memservice.spi.webhooks import Outcome
from pipeline.place import WHO, WORKSPACE, Place
from receiver import LOOPBACK, Handler, Receiver, hang, receiving

Start = Callable[..., Place]
SECRET = "an older secret"
SETTINGS = {
    "WEBHOOK_ALLOW_NETWORKS": f'["{LOOPBACK}"]',
    "WEBHOOK_SECRET": SECRET,
    "WEBHOOK_TIMEOUT_SECONDS": "1",
    "WEBHOOK_MAX_ATTEMPTS": "3",
    "WEBHOOK_PAUSE_AFTER": "2",
}
DAY = 86_400.0


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as opened:
        yield opened


@pytest.fixture
def place(start: Start) -> Place:
    return opened(start)


def opened(start: Start, *plugins: object, **settings: str) -> Place:
    place = start(*plugins, **{**SETTINGS, **settings})
    place.join("s", alice=sessions.MemberConfig())
    return place


def register(place: Place, receiver: Receiver, path: str = "/hook") -> WebhookEndpoint:
    return webhooks.register(place.rt, WHO, WORKSPACE, receiver.url(path)).endpoint


def endpoint(place: Place, uid: str) -> WebhookEndpoint:
    (found,) = [one for one in webhooks.page(place.rt, WHO, WORKSPACE, Paging()).items if one.uid == uid]
    return found


def attempts(place: Place, uid: str) -> list[Delivery]:
    """Oldest first."""
    return list(webhooks.deliveries(place.rt, WHO, WORKSPACE, uid, Paging(reverse=True, size=100)).items)


def letters(place: Place, uid: str) -> list[webhooks.DeadLetter]:
    return list(webhooks.dead_letters(place.rt, WHO, WORKSPACE, uid, Paging()).items)


def emit_test(place: Place) -> None:
    webhooks.send_test(place.rt, WHO, WORKSPACE)


def try_all(place: Place, seconds: float = DAY) -> None:
    """Until nothing is tried any more."""
    for _ in range(20):
        place.work()
        if not place.tasks(outbox.WEBHOOK, state="pending"):
            return
        place.clock.advance(seconds=seconds)
    raise AssertionError("still trying")


def legacy_signature(body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def standard_signature(secret: str, number: str, timestamp: str, body: bytes) -> str:
    """As the Standard Webhooks specification writes it, in words of its own."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{number}.{timestamp}.{body.decode()}".encode(), hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def test_what_arrives_is_the_contracts_body_and_both_signatures_hold(place: Place, receiver: Receiver) -> None:
    secret = register(place, receiver).secret
    emit_test(place)
    place.work()
    (request,) = receiver.requests
    assert request.body == b'{"data":{"workspace_id":"w"},"timestamp":"2024-03-01T12:00:00Z","type":"test.event"}'
    headers = request.headers
    assert headers["content-type"] == "application/json"
    assert headers["x-honcho-signature"] == legacy_signature(request.body, SECRET)
    assert headers["webhook-timestamp"] == str(int(place.clock().timestamp()))
    assert headers["webhook-signature"] == standard_signature(secret, headers["webhook-id"], headers["webhook-timestamp"], request.body)
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 24


def test_without_the_global_secret_only_the_standard_headers_are_sent(start: Start, receiver: Receiver) -> None:
    place = start(**{name: value for name, value in SETTINGS.items() if name != "WEBHOOK_SECRET"})
    place.join("s", alice=sessions.MemberConfig())
    secret = register(place, receiver).secret
    emit_test(place)
    place.work()
    headers = receiver.requests[0].headers
    assert "x-honcho-signature" not in headers
    assert headers["webhook-signature"] == standard_signature(
        secret, headers["webhook-id"], headers["webhook-timestamp"], receiver.requests[0].body
    )


def test_each_endpoint_has_its_secret_and_its_own_event_id(place: Place, receiver: Receiver) -> None:
    one, two = register(place, receiver, "/1"), register(place, receiver, "/2")
    assert one.secret != two.secret
    emit_test(place)
    place.work()
    by_path = {request.path: request for request in receiver.requests}
    for path, secret in (("/1", one.secret), ("/2", two.secret)):
        headers = by_path[path].headers
        assert headers["webhook-signature"] == standard_signature(
            secret, headers["webhook-id"], headers["webhook-timestamp"], by_path[path].body
        )
    assert by_path["/1"].headers["webhook-id"] != by_path["/2"].headers["webhook-id"]


def test_a_secret_does_not_show_where_its_endpoint_does(place: Place, receiver: Receiver) -> None:
    hook = register(place, receiver)
    assert hook.uid in repr(hook)
    assert hook.secret not in repr(hook)


def test_a_unit_that_is_worked_off_is_told_of(place: Place, receiver: Receiver) -> None:
    register(place, receiver)
    place.say("s", ("alice", "I like tea."), ("alice", "I own a boat."))
    place.work()
    assert receiver.events == [
        {
            "type": "queue.empty",
            "timestamp": "2024-03-01T12:00:00Z",
            "data": {"workspace_id": "w", "queue_type": "representation", "session_id": "s", "observer": None, "observed": "alice"},
        }
    ]


def test_a_summary_that_was_written_is_told_of(start: Start, receiver: Receiver) -> None:
    place = opened(start, SUMMARY_MESSAGES_PER_SHORT_SUMMARY="10", DERIVER_ENABLED="false")
    register(place, receiver)
    place.say("s", *(("alice", f"Line {n}.") for n in range(10)))
    place.work()
    assert [event["data"] for event in receiver.events] == [
        {"workspace_id": "w", "queue_type": "summary", "session_id": "s", "observer": None, "observed": None}
    ]


def test_the_event_is_stored_by_the_transaction_that_releases_the_unit(
    place: Place, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If that transaction is lost, so is the event, and the unit is worked off again: neither without the other."""
    register(place, receiver)
    place.say("s", ("alice", "I like tea."))
    unit = place.unit()
    real = webhooks.queue_empty

    def lost(rt: Runtime, view: Any, task: Task) -> Any:
        real(rt, view, task)
        raise RuntimeError("the transaction is lost")

    monkeypatch.setattr(webhooks, "queue_empty", lost)
    with pytest.raises(RuntimeError):
        place.run(unit)
    assert place.tasks(outbox.WEBHOOK) == []
    with place.rt.storage.read() as view:
        assert [lease.unit for lease in view.tasks.leases()] == [unit]


def test_what_fails_or_waits_is_not_worked_off(start: Start, receiver: Receiver) -> None:
    place = opened(start)
    register(place, receiver)

    def fail(request: object) -> None:
        raise RuntimeError("no")

    place.reasoner.act = fail
    place.say("s", ("alice", "I like tea."))
    place.work()
    assert receiver.requests == []
    place.reasoner.act = None
    place.clock.advance(minutes=10)
    place.work()
    assert [event["data"]["queue_type"] for event in receiver.events] == ["representation"]


def test_a_workspace_is_told_of_its_own_only(place: Place, receiver: Receiver) -> None:
    register(place, receiver)
    workspaces.get_or_create(place.rt, WHO, "other", None, None)
    webhooks.send_test(place.rt, WHO, "other")
    webhooks.send_test(place.rt, WHO, "unknown")
    place.work()
    assert receiver.requests == []


def test_a_failure_is_tried_again_and_every_attempt_recorded(place: Place, receiver: Receiver) -> None:
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
    assert [(one.attempt, one.status, one.error) for one in attempts(place, hook.uid)] == [(1, 500, None), (2, 302, None), (3, 200, None)]
    assert all(one.duration_ms is not None and one.duration_ms >= 0 for one in attempts(place, hook.uid))
    assert {one.event_uid for one in attempts(place, hook.uid)} == {request.headers["webhook-id"] for request in receiver.requests}
    assert len({request.body for request in receiver.requests}) == 1
    assert letters(place, hook.uid) == []
    stamps = [request.headers["webhook-timestamp"] for request in receiver.requests]
    assert len(set(stamps)) == 3, "each attempt is signed anew"
    for request in receiver.requests:
        headers = request.headers
        assert headers["webhook-signature"] == standard_signature(
            hook.secret, headers["webhook-id"], headers["webhook-timestamp"], request.body
        )


def test_the_pauses_grow_and_are_not_the_same_for_all(start: Start, receiver: Receiver) -> None:
    place = opened(start, WEBHOOK_MAX_ATTEMPTS="8")
    register(place, receiver)
    receiver.answers(500)
    emit_test(place)
    waited = []
    while True:
        place.work()
        (task,) = place.tasks(outbox.WEBHOOK)
        if task.state != "pending":
            break
        waited.append((task.not_before - place.clock()).total_seconds())
        place.clock.now = task.not_before
    assert len(waited) == 7
    for pause, base in zip(waited, (30, 90, 270, 810, 2430, 7290, 14400), strict=True):
        assert 0.8 * base <= pause <= 1.2 * base
    assert any(pause != base for pause, base in zip(waited, (30, 90, 270, 810, 2430, 7290, 14400), strict=True))
    assert 3600 * 5 < sum(waited) < 3600 * 10
    assert len(receiver.requests) == 8


@pytest.mark.parametrize(
    ("url", "error"),
    [("http://127.0.0.1:9/", "ConnectError"), ("http://nowhere.invalid/", "ConnectError: nowhere.invalid could not be resolved")],
)
def test_what_cannot_be_reached_says_so(place: Place, url: str, error: str) -> None:
    hook = webhooks.register(place.rt, WHO, WORKSPACE, url).endpoint
    emit_test(place)
    place.work()
    (attempt,) = attempts(place, hook.uid)
    assert attempt.status is None
    assert attempt.error is not None
    assert attempt.error.startswith(error)


def test_what_is_never_taken_is_a_dead_letter_and_can_be_delivered_again(place: Place, receiver: Receiver) -> None:
    hook = register(place, receiver)
    receiver.answers(500)
    emit_test(place)
    try_all(place)
    (letter,) = letters(place, hook.uid)
    assert (letter.event, letter.attempts, letter.error) == ("test.event", 3, "NotDelivered: the endpoint answered 500")
    assert letter.event_uid == attempts(place, hook.uid)[0].event_uid
    receiver.answers(200)
    webhooks.redeliver(place.rt, WHO, WORKSPACE, letter.uid)
    place.work()
    assert letters(place, hook.uid) == []
    assert [one.status for one in attempts(place, hook.uid)] == [500, 500, 500, 200]
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1


def test_a_dead_letter_is_also_found_by_one_of_its_attempts(place: Place, receiver: Receiver) -> None:
    hook = register(place, receiver)
    receiver.answers(500)
    emit_test(place)
    try_all(place)
    receiver.answers(200)
    for _ in range(2):
        webhooks.redeliver(place.rt, WHO, WORKSPACE, attempts(place, hook.uid)[0].uid)
    place.work()
    assert len(receiver.requests) == 4, "asked for twice before it went out, it goes out once"
    assert letters(place, hook.uid) == []


def test_what_waits_for_its_next_try_can_be_tried_at_once(place: Place, receiver: Receiver) -> None:
    hook = register(place, receiver)
    receiver.answers(500, 200)
    emit_test(place)
    place.work()
    webhooks.redeliver(place.rt, WHO, WORKSPACE, attempts(place, hook.uid)[0].uid)
    place.work()
    assert [one.status for one in attempts(place, hook.uid)] == [500, 200]
    try_all(place)
    assert len(receiver.requests) == 2


def test_what_was_delivered_can_be_delivered_again(place: Place, receiver: Receiver) -> None:
    hook = register(place, receiver)
    emit_test(place)
    place.work()
    webhooks.redeliver(place.rt, WHO, WORKSPACE, attempts(place, hook.uid)[0].uid)
    place.work()
    first, second = receiver.requests
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert [one.attempt for one in attempts(place, hook.uid)] == [1, 1]


def test_what_was_a_dead_letter_until_it_was_delivered_can_be_delivered_again(place: Place, receiver: Receiver) -> None:
    hook = register(place, receiver)
    receiver.answers(500)
    emit_test(place)
    try_all(place)
    (letter,) = letters(place, hook.uid)
    receiver.answers(200)
    webhooks.redeliver(place.rt, WHO, WORKSPACE, letter.uid)
    place.work()
    assert len(receiver.requests) == 4
    for _ in range(2):
        webhooks.redeliver(place.rt, WHO, WORKSPACE, letter.uid)
    place.work()
    assert len(receiver.requests) == 5, "asked for twice before it went out, it goes out once"
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1


def test_what_was_for_an_endpoint_that_is_gone_cannot_be_delivered_again(place: Place, receiver: Receiver) -> None:
    hook = register(place, receiver)
    receiver.answers(500)
    emit_test(place)
    try_all(place)
    (letter,) = letters(place, hook.uid)
    receiver.answers(200)
    webhooks.redeliver(place.rt, WHO, WORKSPACE, letter.uid)
    place.work()
    webhooks.delete(place.rt, WHO, WORKSPACE, hook.uid)
    with pytest.raises(NotFound, match=letter.uid):
        webhooks.redeliver(place.rt, WHO, WORKSPACE, letter.uid)
    assert place.tasks(outbox.WEBHOOK, state="pending") == []


def test_an_endpoint_that_keeps_failing_is_paused_and_says_so(place: Place, receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    hook = register(place, receiver)
    receiver.answers(500)
    for _ in range(4):
        emit_test(place)
    with caplog.at_level(logging.WARNING, "memservice.webhooks"):
        try_all(place)
    assert endpoint(place, hook.uid).state == "paused"
    assert f"endpoint {hook.uid} is paused" in caplog.text
    assert len(receiver.requests) == 6, "two events were tried three times each; the others only wait"
    assert [letter.error for letter in letters(place, hook.uid)] == [
        "NotDelivered: the endpoint answered 500",
        "NotDelivered: the endpoint answered 500",
        "the endpoint is paused",
        "the endpoint is paused",
    ]


def test_a_paused_endpoint_is_left_alone_until_somebody_has_an_event_delivered_to_it(place: Place, receiver: Receiver) -> None:
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
    webhooks.redeliver(place.rt, WHO, WORKSPACE, letters(place, hook.uid)[0].uid)
    place.work()
    again = endpoint(place, hook.uid)
    assert (again.state, again.failures) == ("active", 0)
    emit_test(place)
    place.work()
    assert len(receiver.requests) == asked + 2


def test_success_forgives_what_failed_before(place: Place, receiver: Receiver) -> None:
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


def test_events_come_in_order_even_if_one_is_tried_again(place: Place, receiver: Receiver) -> None:
    register(place, receiver)
    receiver.answers(200, 500, 200)
    for n in range(4):
        place.rt.storage.write(
            lambda view, n=n: webhooks.emit(  # type: ignore[misc]
                place.rt, view, view.workspaces.by_slug(WORKSPACE).key, webhooks.Event(webhooks.TEST, {"n": n})
            )
        )
    try_all(place)
    assert [event["data"]["n"] for event in receiver.events] == [0, 1, 1, 2, 3]


def test_one_endpoint_does_not_wait_for_another(place: Place, receiver: Receiver) -> None:
    with receiving() as stuck:
        stuck.behave = hang
        register(place, stuck)
        register(place, receiver)
        for _ in range(3):
            emit_test(place)
        began = time.monotonic()
        place.work()
        assert time.monotonic() - began < 3
        assert len(receiver.requests) == 3
        assert len(stuck.requests) == 1


def test_hanging_endpoints_hold_up_no_other_work(start: Start) -> None:
    """More of them than there are threads for them."""
    place = opened(start, WEBHOOK_TIMEOUT_SECONDS="20", WEBHOOK_MAX_WORKSPACE_LIMIT="40")
    stop = threading.Event()
    with receiving() as stuck:
        stuck.behave = hang
        for n in range(20):
            register(place, stuck, f"/{n}")
        emit_test(place)
        thread = threading.Thread(target=Worker(place.rt).run, args=(stop,))
        thread.start()
        try:
            _until(lambda: len(stuck.requests) >= 8)
            place.say("s", ("alice", "I like tea."))
            assert _until(lambda: place.texts("alice") == ["I like tea."]) < 2.0
        finally:
            stop.set()
            stuck.close()
            thread.join(15)
        assert not thread.is_alive()


def test_endpoints_take_turns_where_there_are_more_of_them_than_threads(
    start: Start, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that answers just in time, and has much to be told, would keep all others waiting."""
    monkeypatch.setattr(worker, "DELIVERIES_AT_ONCE", 1)
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    place = opened(start)
    register(place, receiver, "/slow")
    for _ in range(4):
        emit_test(place)
    register(place, receiver, "/other")
    emit_test(place)
    place.work()
    paths = [request.path for request in receiver.requests]
    assert sorted(paths) == ["/other"] + ["/slow"] * 5
    assert paths.index("/other") <= 2
    slow = [request.headers["webhook-id"] for request in receiver.requests if request.path == "/slow"]
    assert slow == [task.payload["event_uid"] for task in place.tasks(outbox.WEBHOOK) if task.payload["event_uid"] in slow], "in order"


def test_an_endpoint_that_nobody_waits_behind_is_told_everything_in_one_turn(
    place: Place, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    register(place, receiver)
    for _ in range(5):
        emit_test(place)
    assert [report.done for report in place.work()] == [5]


def _until(condition: Callable[[], bool], seconds: float = 15.0) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds
        time.sleep(0.01)
    return time.monotonic() - began


def test_deleting_an_endpoint_ends_its_deliveries(place: Place, receiver: Receiver) -> None:
    gone, kept = register(place, receiver, "/gone"), register(place, receiver, "/kept")
    receiver.answers(500)
    emit_test(place)
    place.work()
    emit_test(place)
    webhooks.delete(place.rt, WHO, WORKSPACE, gone.uid)
    receiver.answers(200)
    try_all(place)
    assert [request.path for request in receiver.requests].count("/gone") == 1
    assert {task.payload["endpoint"] for task in place.tasks(outbox.WEBHOOK)} == {kept.key}
    with place.rt.storage.read() as view:
        assert {row.endpoint_key for row in view.rows.page(Delivery)} == {kept.key}


def test_an_endpoint_that_is_deleted_while_it_is_delivered_to_is_gone(place: Place, receiver: Receiver) -> None:
    for status in (200, 500):
        hook = register(place, receiver)

        def behave(handler: Handler, uid: str = hook.uid, status: int = status) -> None:
            webhooks.delete(place.rt, WHO, WORKSPACE, uid)
            handler.answer(status)

        receiver.behave = behave
        emit_test(place)
        place.work()
        with place.rt.storage.read() as view:
            assert view.rows.page(Delivery) == []
            assert view.rows.page(WebhookEndpoint) == []


@pytest.mark.parametrize("status", [200, 500])
def test_of_a_workspace_that_is_deleted_while_it_is_told_of_something_nothing_stays(place: Place, receiver: Receiver, status: int) -> None:
    register(place, receiver)

    def behave(handler: Handler) -> None:
        erasure.delete_workspace(place.rt, WHO, WORKSPACE, with_sessions=True)
        handler.answer(status)

    receiver.behave = behave
    emit_test(place)
    try_all(place)
    assert len(receiver.requests) == 1
    with place.rt.storage.read() as view:
        assert [view.rows.page(record) for record in (Delivery, WebhookEndpoint)] == [[], []]
    assert place.tasks(outbox.WEBHOOK) == []


class Transport:
    """Takes `odd:` URLs and does with them what a test wants."""

    def __init__(self, act: Callable[[], Outcome]) -> None:
        self.act = act

    def check(self, url: str) -> None:
        return None

    def deliver(self, url: str, body: bytes, headers: object) -> Outcome:
        return self.act()

    @hookimpl
    def memservice_webhook_transports(self) -> Iterator[WebhookTransportProvider]:
        yield WebhookTransportProvider(name="odd", schemes=("odd",), open=lambda settings, context: self)


def test_a_transport_that_raises_is_an_attempt_like_any_other(start: Start) -> None:
    def act() -> Outcome:
        raise ZeroDivisionError("odd")

    place = opened(start, Transport(act))
    hook = webhooks.register(place.rt, WHO, WORKSPACE, "odd:somewhere").endpoint
    emit_test(place)
    try_all(place)
    assert [(one.status, one.error) for one in attempts(place, hook.uid)] == [(None, "ZeroDivisionError: odd")] * 3
    assert len(letters(place, hook.uid)) == 1


@pytest.mark.parametrize(
    ("error", "kept"),
    [("a\0b", "ab"), ("a\ud800b", "a\ufffdb"), ("x" * 300_000, "x" * 2_000)],
    ids=["NUL", "surrogate", "long"],
)
@pytest.mark.parametrize("raised", [False, True], ids=["said", "raised"])
def test_whatever_an_error_says_is_recorded_as_far_as_stores_can(start: Start, error: str, kept: str, raised: bool) -> None:
    """Else the attempt would be lost with it, and made again and again for ever."""

    def act() -> Outcome:
        if raised:
            raise OSError(error)
        return Outcome(error=error)

    place = opened(start, Transport(act))
    hook = webhooks.register(place.rt, WHO, WORKSPACE, "odd:somewhere").endpoint
    emit_test(place)
    try_all(place)
    (letter,) = letters(place, hook.uid)
    assert [one.error for one in attempts(place, hook.uid)] == [f"OSError: {kept}"[:2_000] if raised else kept] * 3
    assert letter.error == (f"NotDelivered: {'OSError: ' * raised}{kept}")[:2_000]


def test_events_go_to_a_file_as_well(start: Start, tmp_path: Any) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    place = opened(start, WEBHOOK_JSONL_DIRECTORY=str(folder))
    secret = webhooks.register(place.rt, WHO, WORKSPACE, "jsonl:mine").endpoint.secret
    emit_test(place)
    emit_test(place)
    place.work()
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
    def __init__(self, place: Callable[[], Place] | None = None) -> None:
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


def test_plugins_are_told_after_the_fact_with_or_without_endpoints(start: Start) -> None:
    heard = Heard()
    place = opened(start, heard)
    emit_test(place)
    place.say("s", ("alice", "I like tea."))
    assert heard.events == [("test", {"workspace_id": "w"})]
    place.work()
    assert heard.events[1:] == [
        (
            "queue_empty",
            {"workspace_id": "w", "queue_type": "representation", "session_id": "s", "observer": None, "observed": "alice"},
        )
    ]


def test_plugins_are_told_only_of_what_was_committed(start: Start) -> None:
    """And outside the transaction: a listener may use the store."""
    place: Place

    class Reader(Heard):
        @hookimpl
        def memservice_event_emitted(self, type: str, data: dict[str, Any]) -> None:
            if type in TOLD_TO_ENDPOINTS:
                self.events.append((type, {"queued": len(place.tasks(outbox.WEBHOOK)), "leases": _leases(place)}))

    heard = Reader()
    place = opened(start, heard, WEBHOOK_JSONL_DIRECTORY="/nowhere")
    webhooks.register(place.rt, WHO, WORKSPACE, "jsonl:mine")
    place.say("s", ("alice", "I like tea."))
    place.run(place.unit())
    assert heard.events == [("queue_empty", {"queued": 1, "leases": 0})]


def _leases(place: Place) -> int:
    with place.rt.storage.read() as view:
        return len(view.tasks.leases())


def test_a_plugin_that_fails_when_told_stops_nothing(start: Start, receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    heard = Heard()
    heard.fails = True
    place = opened(start, heard)
    register(place, receiver)
    with caplog.at_level(logging.ERROR):
        emit_test(place)
        place.say("s", ("alice", "I like tea."))
        place.work()
    assert sorted(event["type"] for event in receiver.events) == ["queue.empty", "test.event"]
    assert "a plugin failed when told of queue_empty: RuntimeError" in caplog.text


def test_records_of_deliveries_are_erased_after_thirty_days(place: Place, receiver: Receiver) -> None:
    hook = register(place, receiver)
    emit_test(place)
    place.work()
    place.clock.advance(days=29.9)
    emit_test(place)
    place.work()
    assert maintenance.sweep(place.rt)["deliveries"] == 0
    place.clock.advance(days=0.2)
    assert maintenance.sweep(place.rt)["deliveries"] == 1
    assert len(attempts(place, hook.uid)) == 1


def test_many_old_records_are_erased_in_pieces(place: Place, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    register(place, receiver)
    emit_test(place)
    place.work()
    monkeypatch.setattr(maintenance, "ROWS_AT_ONCE", 2)
    with place.rt.storage.read() as view:
        (row,) = view.rows.page(Delivery)
    place.rt.storage.write(lambda view: view.rows.put([replace(row, key=0, uid=f"{n:021d}") for n in range(4)]))
    place.clock.advance(days=31)
    assert maintenance.sweep(place.rt)["deliveries"] == 5


def test_a_deleted_workspace_is_told_nothing(place: Place, receiver: Receiver) -> None:
    register(place, receiver)
    emit_test(place)
    with place.rt.storage.read() as view:
        workspace = view.workspaces.by_slug(WORKSPACE)
    assert workspace is not None
    place.rt.storage.write(lambda view: view.workspaces.save(replace(workspace, state="deleting")))
    place.work()
    assert receiver.requests == []
