"""Groups of a large space in Redis: a query of one group compares its rows and no others, returns
what the whole space would, and groups stay in step with the space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import pytest
from msgspec.structs import replace
from redis import Redis

from memservice.domain.records import Space
from memservice.spi.index_filter import IndexFilter
from memservice.spi.storage import Transaction
from memservice.spi.vectors import VectorHit, VectorIndex, VectorRow
from memservice.testing.indexes import NOON, SECOND, Engine
from memservice.testing.vectors import OURS, VectorIndexContract, row
from memservice_redis import groups
from memservice_redis.server import Client, Server
from memservice_redis.vectors import RedisVectorIndex
from support.stores import redis_vectors
from support.stores.redis_vectors import index_at

PAIRS = [(observer, observed) for observer in (1, 2) for observed in (1, 2, 3)]
CONCLUSIONS, MESSAGES, DOCUMENTS = (
    replace(OURS, key=key, kind=kind, dimension=8)
    for key, kind in enumerate(("conclusion", "message", "document"), 50)
)


class Grouped(RedisVectorIndex):
    """Each space has groups from its first write."""

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
        super().upsert(tx, space, rows)
        self.keys(tx, space, limit=1_000_000)


class TestRedisVectorsByGroups(VectorIndexContract):
    @pytest.fixture
    def open_index(self, client: Redis, name: str) -> Callable[[], Engine[VectorIndex]]:
        return lambda: Engine(Grouped(Server(client, "redis://test"), name, exact_up_to=0))


def invented(dice: np.random.Generator, key: int) -> VectorRow:
    observer, observed = PAIRS[dice.integers(len(PAIRS))]
    return VectorRow(
        key,
        f'uid "r":"<7>" {key}',
        dice.standard_normal(8).astype(np.float32),
        session=int(dice.integers(1, 5)),
        observer=observer,
        observed=None if dice.random() < 0.1 else observed,
        level=("explicit", "deductive")[dice.integers(2)],
        at=NOON + int(dice.integers(60)) * SECOND,
    )


def listed(index: RedisVectorIndex, space: Space) -> None:
    """What reconciliation does in a round."""
    after = 0
    while page := index.keys(None, space, after, 20):
        after = page[-1]


def sets(client: Redis, name: str) -> set[bytes]:
    return set(client.scan_iter(f"{{{name}:*"))


def rows_of_groups(client: Redis, index: RedisVectorIndex, space: Space) -> int:
    vectors, _ = index._set_names(space)
    members = set(client.sscan_iter(groups.names(vectors)[1]))
    assert members == set(client.scan_iter(f"{redis_vectors.escaped(vectors)}:<*"))
    return index._size([group.decode() for group in members])


@pytest.mark.parametrize("space", [CONCLUSIONS, MESSAGES, DOCUMENTS], ids=lambda each: each.kind)
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.heavy) for n in (1, 2))])
def test_queries_of_groups_return_what_the_whole_space_would(
    client: Redis, name: str, space: Space, seed: int
) -> None:
    dice = np.random.default_rng(seed)
    index, whole = index_at(client, name, exact_up_to=0), index_at(client, name)
    index.upsert(None, space, [invented(dice, key) for key in range(1, 101)])
    listed(index, space)
    for _ in range(20):
        some = sorted({int(key) for key in dice.integers(1, 140, size=6)})
        index.upsert(None, space, [invented(dice, key) for key in some])
        index.delete(None, space, [int(key) for key in dice.integers(1, 140, size=3)])
        query = dice.standard_normal(8).astype(np.float32)
        for where in (
            IndexFilter(observers=(1,), observed=(2,)),
            IndexFilter(observers=(1, 2), observed=(3, 3, 9), levels=("explicit",)),
            IndexFilter(observers=(2,)),
            IndexFilter(sessions=(3,), until=NOON + 30 * SECOND),
            IndexFilter(sessions=(1, 2), observers=(1,), since=NOON + 30 * SECOND),
        ):
            assert hits(index, space, query, where) == hits(whole, space, query, where)
    expected = {
        key
        for key in index.keys(None, space)
        if space is not CONCLUSIONS or in_pair(client, index, space, key)
    }
    assert rows_of_groups(client, index, space) == len(expected)


def in_pair(client: Redis, index: RedisVectorIndex, space: Space, key: int) -> bool:
    vectors, _ = index._set_names(space)
    return b'"d":' in cast(Client, client).execute_command("VGETATTR", vectors, key)


def hits(
    index: RedisVectorIndex, space: Space, query: np.ndarray, where: IndexFilter
) -> list[tuple[int, float]]:
    return [(hit.key, round(hit.score, 5)) for hit in index.query(None, space, query, 5, where)]


def test_a_query_of_one_group_compares_no_other_rows(
    client: Redis, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []
    similar = RedisVectorIndex._similar

    def spied(self: RedisVectorIndex, name: str, *arguments: object) -> list[VectorHit]:
        compared.append(name)
        return similar(self, name, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(RedisVectorIndex, "_similar", spied)
    index = index_at(client, name, exact_up_to=10)
    dice = np.random.default_rng(5)
    index.upsert(None, CONCLUSIONS, [invented(dice, key) for key in range(1, 61)])
    vectors, _ = index._set_names(CONCLUSIONS)
    where = IndexFilter(observers=(1,), observed=(2,))
    before = hits(index, CONCLUSIONS, dice.standard_normal(8), where)
    assert set(compared) == {vectors}
    index.keys(None, CONCLUSIONS, limit=20)
    hits(index, CONCLUSIONS, dice.standard_normal(8), where)
    assert set(compared) == {vectors}, "not all rows are in groups yet"
    listed(index, CONCLUSIONS)
    compared.clear()
    assert len(hits(index, CONCLUSIONS, dice.standard_normal(8), where)) == len(before)
    assert compared == [f"{vectors}:<1>:<2>"]


def test_a_small_space_has_no_groups(client: Redis, name: str) -> None:
    index = index_at(client, name, exact_up_to=10)
    dice = np.random.default_rng(5)
    index.upsert(None, CONCLUSIONS, [invented(dice, key) for key in range(1, 11)])
    listed(index, CONCLUSIONS)
    assert len(sets(client, name)) == 2, "the vectors, and their keys"


@pytest.mark.parametrize("how", ["rows", "space", "everything"])
def test_groups_are_deleted_with_their_rows(client: Redis, name: str, how: str) -> None:
    index = index_at(client, name, exact_up_to=0)
    dice = np.random.default_rng(5)
    index.upsert(None, CONCLUSIONS, [invented(dice, key) for key in range(1, 61)])
    listed(index, CONCLUSIONS)
    assert rows_of_groups(client, index, CONCLUSIONS) > 40
    if how == "rows":
        index.delete(None, CONCLUSIONS, range(1, 61))
    elif how == "space":
        index.drop(None, CONCLUSIONS)
    else:
        index.erase()
    assert rows_of_groups(client, index, CONCLUSIONS) == 0
    index.keys(None, CONCLUSIONS)
    assert sets(client, name) == set()


def test_listing_keys_restores_groups_that_the_server_lost(client: Redis, name: str) -> None:
    index = index_at(client, name, exact_up_to=0)
    dice = np.random.default_rng(5)
    index.upsert(None, CONCLUSIONS, [invented(dice, key) for key in range(1, 61)])
    listed(index, CONCLUSIONS)
    vectors, _ = index._set_names(CONCLUSIONS)
    before = rows_of_groups(client, index, CONCLUSIONS)
    client.delete(f"{vectors}:<1>:<2>")
    listed(index, CONCLUSIONS)
    assert rows_of_groups(client, index, CONCLUSIONS) == before
    client.delete(vectors)
    assert index.keys(None, CONCLUSIONS) == []
    assert sets(client, name) == set()


def test_rows_without_a_vector_are_in_no_group(client: Redis, name: str) -> None:
    index = index_at(client, name, exact_up_to=0)
    about = {"observer": 1, "observed": 2}
    index.upsert(None, OURS, [row(1, **about), row(2, **about)])
    listed(index, OURS)
    index.upsert(None, OURS, [row(2, vector=np.zeros(4, np.float32), **about)])
    assert rows_of_groups(client, index, OURS) == 1
