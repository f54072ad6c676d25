"""What is erased is gone from the file: from rows, from the text index, from the log; and its room
is given back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memservice.domain.filters.ast import equals
from memservice.domain.records import Message
from memservice.spi.index_filter import EVERYTHING
from memservice.spi.storage import Transaction
from memservice.spi.text import TextRow
from memservice.testing.storage.base import NOW, Dataset, populate
from memservice_sqlite import reclaiming, text_levels, text_merges
from memservice_sqlite.storage import SqliteStorage
from memservice_sqlite.text import REMOVED
from support.stores.sqlite_store import migrated

MARKER = "zorbmarker"
EACH = 400
FREE = 1_000_000
"""The first id of texts that have no rows."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def storage(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStorage]:
    monkeypatch.setattr(reclaiming, "MIN_FREE_PAGES", 10)
    monkeypatch.setattr(reclaiming, "FREED_PAGES", 20)
    storage = migrated(path)
    yield storage
    storage.close()


def written(path: Path, word: str) -> int:
    """How often a word is in the file or what SQLite laid beside it."""
    return sum(file.read_bytes().count(word.encode()) for file in path.parent.glob(f"{path.name}*"))


def pages_of(path: Path) -> reclaiming.Pages:
    return reclaiming.Pages(path, lambda: sqlite3.connect(path, isolation_level=None))


def say(storage: SqliteStorage, dataset: Dataset, word: str, first: int = 1) -> None:
    """In transactions of their own, so that the index is of many pieces."""
    for start in range(first, first + EACH, 20):

        def store(tx: Transaction, start: int = start) -> None:
            messages = tx.messages.append(
                [
                    dataset.message(seq, content=f"{word}{seq} " * 20)
                    for seq in range(start, start + 20)
                ]
            )
            rows = [
                TextRow(
                    m.key,
                    [f"{word}{m.seq}", *(f"{word}x{n}" for n in range(10))],
                    session=1,
                    at=NOW,
                )
                for m in messages
            ]
            storage.text.add(tx, "message", dataset.workspace.key, rows)

        storage.write(store)


def erase(storage: SqliteStorage, dataset: Dataset) -> None:
    def remove(tx: Transaction) -> None:
        tx.rows.delete(Message, equals(workspace_key=dataset.workspace.key))
        while storage.text.drop(tx, dataset.workspace.key, 100):
            pass

    storage.write(remove)


def reclaim(storage: SqliteStorage) -> int:
    steps = 1
    while storage.reclaim():
        steps += 1
        assert steps < 1_000
    return steps


def test_the_log_is_emptied_after_an_erasure_without_texts(
    storage: SqliteStorage, path: Path
) -> None:
    for value in (MARKER, "other"):
        storage.write(lambda tx, value=value: tx.facts.set("name", value))  # type: ignore[misc]
    assert written(path, MARKER) > 0, "else there is nothing to look for"
    assert not storage.reclaim()
    assert written(path, MARKER) > 0
    assert not storage.reclaim(erasure=True)
    assert written(path, MARKER) == 0


@pytest.mark.parametrize(
    ("thorough", "others"),
    [
        pytest.param(False, True, id="beside others"),
        pytest.param(True, False, id="thorough"),
        pytest.param(False, False, marks=pytest.mark.heavy, id="nothing else"),
        pytest.param(True, True, marks=pytest.mark.heavy, id="thorough, beside others"),
    ],
)
def test_erased_words_are_nowhere_in_the_file(
    storage: SqliteStorage, path: Path, others: bool, thorough: bool
) -> None:
    dataset = storage.write(lambda tx: populate(tx, "w"))
    other = storage.write(lambda tx: populate(tx, "other"))
    if others:
        say(storage, other, "kept")
    say(storage, dataset, MARKER)
    if others:
        say(storage, other, "kept", EACH + 1)
    with storage.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    size = path.stat().st_size
    assert written(path, MARKER) > EACH
    erase(storage, dataset)
    assert written(path, MARKER) > 0, "else there is nothing to look for"
    if thorough:
        while storage.reclaim(thorough=True):
            pass
    else:
        assert reclaim(storage) > 1, "in steps"
    assert written(path, MARKER) == 0
    assert path.stat().st_size < size
    assert not storage.reclaim()
    with storage.read() as tx:
        matches = storage.text.search(
            tx, "message", other.workspace.key, ["kept7"], 5, index_filter=EVERYTHING
        )
        assert len(matches.hits) == int(others)
    assert storage.examine(thorough=True) == []


