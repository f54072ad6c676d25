"""Vectors in SQLite keep the contract, and what a process holds in memory is always what was
committed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.storage import Transaction
from memservice.spi.vectors import VectorIndex
from memservice.testing.indexes import Engine, RolledBack
from memservice.testing.vectors import OURS, THEIRS, VectorIndexContract, at_angle, keys, row, space
from memservice_sqlite import vector_cache
from memservice_sqlite.vector_blocks import block_of
from memservice_sqlite.vectors import SqliteVectorIndex
from support.examples import examples
from support.processes import preloaded
from support.stores.sqlite_file import SqliteFile, open_whole, view_of


@pytest.mark.heavy
class TestSqliteVectorsInTheStorage(VectorIndexContract):
    @pytest.fixture
    def open_index(
        self, tmp_path: Path, template: Path
    ) -> Iterator[Callable[[], Engine[VectorIndex]]]:
        storage = open_whole(Path(shutil.copy(template, tmp_path / "memory.db")))
        yield lambda: Engine(SqliteVectorIndex(), storage)
        storage.close()


class TestSqliteVectors(VectorIndexContract):
    @pytest.fixture
    def open_index(self, file: SqliteFile) -> Callable[[], Engine[VectorIndex]]:
        return lambda: Engine(SqliteVectorIndex(), file)


class TestSqliteVectorsWithoutMemory(VectorIndexContract):
    """Nothing fits into memory: everything is read from the file."""

    @pytest.fixture
    def open_index(self, file: SqliteFile) -> Callable[[], Engine[VectorIndex]]:
        return lambda: Engine(SqliteVectorIndex(max_cache_bytes=0), file)


# By default, the random histories below forget tombstones.
@pytest.mark.heavy
class TestSqliteVectorsThatForgetTombstones(VectorIndexContract):
    """Tombstones are pruned at once: what is held is read anew after each deletion."""

    @pytest.fixture
    def open_index(self, file: SqliteFile) -> Callable[[], Engine[VectorIndex]]:
        return lambda: Engine(SqliteVectorIndex(max_tombstones=0), file)


def keys_of(
    file: SqliteFile,
    index: SqliteVectorIndex,
    index_filter: IndexFilter = EVERYTHING,
    k: int = 10_000,
) -> list[int]:
    with file.read() as tx:
        return keys(index.query(tx, OURS, at_angle(0), k, index_filter))


def upsert(file: SqliteFile, index: SqliteVectorIndex, rows: Sequence[Any]) -> None:
    file.write(lambda tx: index.upsert(tx, OURS, rows))


def delete(file: SqliteFile, index: SqliteVectorIndex, row_keys: Sequence[int]) -> None:
    file.write(lambda tx: index.delete(tx, OURS, row_keys))


def test_a_transaction_of_another_storage_is_refused() -> None:
    with pytest.raises(TypeError, match="SQLite storage"):
        SqliteVectorIndex().count(None, OURS)


def test_a_search_that_fails_half_way_does_not_read_vectors_twice(
    file: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement may reach its deadline after some of the new vectors were read."""
    index, writer = SqliteVectorIndex(), SqliteVectorIndex()
    upsert(file, writer, [row(1, 10)])
    assert keys_of(file, index) == [1]
    upsert(file, writer, [row(key, key) for key in range(2, 9)])
    monkeypatch.setattr(vector_cache, "FETCH_SIZE", 3)
    numbers = count(1)

    def interrupted(*arguments: Any) -> Any:
        if next(numbers) == 2:
            raise TimeoutError
        return block_of(*arguments)

    monkeypatch.setattr("memservice_sqlite.vector_cache.block_of", interrupted)
    with pytest.raises(TimeoutError):
        keys_of(file, index)
    assert sorted(keys_of(file, index)) == list(range(1, 9))
    delete(file, writer, [2, 3])
    assert sorted(keys_of(file, index)) == [1, *range(4, 9)]


