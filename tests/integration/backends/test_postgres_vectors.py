"""Vectors in PostgreSQL keep the contract, with and without an index, and filters lose nothing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psycopg
import pytest

from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.storage import Transaction
from memservice.spi.vectors import VectorIndex
from memservice.testing.indexes import Engine
from memservice.testing.vectors import OURS, VectorIndexContract, keys, row, space
from memservice_postgres import vector_indexes
from memservice_postgres.connections import config_of
from memservice_postgres.storage import PostgresStorage
from memservice_postgres.vector_indexes import SpaceIndex, SpaceIndexes, scaled
from memservice_postgres.vectors import PostgresVectorIndex
from support.stores.postgres_server import connect, drop_database
from support.stores.postgres_store import empty, migrated, new_store

log = logging.getLogger("memservice.test")


@pytest.fixture(scope="module")
def store() -> Iterator[tuple[str, PostgresStorage]]:
    uri = new_store()
    storage = migrated(uri)
    yield uri, storage
    storage.close()
    drop_database(uri)


@pytest.fixture
def storage(store: tuple[str, PostgresStorage]) -> PostgresStorage:
    empty(store[0])
    return store[1]


class TestPostgresVectors(VectorIndexContract):
    @pytest.fixture
    def open_index(
        self, store: tuple[str, PostgresStorage], storage: PostgresStorage
    ) -> Callable[[], Engine[VectorIndex]]:
        return lambda: Engine(PostgresVectorIndex(SpaceIndexes(config_of(store[0]), log)), storage)


# Large spaces

CROWD = 3_000
BIG = space(7, dimension=48)

Crowded = tuple[PostgresStorage, PostgresVectorIndex, Any]
"""The storage, its index, and the vectors, of rows 1, 2 …"""


@pytest.fixture(scope="module", params=[False, True], ids=["full", "half"])
def crowded(
    request: pytest.FixtureRequest,
) -> Iterator[
    tuple[PostgresStorage, PostgresVectorIndex, np.ndarray[tuple[int, int], np.dtype[np.float32]]]
]:
    """A space that has its index: 3,000 vectors in 30 heaps, one session in fifty rare ones. No
    vector is cached in memory."""
    uri = new_store()
    storage = migrated(uri)
    indexes = SpaceIndexes(config_of(uri), log, half=request.param, large=CROWD)
    index = PostgresVectorIndex(indexes, exact=20, max_cache_bytes=0)
    chance = np.random.default_rng(5)
    heaps = chance.standard_normal((30, 48))
    vectors = (heaps[np.arange(CROWD) % 30] + 0.5 * chance.standard_normal((CROWD, 48))).astype(
        np.float32
    )
    rows = [
        row(n + 1, vector=vector, session=n % 50, author=n % 2) for n, vector in enumerate(vectors)
    ]
    storage.write(lambda tx: index.upsert(tx, BIG, rows))
    indexes.build_if_large(BIG)
    yield storage, index, vectors
    storage.close()
    drop_database(uri)


def test_a_large_space_is_searched_by_its_index(crowded: Crowded) -> None:
    storage, index, vectors = crowded
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    hits_found = expected = 0
    for query in unit[:20] + 0.02:
        with storage.read() as tx:
            hits = index.query(tx, BIG, query, 10, EVERYTHING)
        scores = unit @ (query / np.linalg.norm(query))
        best = {int(n) + 1 for n in np.argsort(-scores)[:10]}
        hits_found, expected = hits_found + len(best & set(keys(hits))), expected + 10
        assert [hit.score for hit in hits] == pytest.approx(
            [float(scores[key - 1]) for key in keys(hits)], abs=1e-5
        )
        assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.key))
    assert hits_found / expected > 0.9
    with storage.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        index_row = index.indexes.of(driver, BIG)
        assert index_row is not None
        type_ = index_row.type
        query = "(SELECT vector FROM vectors WHERE space_key = 7 LIMIT 1)"
        sql = (
            f"SELECT row_key FROM vectors r WHERE r.space_key = 7 ORDER BY (r.vector::{type_}) "
            f"<#> {query}::{type_} LIMIT 10"
        )
        plan = " ".join(line for (line,) in driver.execute(f"EXPLAIN {sql}"))
    assert "vectors_hnsw_7_" in plan


@pytest.mark.parametrize(
    "where",
    [
        IndexFilter(sessions=(3,)),
        IndexFilter(sessions=(3, 4), authors=(1,)),
        IndexFilter(authors=(0,)),
    ],
    ids=repr,
)
def test_filters_lose_nothing_in_a_large_space(crowded: Crowded, where: IndexFilter) -> None:
    """As many as there are, and by and large the nearest."""
    storage, index, vectors = crowded
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    fits = [
        n
        for n in range(CROWD)
        if (where.sessions is None or n % 50 in where.sessions)
        and (where.authors is None or n % 2 in where.authors)
    ]
    with storage.read() as tx:
        hits = index.query(tx, BIG, vectors[8], 25, where)
    best = sorted(fits, key=lambda n: -float(unit[n] @ unit[8]))[:25]
    assert len(hits) == 25
    assert {key - 1 for key in keys(hits)} <= set(fits)
    assert len({key - 1 for key in keys(hits)} & set(best)) >= 22


@pytest.mark.parametrize("where", [EVERYTHING, IndexFilter(authors=(0,))])
def test_a_filter_that_many_vectors_match_uses_the_index(
    crowded: Crowded, where: IndexFilter
) -> None:
    """Whatever the planner estimates; and later statements of the transaction may sort again."""
    storage, index, vectors = crowded
    with storage.read() as tx:
        driver: Any = tx.rows.connection.connection.driver_connection  # type: ignore[attr-defined]
        index_row = index.indexes.of(driver, BIG)
        assert index_row is not None
        assert index_row.rows == CROWD
        before = scans(tx)
        assert len(index.query(tx, BIG, vectors[0], 10, where)) == 10
        assert scans(tx) == before + 1
        assert driver.execute("SHOW enable_sort").fetchone() == ("on",)


def scans(tx: Transaction) -> int:
    """How often this connection has used the index of the crowded space lately."""
    driver: Any = tx.rows.connection.connection.driver_connection  # type: ignore[attr-defined]
    names = ("vectors_hnsw_7_full", "vectors_hnsw_7_half")
    sql = "SELECT pg_stat_get_xact_numscans(to_regclass(%s))"
    return sum(driver.execute(sql, (name,)).fetchone()[0] or 0 for name in names)


@pytest.mark.parametrize("where", [EVERYTHING, IndexFilter(authors=(0,))])
def test_vectors_that_fit_in_memory_are_compared_there_in_a_large_space_too(
    crowded: Crowded, where: IndexFilter
) -> None:
    storage, searched, vectors = crowded
    index = PostgresVectorIndex(searched.indexes, exact=20)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    step = 1 if where == EVERYTHING else 2
    with storage.read() as tx:
        before = scans(tx)
        index.query(tx, BIG, vectors[0], 10, where)
        assert (scans(tx) - before, index.cached_bytes) == (1, 0), "once: the index is faster"
        for number in range(5):
            hits = index.query(tx, BIG, vectors[number], 10, where)
            best = np.argsort(-(unit[::step] @ unit[number]), kind="stable")[:10] * step + 1
            assert keys(hits) == best.tolist()
        assert scans(tx) == before + 1
    assert index.cached_bytes > 0


def test_vectors_that_memory_has_no_room_for_are_left_to_the_index(crowded: Crowded) -> None:
    """Nothing else leaves the memory for them: filters in turn would read each other's again."""
    storage, searched, vectors = crowded
    index = PostgresVectorIndex(searched.indexes, exact=20, max_cache_bytes=CROWD * 48 * 3)
    with storage.read() as tx:
        for _ in range(3):
            index.query(tx, BIG, vectors[0], 10, IndexFilter(authors=(0,)))
        cached, before = index.cached_bytes, scans(tx)
        assert cached > 0
        for number in range(3):
            assert len(index.query(tx, BIG, vectors[0], 10, EVERYTHING)) == 10
            assert scans(tx) == before + number + 1
        assert index.cached_bytes == cached


