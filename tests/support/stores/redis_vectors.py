"""Redis with vector sets, for tests: a stand-in that always runs, and the real one that
`MEMSERVICE_TEST_REDIS_URL` names if it is 8.0 or newer. The `redis-server` that the other tests
start themselves may be older."""

from __future__ import annotations

import os
from itertools import count
from typing import Any

import fakeredis
import pytest
from redis import Redis

from memservice_redis.server import Server
from memservice_redis.vectors import RedisVectorIndex
from support import redis_server

SERVERS = ("stand-in", "real")
_numbers = count(1)


class StandIn(fakeredis.FakeRedis):
    """It has the commands of Redis 8, but reports no version."""

    version = "8.0.2"

    def info(self, section: str | None = None, *args: Any, **options: Any) -> dict[str, str]:
        return {"redis_version": self.version}


def real_url() -> str | None:
    """Of a Redis with vector sets, if the environment names one."""
    url = os.environ.get(redis_server.VARIABLE)
    if not url:
        return None
    with Redis.from_url(url) as client:
        version = str(client.info("server")["redis_version"])
    return url if int(version.partition(".")[0]) >= 8 else None


def client_of(kind: str) -> Redis:
    if kind == "stand-in":
        return StandIn(server=fakeredis.FakeServer(version=(8,)))
    url = real_url()
    if url is None:
        pytest.skip(
            f"vector sets of a real Redis: set {redis_server.VARIABLE} to one of version "
            "8.0 or newer"
        )
    return Redis.from_url(url)


def namespace() -> str:
    """Tests share a real server, so each has its own."""
    return f"test-{os.getpid()}-{next(_numbers)}"


def index_at(client: Redis, name: str, **options: Any) -> RedisVectorIndex:
    return RedisVectorIndex(Server(client, "redis://test"), name, **options)


def erase(client: Redis, name: str) -> None:
    keys = list(client.scan_iter(f"{{{name}:*"))
    if keys:
        client.unlink(*keys)


def escaped(name: str) -> str:
    """For a pattern of SCAN."""
    return "".join(f"\\{letter}" if letter in "*?[]\\" else letter for letter in name)
