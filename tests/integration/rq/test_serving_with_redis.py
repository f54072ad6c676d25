"""`memservice serve` with REDIS_URL: the same service, with RQ in the middle."""

from __future__ import annotations

from pathlib import Path

import pytest

from memservice.worker.rq_queues import QUEUES, JobQueues
from support.processes.processes import Service, eventually
from support.redis_server import RedisServer

pytestmark = [pytest.mark.e2e]


def test_the_worker_beside_the_server_takes_its_work_from_redis(
    tmp_path: Path, redis_url: str, namespace: str, queues: JobQueues
) -> None:
    service = Service(
        tmp_path, "--workers", "1", "--threads", "8", REDIS_URL=redis_url, NAMESPACE=namespace
    )
    try:
        assert f"runner      RQ on {redis_url}, a worker beside the server" in service.server.output
        service.say("s", ("alice", "I keep bees behind the house."))
        eventually(
            lambda: service.texts() == [("alice", "I keep bees behind the house.", 1)],
            what="it is derived",
        )
        epochs = list(queues.connection.scan_iter(f"{namespace}:epoch:*"))
        assert epochs, "it came by way of Redis"
        eventually(
            lambda: [queue.count for queue in queues.named(QUEUES)] == [0] * 5,
            what="no wake-up is left over",
        )
        assert service.server.stop() == 0
        assert "Traceback" not in service.server.log
    finally:
        service.end()


def test_a_server_works_without_redis_and_catches_up(
    tmp_path: Path, own_redis: RedisServer, namespace: str
) -> None:
    service = Service(
        tmp_path, "--workers", "1", "--threads", "8", REDIS_URL=own_redis.url, NAMESPACE=namespace
    )
    try:
        for number in range(3):
            service.say(
                "s", ("alice", f"I keep {number + 2} bees behind house {number}."), timeout=10
            )
        eventually(
            lambda: "Redis cannot be reached, so workers are not woken" in service.server.log,
            what="the server says so",
        )
        assert service.server.log.count("workers are not woken") == 1
        own_redis.start()
        eventually(lambda: len(service.texts()) == 3, what="the sweep finds it")
        assert service.server.stop() == 0
        assert "Traceback" not in service.server.log
    finally:
        service.end()
