"""Real RQ workers on a real Redis, ended, stopped and cut off at work: nothing is lost, nothing
done twice, and the order is kept."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest
from redis import Redis

from memservice.worker.rq_queues import QUEUES, JobQueues
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
    place = deliver()
    place.say("s", BEES, BOAT)
    worker = place.worker("--burst")
    assert worker.wait(60) == 0, place.log()
    place.derived(BEES, BOAT)
    running_worker = place.worker("--num-workers", "2")
    place.say("s", CHOIR)
    place.derived(BEES, BOAT, CHOIR)
    assert [queue.count for queue in queues.named(QUEUES)] == [0] * 5
    for queue in queues.named(QUEUES):
        registries = (
            queue.started_job_registry,
            queue.finished_job_registry,
            queue.failed_job_registry,
        )
        eventually(lambda r=registries: [one.count for one in r] == [0, 0, 0], 10, "no job is kept")  # type: ignore[misc]
    running_worker.terminate()
    assert running_worker.wait(30) == 0
    assert "Traceback" not in place.log() + place.log(1)


def test_a_worker_killed_during_work_is_replaced_and_its_work_done_once(deliver: Deliver) -> None:
    place = deliver()
    place.gates.close(DERIVE)
    worker = place.worker()
    place.say("s", BEES, BOAT)
    killed = place.at_gate(DERIVE)
    assert killed in below(worker.pid)
    send(killed, signal.SIGKILL)
    place.gates.open(DERIVE)
    place.say("s", CHOIR)
    place.derived(BEES, BOAT, CHOIR)
    assert f"ended with status {-signal.SIGKILL}" in place.log()
    assert place.rows("SELECT DISTINCT attempts FROM tasks WHERE kind = 'representation'") == [(0,)]
    assert worker.poll() is None


def test_sigterm_drains_and_a_second_one_ends_at_once_and_loses_nothing(deliver: Deliver) -> None:
    place = deliver()
    place.gates.close(DERIVE)
    first = place.worker()
    place.say("s", BEES)
    busy = place.at_gate(DERIVE)
    place.say("s", BOAT)
    first.terminate()
    time.sleep(0.5)
    assert running(busy), "the batch in hand is finished"
    place.gates.open(DERIVE)
    assert first.wait(30) == 0, place.log()
    assert place.texts() == [(BEES, 1)], "what came later is left to others"
    assert place.rows("SELECT * FROM leases") == []

    place.gates.close(DERIVE)
    second = place.worker()
    busy = place.at_gate(DERIVE)
    second.terminate()
    time.sleep(0.5)
    assert running(busy)
    second.terminate()
    assert second.wait(15) == 128 + signal.SIGTERM
    eventually(lambda: not running(busy), 5, "it does not wait for the model")
    place.gates.open(DERIVE)
    assert place.worker("--burst").wait(60) == 0, place.log(2)
    place.derived(BEES, BOAT)
    assert place.rows("SELECT DISTINCT attempts FROM tasks WHERE kind = 'representation'") == [(0,)]


def test_a_flushed_redis_only_delays_work(deliver: Deliver, own_redis: RedisServer) -> None:
    own_redis.start()
    place = deliver(REDIS_URL=own_redis.url)
    place.gates.close(DERIVE)
    place.worker()
    place.say("s", BEES)
    place.at_gate(DERIVE)
    for session in ("t", "u"):
        place.say(session, f"{session} is a letter that I like.", author=session)
    with Redis.from_url(own_redis.url) as client:
        (ingest,) = JobQueues(client, place.rt.settings.app.namespace).named(["ingest"])
        eventually(lambda: ingest.count >= 2, what="two units wait in Redis, and one is in hand")
        client.flushall()
    place.gates.open(DERIVE)
    place.derived(BEES, "t is a letter that I like.", "u is a letter that I like.")


def test_work_written_while_redis_was_down_is_done_when_it_is_back(
    deliver: Deliver, own_redis: RedisServer
) -> None:
    place = deliver(REDIS_URL=own_redis.url)
    began = time.monotonic()
    place.say("s", BEES)
    assert time.monotonic() - began < 5
    place.worker()
    eventually(
        lambda: "Redis cannot be reached, waiting for it" in place.log(),
        what="the worker waits for it",
    )
    own_redis.start()
    place.derived(BEES)
    own_redis.stop()
    place.say("s", BOAT)
    eventually(
        lambda: place.log().count("Redis cannot be reached, waiting for it") == 2,
        what="the worker notices the second outage",
    )
    own_redis.start()
    place.say("s", CHOIR)
    place.derived(BEES, BOAT, CHOIR)
    assert place.log().count("waiting for it") <= 2, "once an outage"
    assert "Traceback" not in place.log()


def test_two_workers_that_race_for_units_do_each_task_once_and_in_order(deliver: Deliver) -> None:
    place = deliver()
    for _ in range(2):
        place.worker("--num-workers", "2")
    said: dict[str, list[str]] = {"alice": [], "bob": []}
    for number in range(12):
        for author in said:
            text = f"I sold {number * 13 + len(author)} lamps to {author} number {number}."
            said[author].append(text)
            place.say("s", text, author=author)
    eventually(lambda: len(place.texts()) == 24 and place.idle(), what="all is derived")
    for author, texts in said.items():
        rows = place.rows(
            "SELECT content, times_derived FROM conclusions WHERE observed = ? ORDER BY key", author
        )
        assert rows == [(text, 1) for text in texts]
    assert place.rows(
        "SELECT DISTINCT state, attempts FROM tasks WHERE kind = 'representation'"
    ) == [("done", 0)]


def test_a_task_that_always_fails_is_visible_and_does_not_block_later_ones(
    deliver: Deliver,
) -> None:
    place = deliver(WORKER_MAX_ATTEMPTS="3")
    place.gates.close(DERIVE)
    place.worker(MEMSERVICE_TEST_GATE_FAILS="poison")
    place.say("s", "This is poison for every model.")
    place.at_gate(DERIVE)
    place.say("s", BEES)
    place.gates.open(DERIVE)
    eventually(
        lambda: place.texts() == [(BEES, 1)] and place.idle(),
        what="the task that fails does not hold up the unit for ever",
    )
    rows = place.rows(
        "SELECT state, attempts, last_error FROM tasks WHERE kind = 'representation' ORDER BY key"
    )
    assert rows == [("failed", 3, "ValueError: this cannot be derived from"), ("done", 0, None)]
    assert "poison" not in place.log()


def test_a_suspended_worker_that_lost_its_lease_stores_nothing(
    deliver: Deliver,
) -> None:
    place = deliver(DERIVER_STALE_SESSION_TIMEOUT_MINUTES="0.03")
    place.gates.close(DERIVE)
    place.worker()
    place.say("s", BEES, BOAT)
    asleep = place.at_gate(DERIVE)
    stand_still(asleep, place.folder / "d.db")
    place.gates.open(DERIVE)
    place.worker()
    place.derived(BEES, BOAT)
    send(asleep, signal.SIGCONT)
    eventually(lambda: "lost the lease" in place.log(), what="the first worker notices")
    assert place.texts() == [(BEES, 1), (BOAT, 1)]


def test_workers_drain_when_their_pool_is_killed(deliver: Deliver) -> None:
    place = deliver()
    place.gates.close(DERIVE)
    worker = place.worker()
    place.say("s", BEES)
    busy = place.at_gate(DERIVE)
    worker.kill()
    worker.wait(10)
    time.sleep(2)
    assert running(busy), "it has something in hand"
    place.gates.open(DERIVE)
    eventually(lambda: not running(busy), 15, "it ends after that")
    place.derived(BEES)


def test_a_foreign_job_is_refused(deliver: Deliver, queues: JobQueues, namespace: str) -> None:
    place = deliver()
    (ingest,) = queues.named(["ingest"])
    trace = place.folder / "trace"
    ingest.enqueue_call("pathlib.Path.touch", args=(str(trace),))
    place.say("s", BEES)
    assert place.worker("--burst").wait(60) == 0, place.log()
    place.derived(BEES)
    eventually(lambda: ingest.count == 0)
    assert not trace.exists()
    assert "refused a job" in place.log()
