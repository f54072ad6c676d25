"""The vectors that a process caches give the answers of the database, whatever others write."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec.structs import replace

from memservice.domain.errors import SchemaVersionError
from memservice.domain.records import Space
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.storage import Transaction
from memservice.spi.vectors import VectorHit, VectorIndex
from memservice.testing.indexes import Engine, RolledBack
from memservice.testing.storage.base import new_workspace
from memservice.testing.vectors import (
    OURS,
    THEIRS,
    VectorIndexContract,
    at_angle,
    keys,
    row,
    space,
)
from memservice_postgres import cached_vectors, vector_cache
from memservice_postgres.cached_vectors import Matching
from memservice_postgres.connections import config_of
from memservice_postgres.narrowing import driver_behind, fitting
from memservice_postgres.storage import PostgresStorage
from memservice_postgres.vector_indexes import SpaceIndexes
from memservice_postgres.vectors import PostgresVectorIndex
from support.stores.plans import trace
from support.stores.postgres_server import connect, drop_database
from support.stores.postgres_store import empty, migrated, new_store, opened

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

log = logging.getLogger("memservice.test")
WRITERS = (1, 2, 3)
"""Each writes the vectors of one observer."""
FILTERS = (
    EVERYTHING,
    IndexFilter(observers=WRITERS, observed=(1, 2)),
    IndexFilter(observers=(1,), observed=(2,)),
)


@pytest.fixture(scope="module")
def store() -> Iterator[tuple[str, PostgresStorage]]:
    uri = new_store()
    storage = migrated(uri, pool_size=8)
    yield uri, storage
    storage.close()
    drop_database(uri)


@pytest.fixture
def storage(store: tuple[str, PostgresStorage]) -> PostgresStorage:
    empty(store[0])
    return store[1]


@pytest.fixture
def open_cached(store: tuple[str, PostgresStorage]) -> Callable[..., PostgresVectorIndex]:
    """Opens an index, as another process would, that caches any number of vectors."""

    def opened_index(**settings: Any) -> PostgresVectorIndex:
        indexes = SpaceIndexes(config_of(store[0]), log)
        return PostgresVectorIndex(indexes, **{"min_cached": 1, **settings})

    return opened_index


class _QueryingTwice(PostgresVectorIndex):
    """Answers from memory, where it can: it asks each question twice."""

    def query(
        self,
        tx: Transaction | None,
        space: Space,
        vector: Vector,
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int] | None = None,
    ) -> list[VectorHit]:
        super().query(tx, space, vector, k, index_filter, ids)
        return super().query(tx, space, vector, k, index_filter, ids)


class TestCachedVectors(VectorIndexContract):
    @pytest.fixture
    def open_index(
        self, store: tuple[str, PostgresStorage], storage: PostgresStorage
    ) -> Callable[[], Engine[VectorIndex]]:
        indexes = SpaceIndexes(config_of(store[0]), log)
        return lambda: Engine(_QueryingTwice(indexes, min_cached=1), storage)


def query(
    storage: PostgresStorage, index: PostgresVectorIndex, index_filter: IndexFilter = EVERYTHING
) -> list[int]:
    with storage.read() as tx:
        return keys(index.query(tx, OURS, at_angle(0), 1_000, index_filter))


def query_twice(storage: PostgresStorage, index: PostgresVectorIndex) -> list[int]:
    """The answer from memory, which has the vectors afterwards."""
    query(storage, index)
    answer = query(storage, index)
    assert index.cached_bytes > 0
    return answer


@pytest.fixture
def fetch_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many vectors were fetched, each time."""
    numbers: list[int] = []
    rows = Matching.rows

    def noted(matching: Matching, content: str, versions: Any, **values: Any) -> Any:
        numbers.append(len(versions))
        return rows(matching, content, versions, **values)

    monkeypatch.setattr(Matching, "rows", noted)
    return numbers