def test_reused_keys_of_a_rolled_back_transaction_do_no_harm(
    file: SqliteFile,
) -> None:
    index, bystander = SqliteVectorIndex(), SqliteVectorIndex()
    upsert(file, index, [row(1, 10)])
    assert keys_of(file, index) == keys_of(file, bystander) == [1]
    ghosts: list[int] = []

    def fail(tx: Transaction) -> None:
        connection: Any = tx.rows
        index.upsert(tx, OURS, [row(2, 20), row(3, 30)])
        ghosts.extend(
            row[0]
            for row in connection.connection.exec_driver_sql(
                "SELECT key FROM vectors WHERE row_key > 1"
            )
        )
        # Both ask inside the transaction, and neither may keep what it sees.
        for opened in (index, bystander):
            assert keys(opened.query(tx, OURS, at_angle(0), 9, EVERYTHING)) == [1, 2, 3]
        raise RolledBack

    with pytest.raises(RolledBack):
        file.write(fail)
    assert keys_of(file, index) == keys_of(file, bystander) == [1]
    upsert(file, index, [row(7, 70), row(8, 80)])
    with file.engine.connect() as connection:
        reused = [
            key
            for (key,) in connection.exec_driver_sql("SELECT key FROM vectors WHERE row_key > 1")
        ]
    assert sorted(reused) == sorted(ghosts), "the premise: SQLite gives the keys out again"
    assert keys_of(file, index) == keys_of(file, bystander) == [1, 7, 8]


def test_a_rolled_back_deletion_does_no_harm(file: SqliteFile) -> None:
    index = SqliteVectorIndex()
    upsert(file, index, [row(n, n) for n in range(1, 5)])
    assert keys_of(file, index) == [1, 2, 3, 4]

    def fail(tx: Transaction) -> None:
        index.delete(tx, OURS, [1, 2])
        assert keys(index.query(tx, OURS, at_angle(0), 9, EVERYTHING)) == [3, 4]
        raise RolledBack

    with pytest.raises(RolledBack):
        file.write(fail)
    delete(file, index, [4])
    assert keys_of(file, index) == [1, 2, 3]


def test_uncommitted_vectors_are_invisible_to_others(file: SqliteFile) -> None:
    index = SqliteVectorIndex()
    upsert(file, index, [row(1, 10)])

    def ask_meanwhile(tx: Transaction) -> None:
        index.upsert(tx, OURS, [row(2, 5)])
        assert keys(index.query(tx, OURS, at_angle(0), 9, EVERYTHING)) == [2, 1]
        assert keys_of(file, index) == [1]

    file.write(ask_meanwhile)
    assert keys_of(file, index) == [2, 1]


def test_an_older_transaction_keeps_its_state(file: SqliteFile) -> None:
    index = SqliteVectorIndex()
    upsert(file, index, [row(n, n) for n in range(1, 11)])
    with file.transaction("BEGIN") as connection:
        tx = view_of(connection)
        assert keys(index.query(tx, OURS, at_angle(0), 20, EVERYTHING)) == list(range(1, 11))
        upsert(file, index, [row(11, 11), row(12, 12, observer=1, observed=1)])
        delete(file, index, [1])
        assert keys_of(file, index) == list(range(2, 13))
        assert keys(index.query(tx, OURS, at_angle(0), 20, EVERYTHING)) == list(range(1, 11))
    assert keys_of(file, index) == list(range(2, 13))


def test_after_growth_only_new_rows_are_read(file: SqliteFile) -> None:
    index = SqliteVectorIndex()
    upsert(file, index, [row(n, n / 10) for n in range(1, 501)])
    assert len(keys_of(file, index)) == 500
    for n in range(501, 504):
        upsert(file, index, [row(n, n / 10)])
        file.statements.clear()
        assert len(keys_of(file, index)) == n
        reading = [statement for statement in file.statements if "r.vector" in statement]
        assert len(reading) == 1
        assert f"r.key > {n - 1}" in reading[0]
    delete(file, index, [1])
    file.statements.clear()
    assert len(keys_of(file, index)) == 502
    assert not [statement for statement in file.statements if "r.vector" in statement]
    file.statements.clear()
    assert len(keys_of(file, index)) == 502
    assert len(file.statements) == 3, "begin, one read, commit"


