"""Large vectors that have no room in memory: their signatures name the candidates, and the database
compares those."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.storage import Transaction
from memservice.testing.vectors import keys, row, space
from memservice_postgres import cached_vectors, vector_cache
from memservice_postgres.connections import config_of
from memservice_postgres.storage import PostgresStorage
from memservice_postgres.vector_indexes import SpaceIndexes
from memservice_postgres.vectors import PostgresVectorIndex
from support.stores.postgres_server import drop_database
from support.stores.postgres_store import migrated, new_store

DIMENSION, ROWS = 1_024, 1_800
LARGE = space(9, dimension=DIMENSION)
MAX_BYTES = 400_000
"""Room for 97 vectors, or for 3,125 signatures."""


def vectors(rows: int, seed: int) -> Any:
    heaps = np.random.default_rng(1).standard_normal((40, DIMENSION))
    drawn = heaps[np.arange(rows) % 40]
    drawn = drawn + np.random.default_rng(seed).standard_normal((rows, DIMENSION))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def store() -> Iterator[tuple[PostgresStorage, SpaceIndexes]]:
    uri = new_store()
    storage = migrated(uri)
    indexes = SpaceIndexes(config_of(uri), logging.getLogger("memservice.test"), large=ROWS)
    index = PostgresVectorIndex(indexes)
    rows = [row(n + 1, vector=vector, author=n % 2) for n, vector in enumerate(vectors(ROWS, 2))]
    storage.write(lambda tx: index.upsert(tx, LARGE, rows))
    indexes.build_if_large(LARGE)
    yield storage, indexes
    storage.close()
    drop_database(uri)


@pytest.fixture
def storage(store: tuple[PostgresStorage, SpaceIndexes]) -> PostgresStorage:
    return store[0]


@pytest.fixture
def index(store: tuple[PostgresStorage, SpaceIndexes]) -> PostgresVectorIndex:
    return PostgresVectorIndex(store[1], exact=20, max_cache_bytes=MAX_BYTES, min_cached=1)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signatures are read at the second search, whatever was written before."""
    monkeypatch.setattr(vector_cache, "UNCHANGED_SEARCHES", 0)


def index_scans(tx: Transaction) -> int:
    driver: Any = tx.rows.connection.connection.driver_connection  # type: ignore[attr-defined]
    sql = "SELECT pg_stat_get_xact_numscans(to_regclass('vectors_hnsw_9_full'))"
    return driver.execute(sql).fetchone()[0] or 0


def best(stored: dict[int, Any], query: Any, k: int) -> list[int]:
    scores = {key: float(vector @ query) for key, vector in stored.items()}
    return sorted(scores, key=lambda key: (-scores[key], key))[:k]


def rows_by_key() -> dict[int, Any]:
    return dict(enumerate(vectors(ROWS, 2), 1))


@pytest.mark.parametrize("where", [EVERYTHING, IndexFilter(authors=(0, 1))])
def test_the_second_search_needs_no_index(
    storage: PostgresStorage, index: PostgresVectorIndex, where: IndexFilter
) -> None:
    stored = rows_by_key()
    with storage.read() as tx:
        before = index_scans(tx)
        index.query(tx, LARGE, stored[1], 5, where)
        assert index_scans(tx) == before + 1
        assert index.cached_bytes == 0
        for query in vectors(12, 3):
            hits = index.query(tx, LARGE, query, 5, where)
            assert keys(hits) == best(stored, query, 5)
            assert [hit.score for hit in hits] == pytest.approx(
                [float(stored[hit.key] @ query) for hit in hits], abs=1e-5
            )
        assert index_scans(tx) == before + 1
    assert 0 < index.cached_bytes <= MAX_BYTES