def test_concurrent_changes_never_show(
    storage: PostgresStorage, open_cached: Callable[..., PostgresVectorIndex]
) -> None:
    """Writers, some of which roll back, and readers with older transactions: each answer equals
    what the database computes in the same transaction."""
    indexes = [open_cached(), open_cached(max_cache_bytes=30_000)]
    exact = open_cached(max_cache_bytes=0)
    failures: list[BaseException] = []
    compared = list[int]()

    def compare(tx: Transaction, dice: random.Random, index_filter: IndexFilter) -> None:
        question = at_angle(dice.uniform(0, 360))
        expected = exact.query(tx, OURS, question, 40, index_filter)
        hits = dice.choice(indexes).query(tx, OURS, question, 40, index_filter)
        scores = {hit.key: hit.score for hit in expected}
        assert len(hits) == len(expected)
        # Rounded, so that two nearly equal scores may change places.
        assert [hit.score for hit in hits] == pytest.approx(list(scores.values()), abs=1e-5)
        assert len(hits) == 40 or {hit.key for hit in hits} == set(scores)
        compared.append(len(hits))

    def change(tx: Transaction, dice: random.Random, writer: int) -> None:
        of = dice.sample(range(100 * writer, 100 * writer + 30), dice.randrange(1, 6))
        if dice.random() < 0.4:
            indexes[0].delete(tx, OURS, of)
        else:
            about = {"observer": writer, "observed": dice.choice((1, 2))}
            rows = [row(key, dice.uniform(0, 360), **about) for key in of]
            indexes[0].upsert(tx, OURS, rows)

    def write(writer: int) -> None:
        dice = random.Random(f"writer {writer}")
        # Each statement of a writing transaction sees what others committed before it.
        own = IndexFilter(observers=(writer,))
        for _ in range(40):

            def run(tx: Transaction) -> None:
                for _ in range(2):
                    change(tx, dice, writer)
                    compare(tx, dice, own)
                if dice.random() < 0.25:
                    raise RolledBack

            with suppress(RolledBack):
                storage.write(run)

    def read(number: int) -> None:
        dice = random.Random(f"reader {number}")
        for _ in range(40):
            with storage.read() as tx:
                for _ in range(3):
                    compare(tx, dice, dice.choice(FILTERS))

    def noting(run: Callable[[int], None], number: int) -> None:
        try:
            run(number)
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=noting, args=(run, number))
        for run in (write, read)
        for number in WRITERS
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures, failures[0]
    assert not any(thread.is_alive() for thread in threads)
    assert sum(number > 0 for number in compared) > 300
    assert all(index.cached_bytes > 0 for index in indexes)
    assert exact.cached_bytes == 0


def test_an_older_transaction_keeps_its_state(
    storage: PostgresStorage, open_cached: Callable[..., PostgresVectorIndex]
) -> None:
    index = open_cached()
    storage.write(lambda tx: index.upsert(tx, OURS, [row(n, n) for n in range(1, 6)]))
    assert query_twice(storage, index) == [1, 2, 3, 4, 5]
    with storage.read() as tx:
        assert keys(index.query(tx, OURS, at_angle(0), 9, EVERYTHING)) == [1, 2, 3, 4, 5]
        storage.write(lambda tx: index.delete(tx, OURS, [2]))
        storage.write(lambda tx: index.upsert(tx, OURS, [row(4, 0.5), row(6, 6)]))
        assert query(storage, index) == [4, 1, 3, 5, 6]
        assert keys(index.query(tx, OURS, at_angle(0), 9, EVERYTHING)) == [1, 2, 3, 4, 5]
    assert query(storage, index) == [4, 1, 3, 5, 6]