def test_changes_are_found_by_an_index_seek(file: SqliteFile) -> None:
    index = SqliteVectorIndex()
    upsert(file, index, [row(1, 1)])
    keys_of(file, index)
    upsert(file, index, [row(2, 2)])
    delete(file, index, [1])
    file.statements.clear()
    keys_of(file, index)
    keys_of(file, index, IndexFilter(observers=(1,), observed=(1,)))
    selects = [statement for statement in file.statements if "FROM vector" in statement]
    with file.engine.connect() as connection:
        for sql in selects:
            parameters: Any = (
                {"space": 1, "pairs": "[]"} if ":" in sql else (None,) * sql.count("?")
            )
            plan = "; ".join(
                line[-1]
                for line in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", parameters)
            )
            assert "SCAN vector" not in plan.replace(
                "SCAN vector_tombstones USING COVERING INDEX", ""
            ), (sql, plan)
            assert "SCAN r" not in plan
            assert "r.vector" not in sql or "USE TEMP B-TREE" not in plan, (sql, plan)


def test_memory_is_bounded_and_results_stay_correct(file: SqliteFile) -> None:
    index = SqliteVectorIndex(max_cache_bytes=30_000)
    upsert(file, index, [row(n, n / 10, observer=1 + n % 10, observed=1) for n in range(1, 1_001)])
    for observer in (1, 2, 3, 1, 9, 10, 1):
        expected = [n for n in range(1, 1_001) if 1 + n % 10 == observer]
        assert keys_of(file, index, IndexFilter(observers=(observer,), observed=(1,))) == expected
        assert index.cached_bytes <= 30_000
    assert keys_of(file, index) == list(range(1, 1_001))
    assert index.cached_bytes <= 30_000
    upsert(file, index, [row(n, n / 10, observer=1, observed=1) for n in range(1_001, 1_501)])
    assert keys_of(file, index) == list(range(1, 1_501))
    assert index.cached_bytes <= 30_000


def test_deleted_vectors_leave_memory(file: SqliteFile) -> None:
    index = SqliteVectorIndex()
    upsert(file, index, [row(n, n / 10) for n in range(1, 1_001)])
    keys_of(file, index)
    full = index.cached_bytes
    delete(file, index, range(1, 901))
    assert keys_of(file, index) == list(range(901, 1_001))
    assert index.cached_bytes < full / 5


def test_pruned_tombstones_are_detected(file: SqliteFile) -> None:
    writer, reader = SqliteVectorIndex(max_tombstones=3), SqliteVectorIndex()
    upsert(file, writer, [row(n, n) for n in range(1, 31)])
    assert len(keys_of(file, reader)) == 30
    for n in range(1, 21):
        delete(file, writer, [n])
    with file.engine.connect() as connection:
        assert (
            connection.exec_driver_sql("SELECT count(*) FROM vector_tombstones").scalar_one() == 3
        )
    assert keys_of(file, reader) == list(range(21, 31))
    delete(file, writer, [21, 22])
    file.statements.clear()
    assert keys_of(file, reader) == list(range(23, 31))
    assert not [statement for statement in file.statements if "r.vector" in statement], (
        "two tombstones are a delta"
    )


def test_deletions_that_bypass_the_index_are_detected(file: SqliteFile) -> None:
    index = SqliteVectorIndex()
    upsert(file, index, [row(n, n) for n in range(1, 5)])
    assert len(keys_of(file, index)) == 4
    with file.transaction("BEGIN IMMEDIATE") as connection:
        connection.exec_driver_sql("DELETE FROM vectors WHERE row_key = 2")
    assert keys_of(file, index) == [1, 3, 4]