def test_changes_show_at_once_and_older_transactions_keep_their_state(
    storage: PostgresStorage, index: PostgresVectorIndex
) -> None:
    stored = rows_by_key()
    query, moved = vectors(2, 4)
    nearest = best(stored, query, 5)

    def answer(tx: Transaction) -> list[int]:
        return keys(index.query(tx, LARGE, query, 5, EVERYTHING))

    with storage.read() as tx:
        assert answer(tx) == answer(tx) == nearest
    with storage.read() as older:
        assert answer(older) == nearest
        storage.write(lambda tx: index.delete(tx, LARGE, nearest[:2]))
        storage.write(lambda tx: index.upsert(tx, LARGE, [row(9_001, vector=query, author=0)]))
        changed = {key: vector for key, vector in stored.items() if key not in nearest[:2]}
        changed[9_001] = query
        with storage.read() as tx:
            before = index_scans(tx)
            assert answer(tx) == best(changed, query, 5)
            assert index_scans(tx) == before
        assert answer(older) == nearest
    storage.write(lambda tx: index.upsert(tx, LARGE, [row(9_001, vector=moved, author=0)]))
    changed[9_001] = moved
    with storage.read() as tx:
        before = index_scans(tx)
        assert answer(tx) == best(changed, query, 5)
        assert index_scans(tx) == before
    storage.write(lambda tx: index.delete(tx, LARGE, [9_001]))
    back = [row(key, vector=stored[key], author=(key - 1) % 2) for key in nearest[:2]]
    storage.write(lambda tx: index.upsert(tx, LARGE, back))
    with storage.read() as tx:
        assert answer(tx) == nearest


def test_signatures_are_read_in_parts_and_the_index_answers_meanwhile(
    storage: PostgresStorage, index: PostgresVectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_vectors, "MAX_SIGNATURES_READ", 700)
    stored = rows_by_key()
    with storage.read() as tx:
        before, scans = index_scans(tx), []
        for query in vectors(6, 5):
            assert keys(index.query(tx, LARGE, query, 1, EVERYTHING)) == best(stored, query, 1)
            scans.append(index_scans(tx) - before)
    # The first search reads nothing, the second and third one have only a part.
    assert scans == [1, 2, 3, 3, 3, 3]


def test_the_nearest_are_among_the_vectors_that_are_compared(
    storage: PostgresStorage, index: PostgresVectorIndex
) -> None:
    stored, among_best = rows_by_key(), 0
    with storage.read() as tx:
        for query in vectors(12, 3)[:2]:  # the first search asks the index
            index.query(tx, LARGE, query, 40, EVERYTHING)
        before = index_scans(tx)
        for query in vectors(12, 3)[2:]:
            hits = index.query(tx, LARGE, query, 40, EVERYTHING)
            among_best += len(set(keys(hits)) & set(best(stored, query, 40)))
        assert index_scans(tx) == before
    assert among_best >= 398, "of 400"


def test_many_hits_are_left_to_the_index(
    storage: PostgresStorage, index: PostgresVectorIndex
) -> None:
    assert scans_of_searches(storage, index, hits=200) == [1, 2, 3]
    assert index.cached_bytes > 0


def test_too_many_signatures_are_left_to_the_index(
    storage: PostgresStorage, index: PostgresVectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_cache, "MAX_SIGNATURES", ROWS - 1)
    assert scans_of_searches(storage, index, hits=5) == [1, 2, 3]
    assert index.cached_bytes == 0


def scans_of_searches(
    storage: PostgresStorage, index: PostgresVectorIndex, hits: int, searches: int = 3
) -> list[int]:
    """How often the index was used after each search."""
    query = vectors(1, 6)[0]
    scans = []
    with storage.read() as tx:
        before = index_scans(tx)
        for _ in range(searches):
            assert len(index.query(tx, LARGE, query, hits, EVERYTHING)) == hits
            scans.append(index_scans(tx) - before)
    return scans


def test_while_a_space_changes_the_index_answers(
    storage: PostgresStorage, index: PostgresVectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading signatures, and listing versions, takes as long as several searches in an index."""
    monkeypatch.setattr(vector_cache, "UNCHANGED_SEARCHES", 3)
    query = vectors(1, 7)[0]

    def change() -> None:
        storage.write(lambda tx: index.upsert(tx, LARGE, [row(9_002, vector=query, author=0)]))

    # The first search counts nothing, the second decides, the third one sees the first state.
    assert scans_of_searches(storage, index, 5, searches=8) == [1, 2, 3, 4, 5, 5, 5, 5]
    for _ in range(5):
        change()
        assert scans_of_searches(storage, index, 5, searches=2) == [1, 2]
        with storage.read() as tx:
            assert keys(index.query(tx, LARGE, query, 1, EVERYTHING)) == [9_002]
    assert scans_of_searches(storage, index, 5, searches=3) == [0, 0, 0]
    storage.write(lambda tx: index.delete(tx, LARGE, [9_002]))