def test_after_growth_only_new_vectors_are_fetched(
    storage: PostgresStorage,
    open_cached: Callable[..., PostgresVectorIndex],
    fetch_sizes: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cached_vectors, "FETCH_SIZE", 2)
    index = open_cached()
    storage.write(lambda tx: index.upsert(tx, OURS, [row(n, n) for n in range(1, 8)]))
    assert query_twice(storage, index) == [1, 2, 3, 4, 5, 6, 7]
    storage.write(lambda tx: index.upsert(tx, OURS, [row(8, 8), row(3, 9)]))
    assert query(storage, index) == [1, 2, 4, 5, 6, 7, 8, 3]
    assert query(storage, index) == [1, 2, 4, 5, 6, 7, 8, 3]
    assert fetch_sizes == [2, 2, 2, 1, 2]


def test_deleted_vectors_leave_memory(
    storage: PostgresStorage, open_cached: Callable[..., PostgresVectorIndex]
) -> None:
    index = open_cached()
    rows = [row(n, n / 2, observer=1 + n % 2, observed=1) for n in range(1, 201)]
    storage.write(lambda tx: index.upsert(tx, OURS, rows))
    query_twice(storage, index)
    before = index.cached_bytes
    storage.write(lambda tx: index.delete(tx, OURS, range(1, 191)))
    assert query(storage, index) == [*range(191, 201)]
    assert index.cached_bytes < before / 4
    storage.write(lambda tx: index.drop(tx, OURS))
    assert index.cached_bytes == 0


