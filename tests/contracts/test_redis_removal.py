"""Large vector sets are removed from Redis in steps, because it serves nobody else during one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from redis import ConnectionError as NoConnection
from redis import Redis

from memservice.domain.errors import IndexUnavailable
from memservice.spi.vectors import VectorRow
from memservice.testing.vectors import OURS
from memservice_redis import removing
from memservice_redis.server import Client
from memservice_redis.vectors import RedisVectorIndex
from support.stores.redis_vectors import index_at

ROWS = 60


@pytest.fixture
def index(client: Redis, name: str, monkeypatch: pytest.MonkeyPatch) -> RedisVectorIndex:
    """With a space of one large group. Sets are large soon, and steps small."""
    monkeypatch.setattr(removing, "MAX_FREED", 10)
    monkeypatch.setattr(removing, "BATCH_SIZE", 5)
    index = index_at(client, name, exact_up_to=0)
    dice = np.random.default_rng(5)
    vectors = dice.standard_normal((ROWS, OURS.dimension)).astype(np.float32)
    rows = [
        VectorRow(n + 1, f"u{n}", each, observer=1, observed=2) for n, each in enumerate(vectors)
    ]
    index.keys(None, OURS)
    index.upsert(None, OURS, rows)
    index.keys(None, OURS)
    return index


def sets(client: Redis, name: str) -> list[bytes]:
    return list(client.scan_iter(f"{{{name}:*"))


def observe(monkeypatch: pytest.MonkeyPatch, about: Callable[[Redis, str], None]) -> None:
    """Call `about` with each name before it is removed as a whole."""
    execute: Any = Redis.execute_command

    def observed(self: Redis, *words: Any, **options: Any) -> Any:
        if words[0] == "UNLINK":
            for word in words[1:]:
                about(self, word if isinstance(word, str) else word.decode())
        return execute(self, *words, **options)

    monkeypatch.setattr(Redis, "execute_command", observed)


REMOVALS: dict[str, Callable[[RedisVectorIndex], None]] = {
    "space": lambda index: index.drop(None, OURS),
    "everything": lambda index: index.erase(),
}


@pytest.mark.parametrize("how", REMOVALS)
def test_only_small_sets_are_removed_at_once(
    client: Redis, name: str, index: RedisVectorIndex, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: dict[str, int] = {}

    def about(client: Redis, each: str) -> None:
        if client.type(each) == b"vectorset":
            sizes[each] = cast(Client, client).execute_command("VCARD", each)

    observe(monkeypatch, about)
    REMOVALS[how](index)
    assert sets(client, name) == []
    assert len(sizes) == 2, "the space and its group"
    assert set(sizes.values()) == {10}


@pytest.mark.parametrize("how", REMOVALS)
@pytest.mark.parametrize("steps", [1, 6, 15, 23])
def test_a_removal_that_was_interrupted_is_completed_by_the_next_one(
    client: Redis,
    name: str,
    index: RedisVectorIndex,
    steps: int,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also one that was interrupted among the elements of a set."""
    left = steps
    execute: Any = Redis.execute_command

    def lost(self: Redis, *words: Any, **options: Any) -> Any:
        nonlocal left
        if words[0] in ("UNLINK", "VRANDMEMBER"):
            left -= 1
            if left < 0:
                raise NoConnection("the process is killed")
        return execute(self, *words, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Redis, "execute_command", lost)
        with pytest.raises(IndexUnavailable):
            REMOVALS[how](index)
    assert sets(client, name) != []
    REMOVALS[how](index)
    assert sets(client, name) == []
    assert index.count(None, OURS) == 0