def test_with_little_shared_memory_one_process_builds_the_index(
    store: tuple[str, PostgresStorage], storage: PostgresStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """As in a container whose /dev/shm holds 64 MB."""

    class Short:
        """A connection to a server that has no shared memory left."""

        def __init__(self, driver: Any) -> None:
            self._driver = driver
            self.statements: list[str] = []

        def execute(self, sql: bytes | str, *arguments: Any) -> Any:
            statement = sql.decode() if isinstance(sql, bytes) else sql
            self.statements.append(statement)
            workers = self._driver.execute("SHOW max_parallel_maintenance_workers").fetchall()[0][0]
            if statement.startswith("CREATE INDEX") and workers != "0":
                raise psycopg.errors.DiskFull("could not resize shared memory segment")
            return self._driver.execute(sql, *arguments)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._driver, name)

        def __enter__(self) -> Any:
            self._driver.__enter__()
            return self

        def __exit__(self, *error: object) -> None:
            self._driver.__exit__(*error)

    here = config_of(store[0])
    short: list[Short] = []

    class There:
        def connect(self, **settings: str) -> Any:
            short.append(Short(here.connect(**settings)))
            return short[-1]

    indexes = SpaceIndexes(There(), log, large=3)  # type: ignore[arg-type]
    index = PostgresVectorIndex(indexes)
    storage.write(lambda tx: index.upsert(tx, OURS, [row(n) for n in range(1, 4)]))
    with caplog.at_level(logging.INFO):
        indexes.build_if_large(OURS)
    assert [
        statement.split()[0]
        for statement in short[0].statements
        if statement.startswith(("CREATE", "DROP"))
    ] == [
        "CREATE",
        "DROP",
        "CREATE",
    ]
    assert "could not resize shared memory segment; building it in one process" in caplog.text
    with connect(store[0]) as connection:
        valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'vectors_hnsw_1_full'::regclass"
        assert connection.execute(valid).fetchall() == [(True,)]