def test_vectors_that_nobody_searches_leave_memory(
    storage: PostgresStorage,
    open_cached: Callable[..., PostgresVectorIndex],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = open_cached()
    storage.write(lambda tx: index.upsert(tx, OURS, [row(n, n) for n in range(1, 6)]))
    query_twice(storage, index)
    monkeypatch.setitem(storage.__dict__, "vectors", index)
    storage.examine()
    assert index.cached_bytes > 0
    monkeypatch.setattr(vector_cache, "IDLE_SECONDS", 0.0)
    storage.examine()
    assert index.cached_bytes == 0


def test_memory_is_bounded_and_answers_stay_correct(
    storage: PostgresStorage,
    open_cached: Callable[..., PostgresVectorIndex],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vector_cache, "MAX_FILTERS", 3)
    index = open_cached(max_cache_bytes=9_000)
    rows = [row(n, n / 3, observer=n % 5, observed=1) for n in range(1, 501)]
    storage.write(lambda tx: index.upsert(tx, OURS, rows))
    for observer in (0, 1, 1, 2, 2, 3, 3, 4, 4, 1, 1, 2):
        some = IndexFilter(observers=(observer,))
        assert query(storage, index, some) == [n for n in range(1, 501) if n % 5 == observer]
        assert index.cached_bytes <= 9_000
    assert index.cached_bytes > 0
    assert len(query(storage, index)) == len(query(storage, index)) == 500  # too many for it


def test_few_vectors_are_compared_by_the_database(
    storage: PostgresStorage,
    open_cached: Callable[..., PostgresVectorIndex],
    fetch_sizes: list[int],
) -> None:
    index = open_cached(min_cached=6)
    storage.write(lambda tx: index.upsert(tx, OURS, [row(n, n) for n in range(1, 6)]))
    for _ in range(3):
        assert query(storage, index) == [1, 2, 3, 4, 5]
    assert not fetch_sizes


def test_what_is_in_memory_is_found_in_the_index_alone(
    store: tuple[str, PostgresStorage],
    storage: PostgresStorage,
    open_cached: Callable[..., PostgresVectorIndex],
) -> None:
    index = open_cached()
    wide = space(OURS.key, dimension=384)
    chance = np.random.default_rng(1)
    rows = [
        row(n, vector=chance.standard_normal(384).astype(np.float32), observer=1, observed=2)
        for n in range(1, 2_001)
    ]
    storage.write(lambda tx: index.upsert(tx, wide, rows))
    others = [row(n, n, observer=1, observed=2) for n in range(1, 2_001)]
    storage.write(lambda tx: index.upsert(tx, THEIRS, others))
    with connect(store[0]) as connection:
        connection.execute("CHECKPOINT")  # before, a commit may not be on the disk
        connection.execute("VACUUM ANALYZE vectors")
    with storage.engine.connect() as opened_connection:
        driver: Any = opened_connection.connection.driver_connection
        fits, values = fitting(IndexFilter(observers=(1,), observed=(2,)))
        sql = vector_cache._VERSIONS.format(fits=fits)
        values["space"] = wide.key
        plan = "\n".join(line for (line,) in driver.execute(f"EXPLAIN {sql}", values))
    assert "Index Only Scan using vectors_pair_version" in plan, plan


def test_a_row_that_an_older_release_writes_is_read_again(
    store: tuple[str, PostgresStorage],
    storage: PostgresStorage,
    open_cached: Callable[..., PostgresVectorIndex],
) -> None:
    index = open_cached()
    storage.write(lambda tx: index.upsert(tx, OURS, [row(n, n) for n in range(1, 4)]))
    assert query_twice(storage, index) == [1, 2, 3]
    with connect(store[0]) as connection:
        connection.execute("UPDATE vectors SET vector = '[0,1,0,0]' WHERE row_key = 1")
    assert query(storage, index) == [2, 3, 1]


def test_the_table_of_an_older_release_is_upgraded(
    open_cached: Callable[..., PostgresVectorIndex],
) -> None:
    """Its rows have no version, until they are written."""
    uri = new_store()
    storage = opened(uri)
    try:
        index = open_cached()
        storage.write(lambda tx: index.upsert(tx, OURS, [row(n, n) for n in range(1, 4)]))
        with connect(uri) as connection:
            connection.execute("DROP TRIGGER memservice_new_vector_version ON vectors")
            connection.execute("ALTER TABLE vectors DROP COLUMN version")
            connection.execute(
                "CREATE INDEX vectors_pair ON vectors (space_key, observed_key, observer_key)"
            )
        with pytest.raises(SchemaVersionError, match="memservice db upgrade"):
            storage.check()
        storage.migrate()
        storage.check()
        with connect(uri) as connection:
            versions = connection.execute("SELECT count(*), count(version) FROM vectors")
            assert versions.fetchone() == (3, 0)
            old = connection.execute("SELECT to_regclass('vectors_pair')").fetchone()
            assert old == (None,)
        assert query_twice(storage, index) == [1, 2, 3]
        storage.write(lambda tx: index.upsert(tx, OURS, [row(1, 9), row(4, 8)]))
        assert query(storage, index) == [2, 3, 4, 1]
    finally:
        storage.close()
        drop_database(uri)


def test_a_snapshot_reads_the_states_of_all_spaces_of_a_workspace_once(
    storage: PostgresStorage, open_cached: Callable[..., PostgresVectorIndex]
) -> None:
    def add(tx: Transaction) -> list[Space]:
        workspace = tx.workspaces.save(new_workspace("w"))
        kinds = ("message", "conclusion")
        return [
            tx.spaces.save(replace(space(0, kind=kind), workspace_key=workspace.key))
            for kind in kinds
        ]

    index = open_cached()
    spaces = storage.write(add)
    for each in spaces:
        storage.write(partial(index.upsert, space=each, rows=[row(1), row(2)]))

    def search() -> list[str]:
        statements: list[str] = []
        with storage.read() as tx:
            trace(driver_behind(tx), statements)
            for each in (*spaces, *spaces):
                assert keys(index.query(tx, each, at_angle(0), 5, EVERYTHING)) == [1, 2]
        return [sql for sql in statements if "FROM vector_states" in sql]

    for _ in range(2):
        search()
    assert len(search()) == 1
    storage.write(partial(index.upsert, space=spaces[1], rows=[row(3)]))
    with storage.read() as tx:
        row_keys = [keys(index.query(tx, each, at_angle(0), 5, EVERYTHING)) for each in spaces]
    assert row_keys == [[1, 2], [1, 2, 3]]