def test_nothing_is_merged_where_nothing_was_removed(storage: SqliteStorage) -> None:
    dataset = storage.write(lambda tx: populate(tx, "w"))
    say(storage, dataset, MARKER)
    with storage.engine.connect() as connection:
        before = connection.exec_driver_sql("PRAGMA data_version").scalar()
        assert reclaim(storage) == 1
        assert connection.exec_driver_sql("PRAGMA data_version").scalar() == before


def test_rows_removed_during_a_round_are_merged_in_the_next(
    storage: SqliteStorage, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, other = (
        storage.write(lambda tx, tag=tag: populate(tx, tag))  # type: ignore[misc]
        for tag in ("w", "other")
    )
    say(storage, dataset, MARKER)
    say(storage, other, "otherword")
    say(storage, storage.write(lambda tx: populate(tx, "third")), "kept")
    erase(storage, dataset)
    with monkeypatch.context() as away:
        away.setattr(reclaiming, "_cut_log", lambda driver: False)
        assert [storage.reclaim() for _ in range(50)][-1], "the round is not over"
    erase(storage, other)
    reclaim(storage)
    assert (written(path, MARKER), written(path, "otherword"), written(path, "kept") > 0) == (
        0,
        0,
        True,
    )


def test_a_reader_only_delays_the_end_of_reclaiming(
    storage: SqliteStorage, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reclaiming, "LOG_SECONDS", 0.01)
    dataset = storage.write(lambda tx: populate(tx, "w"))
    say(storage, dataset, MARKER)
    with storage.read() as tx:
        assert tx.messages.count(dataset.session.key) == EACH
        erase(storage, dataset)
        assert [storage.reclaim() for _ in range(50)][-1], "it is not over"
        assert tx.messages.count(dataset.session.key) == EACH
        storage.write(lambda tx: tx.facts.set("others", "write meanwhile"))
    reclaim(storage)
    assert written(path, MARKER) == 0


def test_statistics_of_an_erased_workspace_are_removed(storage: SqliteStorage) -> None:
    dataset = storage.write(lambda tx: populate(tx, "w"))
    say(storage, dataset, MARKER)

    def rows() -> int:
        with storage.engine.connect() as connection:
            count = connection.exec_driver_sql(
                "SELECT count(*) FROM text_statistics WHERE workspace_key > 0"
            ).scalar()
            return int(count or 0)

    assert rows() == 1
    erase(storage, dataset)
    assert rows() == 0


def levels(driver: sqlite3.Connection) -> int:
    (record,) = driver.execute("SELECT block FROM text_index_data WHERE id = 10").fetchone()
    return len(text_levels._read(record)[1])


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [60, pytest.param(1_100, marks=pytest.mark.heavy)])
def test_the_text_index_survives_any_number_of_rounds(
    storage: SqliteStorage, path: Path, rounds: int
) -> None:
    """FTS5 adds two levels in each round, and cannot read an index of more than 2,000."""
    dataset = storage.write(lambda tx: populate(tx, "w"))
    say(storage, dataset, "kept")  # else everything is on one level, and none is added
    with closing(sqlite3.connect(path, isolation_level=None)) as driver:
        driver.execute("PRAGMA synchronous=OFF")
        query = "SELECT count(*) FROM text_index WHERE text_index MATCH 'stays'"
        for n in range(rounds):
            insert = "INSERT INTO text_index (rowid, terms) VALUES (?, ?)"
            driver.execute(insert, (FREE + 2 * n, "stays"))
            driver.execute(insert, (FREE + 2 * n + 1, "goes"))
            driver.execute(
                "INSERT INTO text_index (text_index, rowid, terms) VALUES ('delete', ?, 'goes')",
                (FREE + 2 * n + 1,),
            )
            driver.execute(
                "INSERT INTO text_statistics VALUES (?, ?, 1, 0, 0, 0) "
                "ON CONFLICT DO UPDATE SET documents = documents + 1",
                REMOVED,
            )
            while reclaiming.step(driver, pages_of(path), thorough=False):
                pass
            assert driver.execute(query).fetchone() == (n + 1,)
        assert levels(driver) <= text_levels.MAX_LEVELS
        assert driver.execute(query).fetchone() == (rounds,)
    assert storage.examine(thorough=True) == []


