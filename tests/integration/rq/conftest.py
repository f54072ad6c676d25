"""Stores whose work Redis delivers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from memservice.worker.rq_queues import JobQueues
from support.redis_server import RedisServer
from support.rq.workers import Delivery

Deliver = Callable[..., Delivery]


@pytest.fixture
def namespace() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def connection(redis_url: str) -> Iterator[Redis]:
    client = Redis.from_url(redis_url)
    yield client
    client.close()


@pytest.fixture
def queues(connection: Redis, namespace: str) -> JobQueues:
    return JobQueues(connection, namespace)


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that a test may stop, start and flush as it likes; not started yet."""
    server = RedisServer(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def deliver(tmp_path: Path, redis_url: str, namespace: str) -> Iterator[Deliver]:
    """A store in which a test writes as the server does, and `memservice worker` beside it as often
    as the test starts one."""
    deliveries: list[Delivery] = []

    def make(**settings: str) -> Delivery:
        deliveries.append(
            Delivery(tmp_path, {"REDIS_URL": redis_url, "NAMESPACE": namespace, **settings})
        )
        return deliveries[-1]

    yield make
    for delivery in deliveries:
        delivery.end()
