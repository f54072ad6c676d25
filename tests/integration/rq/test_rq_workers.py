"""Real RQ workers on a real Redis, ended, stopped and cut off at work: nothing is lost, nothing
done twice, and the order is kept."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable

import pytest
from redis import Redis
from rq import Worker as RqWorker

import memservice
from memservice.worker.rq_queues import QUEUES, JobQueues
from memservice_sql.schema_version import HEAD
from memservice_sql.storage import VERSION_SECONDS
from support.processes.gate import DERIVE
from support.processes.processes import below, eventually, running, send, stand_still
from support.redis_server import RedisServer
from support.rq.workers import Delivery

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]

Deliver = Callable[..., Delivery]

BEES, BOAT, CHOIR = (
    "I keep bees behind the house.",
    "I repaired the old boat in May.",
    "I sing in a choir on Sundays.",
)


def test_work_is_done_in_order_and_leaves_nothing_in_redis(
    deliver: Deliver, queues: JobQueues, connection: Redis, namespace: str
) -> None:
    delivery = deliver()
    delivery.say("s", BEES, BOAT)
    worker = delivery.worker("--burst")
    assert worker.wait(60) == 0, delivery.log()
    delivery.derived(BEES, BOAT)
    running_worker = delivery.worker("--num-workers", "2")
    delivery.say("s", CHOIR)
    delivery.derived(BEES, BOAT, CHOIR)

    def registered() -> list[str]:
        workers = RqWorker.all(connection=connection)
        own = [worker for worker in workers if namespace in " ".join(worker.queue_names())]
        return sorted(worker.name.rpartition(".")[0] for worker in own)

    # The second one may still start when the first one has done all work.
    eventually(lambda: len(registered()) == 2, what="both workers are registered in Redis")
    assert registered() == sorted(
        f"{socket.gethostname()}.{pid}" for pid in below(running_worker.pid)
    )
    assert f"memservice {memservice.__version__}: 2 RQ worker(s) on ingest" in delivery.log(1)
    assert [queue.count for queue in queues.named(QUEUES)] == [0] * 5
    for queue in queues.named(QUEUES):
        registries = (
            queue.started_job_registry,
            queue.finished_job_registry,
            queue.failed_job_registry,
        )
        eventually(
            lambda r=registries: [one.count for one in r] == [0, 0, 0],  # type: ignore[misc]
            what="no job is kept",
        )
    running_worker.terminate()
    assert running_worker.wait(30) == 0
    assert "Traceback" not in delivery.log() + delivery.log(1)


def test_a_worker_killed_during_work_is_replaced_and_its_work_done_once(deliver: Deliver) -> None:
    delivery = deliver()
    delivery.gates.close(DERIVE)
    worker = delivery.worker()
    delivery.say("s", BEES, BOAT)
    killed = delivery.at_gate(DERIVE)
    assert killed in below(worker.pid)
    send(killed, signal.SIGKILL)
    delivery.gates.open(DERIVE)
    delivery.say("s", CHOIR)
    delivery.derived(BEES, BOAT, CHOIR)
    assert f"ended with status {-signal.SIGKILL}" in delivery.log()
    assert delivery.rows("SELECT DISTINCT attempts FROM tasks WHERE kind = 'representation'") == [
        (0,)
    ]
    assert worker.poll() is None


def test_sigterm_drains_and_a_second_one_ends_at_once_and_loses_nothing(deliver: Deliver) -> None:
    delivery = deliver()
    delivery.gates.close(DERIVE)
    first = delivery.worker()
    delivery.say("s", BEES)
    busy = delivery.at_gate(DERIVE)
    delivery.say("s", BOAT)
    first.terminate()
    time.sleep(0.5)
    assert running(busy), "the batch in hand is finished"
    delivery.gates.open(DERIVE)
    assert first.wait(30) == 0, delivery.log()
    assert delivery.texts() == [(BEES, 1)], "what came later is left to others"
    assert delivery.rows("SELECT * FROM leases") == []

    delivery.gates.close(DERIVE)
    second = delivery.worker()
    busy = delivery.at_gate(DERIVE)
    second.terminate()
    time.sleep(0.5)
    assert running(busy)
    second.terminate()
    assert second.wait(30) == 128 + signal.SIGTERM
    eventually(lambda: not running(busy), what="it does not wait for the model")
    delivery.gates.open(DERIVE)
    assert delivery.worker("--burst").wait(60) == 0, delivery.log(2)
    delivery.derived(BEES, BOAT)
    assert delivery.rows("SELECT DISTINCT attempts FROM tasks WHERE kind = 'representation'") == [
        (0,)
    ]


def test_a_flushed_redis_only_delays_work(deliver: Deliver, own_redis: RedisServer) -> None:
    own_redis.start()
    delivery = deliver(REDIS_URL=own_redis.url)
    delivery.gates.close(DERIVE)
    delivery.worker()
    delivery.say("s", BEES)
    delivery.at_gate(DERIVE)
    for session in ("t", "u"):
        delivery.say(session, f"{session} is a letter that I like.", author=session)
    with Redis.from_url(own_redis.url) as client:
        (ingest,) = JobQueues(client, delivery.rt.settings.app.namespace).named(["ingest"])
        eventually(lambda: ingest.count >= 2, what="two units wait in Redis, and one is in hand")
        client.flushall()
    delivery.gates.open(DERIVE)
    # A sweep may enqueue one of the two just before Redis is flushed, and the other one after it.
    texts = [BEES, *(f"{session} is a letter that I like." for session in ("t", "u"))]
    delivery.derived(*texts, in_order=False)


def test_work_written_while_redis_was_down_is_done_when_it_is_back(
    deliver: Deliver, own_redis: RedisServer
) -> None:
    delivery = deliver(REDIS_URL=own_redis.url)
    began = time.monotonic()
    delivery.say("s", BEES)
    assert time.monotonic() - began < 5
    delivery.worker()
    eventually(
        lambda: "Redis cannot be reached, waiting for it" in delivery.log(),
        what="the worker waits for it",
    )
    own_redis.start()
    delivery.derived(BEES)
    own_redis.stop()
    delivery.say("s", BOAT)
    eventually(
        lambda: delivery.log().count("Redis cannot be reached, waiting for it") == 2,
        what="the worker notices the second outage",
    )
    own_redis.start()
    delivery.say("s", CHOIR)
    delivery.derived(BEES, BOAT, CHOIR)
    assert delivery.log().count("waiting for it") <= 2, "once an outage"
    assert "Traceback" not in delivery.log()


def test_two_workers_that_race_for_units_do_each_task_once_and_in_order(deliver: Deliver) -> None:
    delivery = deliver()
    for _ in range(2):
        delivery.worker("--num-workers", "2")
    by_author: dict[str, list[str]] = {"alice": [], "bob": []}
    for number in range(12):
        for author in by_author:
            text = f"I sold {number * 13 + len(author)} lamps to {author} number {number}."
            by_author[author].append(text)
            delivery.say("s", text, author=author)
    eventually(lambda: len(delivery.texts()) == 24 and delivery.idle(), what="all is derived")
    for author, texts in by_author.items():
        rows = delivery.rows(
            "SELECT content, times_derived FROM conclusions WHERE observed = ? ORDER BY key", author
        )
        assert rows == [(text, 1) for text in texts]
    assert delivery.rows(
        "SELECT DISTINCT state, attempts FROM tasks WHERE kind = 'representation'"
    ) == [("done", 0)]


def test_a_task_that_always_fails_is_visible_and_does_not_block_later_ones(
    deliver: Deliver,
) -> None:
    delivery = deliver(WORKER_MAX_ATTEMPTS="3")
    delivery.gates.close(DERIVE)
    delivery.worker(MEMSERVICE_TEST_GATE_FAILS="poison")
    delivery.say("s", "This is poison for every model.")
    delivery.at_gate(DERIVE)
    delivery.say("s", BEES)
    delivery.gates.open(DERIVE)
    eventually(
        lambda: delivery.texts() == [(BEES, 1)] and delivery.idle(),
        what="the task that fails does not hold up the unit for ever",
    )
    rows = delivery.rows(
        "SELECT state, attempts, last_error FROM tasks WHERE kind = 'representation' ORDER BY key"
    )
    assert rows == [("failed", 3, "ValueError: this cannot be derived from"), ("done", 0, None)]
    assert "poison" not in delivery.log()


def test_a_suspended_worker_that_lost_its_lease_stores_nothing(
    deliver: Deliver,
) -> None:
    delivery = deliver(DERIVER_STALE_SESSION_TIMEOUT_MINUTES="0.03")
    delivery.gates.close(DERIVE)
    delivery.worker()
    delivery.say("s", BEES, BOAT)
    asleep = delivery.at_gate(DERIVE)
    stand_still(asleep, delivery.folder / "d.db")
    delivery.gates.open(DERIVE)
    delivery.worker()
    delivery.derived(BEES, BOAT)
    send(asleep, signal.SIGCONT)
    eventually(lambda: "lost the lease" in delivery.log(), what="the first worker notices")
    assert delivery.texts() == [(BEES, 1), (BOAT, 1)]


def test_workers_drain_when_their_pool_is_killed(deliver: Deliver) -> None:
    delivery = deliver()
    delivery.gates.close(DERIVE)
    worker = delivery.worker()
    delivery.say("s", BEES)
    busy = delivery.at_gate(DERIVE)
    worker.kill()
    worker.wait(30)
    time.sleep(2)
    assert running(busy), "it has something in hand"
    delivery.gates.open(DERIVE)
    eventually(lambda: not running(busy), what="it ends after that")
    delivery.derived(BEES)


def test_a_foreign_job_is_refused(deliver: Deliver, queues: JobQueues, namespace: str) -> None:
    delivery = deliver()
    (ingest,) = queues.named(["ingest"])
    trace = delivery.folder / "trace"
    ingest.enqueue_call("pathlib.Path.touch", args=(str(trace),))
    delivery.say("s", BEES)
    assert delivery.worker("--burst").wait(60) == 0, delivery.log()
    delivery.derived(BEES)
    eventually(lambda: ingest.count == 0)
    assert not trace.exists()
    assert "refused a job" in delivery.log()


def test_a_worker_stops_when_a_newer_release_has_migrated_the_store(deliver: Deliver) -> None:
    delivery = deliver()
    delivery.gates.close(DERIVE)
    worker = delivery.worker()
    delivery.say("s", BEES)
    delivery.at_gate(DERIVE)
    delivery.set_version("9999")
    changed_at = time.monotonic()
    eventually(
        lambda: time.monotonic() - changed_at > VERSION_SECONDS, what="the version is checked again"
    )
    delivery.gates.open(DERIVE)
    eventually(
        lambda: "stops working: The database" in delivery.log(), what="it says that it stops"
    )
    assert delivery.texts() == []
    assert delivery.rows("SELECT attempts, last_error FROM tasks") == [(0, None)]
    delivery.set_version(HEAD)
    delivery.derived(BEES)
    assert delivery.log().count("stops working") == 1
    assert "Traceback" not in delivery.log()
    worker.terminate()
    assert worker.wait(30) == 0