def test_an_index_with_too_many_levels_is_mended(storage: SqliteStorage, path: Path) -> None:
    """As earlier versions left it: FTS5 cannot read it, so no text can be written."""
    dataset = storage.write(lambda tx: populate(tx, "w"))
    say(storage, dataset, "kept")
    with closing(sqlite3.connect(path, isolation_level=None)) as driver:
        (record,) = driver.execute("SELECT block FROM text_index_data WHERE id = 10").fetchone()
        counts, before = text_levels._read(record)
        damaged = record[:4] + b"\x8f\x51" + counts + b"".join(level.raw for level in before)
        damaged += bytes(2) * (2_001 - len(before))
        driver.execute("UPDATE text_index_data SET block = ? WHERE id = 10", (damaged,))
        driver.execute("UPDATE text_statistics SET documents = 1 WHERE workspace_key = 0")
        driver.execute("INSERT OR IGNORE INTO text_statistics VALUES (?, ?, 1, 0, 0, 0)", REMOVED)
    with closing(sqlite3.connect(path, isolation_level=None)) as driver:
        with pytest.raises(sqlite3.DatabaseError):
            driver.execute("INSERT INTO text_index (text_index) VALUES ('integrity-check')")
        while reclaiming.step(driver, pages_of(path), thorough=False):
            pass
    assert storage.examine(thorough=True) == []
    with storage.read() as tx:
        matches = storage.text.search(
            tx, "message", dataset.workspace.key, ["kept7"], 5, index_filter=EVERYTHING
        )
    assert len(matches.hits) == 1


def test_new_texts_do_not_end_an_unfinished_merge(
    storage: SqliteStorage, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FTS5 prefers the level with more blocks, and by default does not merge fewer than four."""
    monkeypatch.setattr(reclaiming, "MERGED_PAGES", 2)
    monkeypatch.setattr(text_merges, "MERGED_PAGES", 0)  # else the writes of others finish it
    dataset, other = (
        storage.write(lambda tx, tag=tag: populate(tx, tag))  # type: ignore[misc]
        for tag in ("w", "other")
    )
    for first in range(1, 6 * EACH, EACH):
        say(storage, other, "kept", first)
    say(storage, dataset, MARKER)
    optimize(storage)
    erase(storage, dataset)
    assert storage.reclaim()
    for seq in (1, 2, 3):
        write_one(storage, dataset, seq)
    assert reclaim(storage) > 3, "in steps"
    assert written(path, MARKER) == 0


def optimize(storage: SqliteStorage) -> None:
    """Merge the text index into one block."""
    with storage.engine.connect() as connection:
        connection.exec_driver_sql("INSERT INTO text_index (text_index) VALUES ('optimize')")
        connection.commit()


def write_one(storage: SqliteStorage, dataset: Dataset, seq: int) -> None:
    def store(tx: Transaction) -> None:
        (message,) = tx.messages.append([dataset.message(seq, content="later")])
        row = TextRow(message.key, ["later"], session=1, at=NOW)
        storage.text.add(tx, "message", dataset.workspace.key, [row])

    storage.write(store)