def test_memory_for_building_follows_the_vectors_up_to_the_limit() -> None:
    full, half = (SpaceIndex(1, 384, half=half) for half in (False, True))
    assert full.megabytes(1_000_000) == 2_337
    assert half.megabytes(1_000_000) == 1_569
    assert full.megabytes(20_000) == 47


@pytest.mark.parametrize(("dimension", "rows"), [(3, 20_000), (384, 20_000), (1_536, 5_000)])
def test_of_large_vectors_fewer_are_compared_one_by_one(dimension: int, rows: int) -> None:
    assert scaled(20_000, space(dimension, dimension=dimension)) == rows


def test_an_unfinished_index_is_rebuilt_and_one_without_rows_dropped(
    store: tuple[str, PostgresStorage], storage: PostgresStorage
) -> None:
    uri = store[0]
    indexes = SpaceIndexes(config_of(uri), log, large=3)
    index = PostgresVectorIndex(indexes)
    storage.write(lambda tx: index.upsert(tx, OURS, [row(n) for n in range(1, 4)]))
    indexes.build_if_large(OURS)
    with connect(uri) as connection:
        named = (
            "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = "
            "i.indexrelid WHERE c.relname LIKE 'vectors_hnsw%'"
        )
        assert connection.execute(named).fetchall() == [("vectors_hnsw_1_full", True)]
        connection.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = "
            "'vectors_hnsw_1_full'::regclass"
        )
        with storage.read() as tx:
            assert len(index.query(tx, OURS, row(1).vector, 5, EVERYTHING)) == 3
        # By itself, and here as well: whoever comes first.
        deadline = time.monotonic() + 30
        while connection.execute(named).fetchall() != [("vectors_hnsw_1_full", True)]:
            assert time.monotonic() < deadline
            indexes.build_if_large(OURS)
        storage.write(lambda tx: index.drop(tx, OURS))
        # The build that began by itself may still hold the lock, and then this one does nothing.
        while connection.execute(named).fetchall():
            assert time.monotonic() < deadline
            indexes.build_if_large(OURS)


def test_a_small_space_is_looked_at_once_a_minute(
    store: tuple[str, PostgresStorage],
    storage: PostgresStorage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And not by each search, which would start a thread and open a connection each time."""
    looks: list[str] = []
    find = vector_indexes._find

    def counted_find(*arguments: Any) -> Any:
        looks.append(threading.current_thread().name)
        return find(*arguments)

    monkeypatch.setattr(vector_indexes, "_find", counted_find)
    indexes = SpaceIndexes(config_of(store[0]), log)
    index = PostgresVectorIndex(indexes)
    storage.write(lambda tx: index.upsert(tx, OURS, [row(n) for n in range(1, 4)]))
    for _ in range(3):
        with storage.read() as tx:
            assert len(index.query(tx, OURS, row(1).vector, 5, EVERYTHING)) == 3
        for thread in threading.enumerate():
            if thread.name == "memservice-vectors":
                thread.join(30)
    assert sorted(looks) == ["MainThread", "memservice-vectors"]


def test_an_index_is_built_automatically_once_a_space_is_large(
    store: tuple[str, PostgresStorage], storage: PostgresStorage
) -> None:
    index = PostgresVectorIndex(SpaceIndexes(config_of(store[0]), log, large=3))
    storage.write(lambda tx: index.upsert(tx, OURS, [row(n) for n in range(1, 4)]))
    with storage.read() as tx:
        index.query(tx, OURS, row(1).vector, 5, EVERYTHING)
    deadline = time.monotonic() + 30
    with connect(store[0]) as connection:
        while (
            connection.execute(
                "SELECT 1 FROM pg_class WHERE relname = 'vectors_hnsw_1_full'"
            ).fetchone()
            is None
        ):
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("dimension", "type"), [(2_000, "vector(2000)"), (3_072, "halfvec(3072)"), (4_096, None)]
)
def test_long_vectors_have_indexes_of_shorter_numbers(
    store: tuple[str, PostgresStorage], storage: PostgresStorage, dimension: int, type: str | None
) -> None:
    indexes, long = (
        SpaceIndexes(config_of(store[0]), log, large=2),
        space(dimension, dimension=dimension),
    )
    index = PostgresVectorIndex(indexes)
    vectors = np.eye(3, dimension, dtype=np.float32)
    storage.write(
        lambda tx: index.upsert(tx, long, [row(n + 1, vector=vectors[n]) for n in range(3)])
    )
    indexes.build_if_large(long)
    with storage.read() as tx:
        assert [
            (hit.key, round(hit.score, 5))
            for hit in index.query(tx, long, vectors[1], 1, EVERYTHING)
        ] == [(2, 1.0)]
        assert index.fetch(tx, long, [3])[3].tolist() == vectors[2].tolist()
    with connect(store[0]) as connection:
        definitions = connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE indexname = ANY(%s)",
            ([f"vectors_hnsw_{dimension}_{n}" for n in ("full", "half")],),
        ).fetchall()
    assert (f"::{type}" in str(definitions[0][0])) if type else definitions == []
