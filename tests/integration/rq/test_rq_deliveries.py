"""Webhooks beside the other work of an RQ worker."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

import pytest

from memservice.services import webhooks
from memservice.services.auth.principal import Principal
from memservice.worker import unit_threads as deliveries_module
from memservice.worker.unit_threads import UnitThreads
from support.processes.processes import eventually
from support.receiver import LOOPBACK, Receiver, hang
from support.rq.workers import Delivery

Deliver = Callable[..., Delivery]

BEES, BOAT = "I keep bees behind the house.", "I repaired the old boat in May."


@pytest.mark.crash
def test_an_endpoint_that_hangs_delays_no_other_work(deliver: Deliver, receiver: Receiver) -> None:
    delivery = deliver(
        WEBHOOK_ALLOW_NETWORKS=LOOPBACK, WEBHOOK_TIMEOUT_SECONDS="25", REASONER="extractive"
    )
    receiver.behave = hang
    worker = delivery.worker("--num-workers", "1")
    delivery.say("s", BEES)
    delivery.derived(BEES)
    webhooks.register(delivery.rt, Principal(admin=True), "w", receiver.url())
    delivery.say("s", BOAT)
    eventually(lambda: len(receiver.requests) == 1, what="the endpoint is told")
    began = time.monotonic()
    delivery.say("t", "I sing in a choir on Sundays.", author="bob")
    eventually(lambda: len(delivery.texts()) == 3, what="other work is done meanwhile")
    assert time.monotonic() - began < 10
    leases = delivery.rows("SELECT count(*) FROM leases WHERE unit LIKE 'webhook:%'")
    assert leases == [(1,)], "it hangs as before"
    assert len(receiver.requests) == 1, "one event after the other"
    receiver.behave = lambda handler: handler.answer(204)
    receiver.closed.set()
    worker.terminate()
    assert worker.wait(40) == 0, delivery.log()
    assert "Traceback" not in delivery.log()


@pytest.mark.crash
def test_a_burst_ends_when_everything_is_delivered(deliver: Deliver, receiver: Receiver) -> None:
    delivery = deliver(WEBHOOK_ALLOW_NETWORKS=LOOPBACK, REASONER="extractive")
    delivery.say("s", BEES)
    webhooks.register(delivery.rt, Principal(admin=True), "w", receiver.url())
    assert delivery.worker("--burst").wait(60) == 0, delivery.log()
    assert [event["type"] for event in receiver.events] == ["queue.empty"]
    assert delivery.rows("SELECT state FROM tasks WHERE kind = 'webhook'") == [("done",)]
    assert delivery.rows("SELECT * FROM leases") == []


@pytest.mark.crash
def test_a_second_sigterm_waits_for_no_endpoint_and_loses_no_event(
    deliver: Deliver, receiver: Receiver
) -> None:
    delivery = deliver(
        WEBHOOK_ALLOW_NETWORKS=LOOPBACK, WEBHOOK_TIMEOUT_SECONDS="60", REASONER="extractive"
    )
    receiver.behave = hang
    delivery.say("s", BEES)
    webhooks.register(delivery.rt, Principal(admin=True), "w", receiver.url())
    worker = delivery.worker("--num-workers", "1")
    eventually(lambda: len(receiver.requests) == 1, what="the endpoint is told")
    worker.terminate()
    time.sleep(1)
    assert worker.poll() is None, "it waits for the endpoint"
    worker.terminate()
    assert worker.wait(30) == 128 + signal.SIGTERM
    receiver.behave = lambda handler: handler.answer(204)
    assert delivery.worker("--burst").wait(60) == 0, delivery.log(1)
    assert delivery.rows("SELECT state, attempts FROM tasks WHERE kind = 'webhook'") == [
        ("done", 0)
    ]
    assert [event["type"] for event in receiver.events] == ["queue.empty"] * 2, (
        "told again: nobody knows what it made of the first time"
    )


class Endpoint:
    def __init__(self) -> None:
        self.done: list[str] = []
        self.may_end = threading.Event()
        self.began = threading.Event()

    def __call__(self, unit: str) -> None:
        self.began.set()
        assert self.may_end.wait(30)
        self.done.append(unit)


def test_a_unit_runs_once_at_a_time_and_again_for_new_tasks() -> None:
    endpoint = Endpoint()
    deliveries = UnitThreads(endpoint)
    assert not deliveries.wait(0)
    deliveries.begin("webhook:1")
    assert endpoint.began.wait(30)
    for _ in range(3):
        deliveries.begin("webhook:1")
    deliveries.begin("webhook:2")
    assert deliveries.wait(0)
    endpoint.may_end.set()
    deliveries.wait(30)
    deliveries.close()
    assert sorted(endpoint.done) == ["webhook:1", "webhook:1", "webhook:2"]


def test_a_unit_that_runs_again_is_queued_behind_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deliveries_module, "MAX_CONCURRENT_DELIVERIES", 1)
    endpoint = Endpoint()
    deliveries = UnitThreads(endpoint)
    deliveries.begin("webhook:1")
    assert endpoint.began.wait(30)
    assert not deliveries.crowded()
    deliveries.begin("webhook:1")
    deliveries.begin("webhook:2")
    assert deliveries.crowded()
    endpoint.may_end.set()
    deliveries.wait(30)
    deliveries.close()
    assert endpoint.done == ["webhook:1", "webhook:2", "webhook:1"]


def test_closing_waits_for_started_units() -> None:
    endpoint = Endpoint()
    deliveries = UnitThreads(endpoint)
    deliveries.begin("webhook:1")
    assert endpoint.began.wait(30)
    threading.Timer(0.2, endpoint.may_end.set).start()
    deliveries.close()
    assert endpoint.done == ["webhook:1"]