def test_changes_of_another_process_are_read(file: SqliteFile, tmp_path: Path) -> None:
    index = SqliteVectorIndex()
    upsert(file, index, [row(1, 1), row(2, 2)])
    assert keys_of(file, index) == [1, 2]
    script = """
import sys
from pathlib import Path
from support.stores.sqlite_file import SqliteFile, open_whole
from memservice.testing.vectors import OURS, row
from memservice_sqlite.vectors import SqliteVectorIndex
file, index = SqliteFile(Path(sys.argv[1])), SqliteVectorIndex()
file.write(lambda view: (index.upsert(view, OURS, [row(3, 3)]), index.delete(view, OURS, [1])))
"""
    result = preloaded.run_python(script, str(tmp_path / "index.db"), folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert keys_of(file, index) == [2, 3]


def test_many_threads_on_one_index(file: SqliteFile) -> None:
    index = SqliteVectorIndex(max_cache_bytes=60_000, max_tombstones=20)

    def write(start: int) -> None:
        for n in range(start, start + 40):
            upsert(file, index, [row(n, n / 100, observer=1 + n % 4, observed=1)])
            if n % 4 == 0:
                delete(file, index, [n])

    def read(seed: int) -> None:
        for turn in range(60):
            with file.read() as tx:
                index_filter = (
                    EVERYTHING
                    if turn % 3
                    else IndexFilter(observers=(1 + (seed + turn) % 4,), observed=(1,))
                )
                hits = index.query(tx, OURS, at_angle(0), 10_000, index_filter)
                everything = index.query(tx, OURS, at_angle(0), 10_000, EVERYTHING)
                assert len(everything) == index.count(tx, OURS)
                assert set(keys(hits)) <= set(keys(everything))

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(write, 1 + 1_000 * n) for n in range(2)] + [
            pool.submit(read, n) for n in range(4)
        ]:
            done.result(timeout=60)
    assert len(keys_of(file, index)) == 60


def test_equal_vectors_have_equal_scores_at_any_position(file: SqliteFile) -> None:
    wide = space(5, dimension=384)
    chance = np.random.default_rng(3)
    common = chance.standard_normal(384).astype(np.float32)
    index = SqliteVectorIndex()
    rows = [
        row(n, vector=common if n % 7 == 0 else chance.standard_normal(384).astype(np.float32))
        for n in range(1, 1_000)
    ]
    file.write(lambda tx: index.upsert(tx, wide, rows))
    with file.read() as tx:
        hits = index.query(
            tx, wide, chance.standard_normal(384).astype(np.float32) + common, 30, EVERYTHING
        )
    assert len({hit.score for hit in hits}) == 1
    assert keys(hits) == [7 * n for n in range(1, 31)]


class Histories(RuleBasedStateMachine):
    """Two processes' indexes over one file, against a plain dict."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp(dir=self.folder), "vectors.db")
        self.file = SqliteFile(self.path)
        self.committed: dict[int, tuple[int, int]] = {}

    @initialize(
        sizes=st.lists(st.sampled_from([0, 1_500, 3_000, 10**6]), min_size=2, max_size=2),
        limit=st.sampled_from([0, 2, 100]),
    )
    def open(self, sizes: list[int], limit: int) -> None:
        self.indexes = [SqliteVectorIndex(size, limit) for size in sizes]

    @rule(
        number=st.integers(0, 1),
        steps=st.lists(
            st.tuples(
                st.sampled_from(["upsert", "delete", "ask", "drop"]),
                st.lists(st.integers(1, 12), max_size=5),
                st.integers(1, 80),
            ),
            max_size=4,
        ),
        fails=st.booleans(),
    )
    def transact(self, number: int, steps: list[tuple[str, list[int], int]], fails: bool) -> None:
        index, rows = self.indexes[number], dict(self.committed)

        def run(tx: Transaction) -> None:
            for what, of, degrees in steps:
                if what == "upsert":
                    index.upsert(
                        tx,
                        OURS,
                        [
                            row(
                                key, degrees, observer=key % 3 or None, observed=degrees % 2 or None
                            )
                            for key in of
                        ],
                    )
                    rows.update({key: (degrees, key % 3) for key in of})
                elif what == "delete":
                    index.delete(tx, OURS, of)
                    for key in of:
                        rows.pop(key, None)
                elif what == "drop" and degrees > 60:
                    index.drop(tx, OURS)
                    rows.clear()
                self.compare(index, tx, rows)
            if fails:
                raise RolledBack

        if fails:
            with pytest.raises(RolledBack):
                self.file.write(run)
        else:
            self.file.write(run)
            self.committed = rows

    @rule(of=st.lists(st.integers(1, 12), max_size=5))
    def write_elsewhere(self, of: list[int]) -> None:
        self.file.write(lambda tx: self.indexes[0].upsert(tx, THEIRS, [row(key) for key in of]))

    @rule(number=st.integers(0, 1))
    def ask(self, number: int) -> None:
        with self.file.read() as tx:
            self.compare(self.indexes[number], tx, self.committed)

    @invariant()
    def within_bounds(self) -> None:
        for index in getattr(self, "indexes", ()):
            assert index.cached_bytes >= 0

    def compare(
        self, index: SqliteVectorIndex, tx: Transaction, rows: dict[int, tuple[int, int]]
    ) -> None:
        expected = sorted(rows, key=lambda key: (rows[key][0], key))
        assert keys(index.query(tx, OURS, at_angle(0), 50, EVERYTHING)) == expected
        some = IndexFilter(observers=(1,))
        assert keys(index.query(tx, OURS, at_angle(0), 50, some)) == [
            key for key in expected if rows[key][1] == 1
        ]

    def teardown(self) -> None:
        self.file.close()


def test_any_history_behaves_like_a_dict(tmp_path: Path) -> None:
    class InFolder(Histories):
        folder = tmp_path

    run_state_machine_as_test(
        InFolder,
        settings=settings(max_examples=examples(40), stateful_step_count=12, deadline=None),
    )


def test_memory_of_dropped_spaces_is_freed(file: SqliteFile) -> None:
    index, other = SqliteVectorIndex(), SqliteVectorIndex()
    upsert(file, index, [row(1, 10), row(2, 20)])
    assert keys_of(file, index) == keys_of(file, other) == [1, 2]
    assert min(index.cached_bytes, other.cached_bytes) > 0
    file.write(lambda tx: index.drop(tx, OURS))
    assert index.cached_bytes == 0, "that process did it itself"
    with file.read() as tx:
        other.sweep(tx)
    assert other.cached_bytes == 0
    upsert(file, index, [row(3, 30)])
    assert keys_of(file, index) == keys_of(file, other) == [3]


def test_memory_of_existing_spaces_is_kept(file: SqliteFile) -> None:
    index = SqliteVectorIndex()
    upsert(file, index, [row(1, 10), row(2, 20)])
    assert keys_of(file, index) == [1, 2]
    delete(file, index, [1])
    with file.read() as tx:
        index.sweep(tx)
        file.statements.clear()
        index.sweep(tx)
    assert index.cached_bytes > 0
    assert len(file.statements) <= 2, "where nothing was deleted nothing is looked for"
    assert keys_of(file, index) == [2]


def test_a_rolled_back_drop_only_reads_the_space_again(file: SqliteFile) -> None:
    index = SqliteVectorIndex()
    upsert(file, index, [row(1, 10)])
    assert keys_of(file, index) == [1]

    def fail(tx: Transaction) -> None:
        index.drop(tx, OURS)
        raise RolledBack

    with pytest.raises(RolledBack):
        file.write(fail)
    assert keys_of(file, index) == [1]


def test_a_health_check_frees_memory_of_dropped_spaces(tmp_path: Path) -> None:
    """Vectors were dropped by another process; this one is asked for its readiness and for nothing
    else."""
    one, other = open_whole(tmp_path / "memory.db"), open_whole(tmp_path / "memory.db")
    mine, theirs = one.vectors, other.vectors
    assert isinstance(mine, SqliteVectorIndex)
    assert theirs is not None
    one.write(lambda tx: mine.upsert(tx, OURS, [row(1, 10)]))
    with one.read() as tx:
        mine.query(tx, OURS, at_angle(0), 9, EVERYTHING)
    assert mine.cached_bytes > 0
    other.write(lambda tx: theirs.drop(tx, OURS))
    assert one.examine() == []
    assert mine.cached_bytes == 0
    one.close()
    other.close()
