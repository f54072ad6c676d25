"""What SQLite leaves of erased rows in the unallocated space of pages is overwritten, and nothing
else is."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memservice_sqlite import page_remains
from memservice_sqlite.page_remains import Cleaning, Layout, UnknownFormat, dirty_pages

ROWS = 600
MAX_STEPS = 1_000
PAGE_SIZE = 4_096
SEEDS = (range(3, 5), pytest.param(range(20), marks=pytest.mark.heavy))
"""SQLite leaves copies of erased rows after few of them: 3, 4 and 8."""


def opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA secure_delete=ON")
    connection.execute("PRAGMA synchronous=OFF")
    return connection


def marker(key: int) -> bytes:
    return b"zq%06dzq" % key


def truncate_log(connection: sqlite3.Connection) -> None:
    assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


def clean(path: Path, connection: sqlite3.Connection) -> None:
    cleaning = Cleaning(path)
    for _ in range(MAX_STEPS):
        truncate_log(connection)
        if not cleaning.step(lambda: opened(path)):
            truncate_log(connection)
            return
    raise AssertionError("the cleaning does not end")


def rows(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute("SELECT * FROM said ORDER BY key").fetchall()


def left(path: Path, erased: set[int]) -> list[int]:
    """The erased rows whose marker is in the file."""
    content = path.read_bytes()
    return [key for key in sorted(erased) if marker(key) in content]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(opened(path)) as connection:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE said (key INTEGER PRIMARY KEY, number, text)")
        connection.execute("CREATE INDEX of_text ON said (text)")
        yield connection


def erase_some(connection: sqlite3.Connection, seed: int) -> set[int]:
    """Store rows, change some, and erase some. Returns the keys of the erased ones."""
    numbers = random.Random(seed)
    present, erased = list(range(ROWS)), set()
    for key in present:
        text = marker(key).decode() + "x" * numbers.randrange(10, 200)
        connection.execute("INSERT INTO said VALUES (?, ?, ?)", (key, key % 7, text))
    long = "x" * 20_000
    connection.execute("INSERT INTO said VALUES (?, 0, ?)", (ROWS, long))
    for _ in range(ROWS):
        key = numbers.choice(present)
        if numbers.random() < 0.5:
            connection.execute("DELETE FROM said WHERE key = ?", (key,))
            present.remove(key)
            erased.add(key)
        else:
            longer = "y" * numbers.randrange(100)
            connection.execute("UPDATE said SET text = text || ? WHERE key = ?", (longer, key))
    truncate_log(connection)
    return erased


@pytest.mark.parametrize("seeds", SEEDS, ids=len)
def test_copies_of_erased_rows_are_overwritten(
    path: Path, connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    monkeypatch.setattr(page_remains, "SCANNED_PAGES", 7)
    monkeypatch.setattr(page_remains, "CLEANED_PAGES", 3)
    has_remains = False
    for seed in seeds:
        connection.execute("DELETE FROM said")
        erased = erase_some(connection, seed)
        has_remains = has_remains or bool(left(path, erased))
        before = rows(connection)
        clean(path, connection)
        assert left(path, erased) == []
        assert list(dirty_pages(path)) == []
        assert rows(connection) == before
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert has_remains, "SQLite leaves none: this module is not needed"


@pytest.mark.parametrize("seeds", SEEDS, ids=len)
def test_other_connections_do_not_write_the_remains_again(
    path: Path, connection: sqlite3.Connection, seeds: range
) -> None:
    """They have pages in memory as they were before."""
    checked = 0
    for seed in seeds:
        connection.execute("DELETE FROM said")
        erased = erase_some(connection, seed)
        if not left(path, erased):
            continue
        checked += 1
        with closing(opened(path)) as other:
            assert rows(other)
            assert not Cleaning(path).step(lambda: opened(path))
            for each in (other, connection):
                each.execute("UPDATE said SET number = number + 1")
                truncate_log(each)
                assert left(path, erased) == []
    assert checked


def test_nothing_is_written_while_the_log_has_pages(
    path: Path, connection: sqlite3.Connection
) -> None:
    erase_some(connection, 1)
    connection.execute("UPDATE said SET number = 8 WHERE number = 7")
    connection.execute("UPDATE said SET number = 7 WHERE key % 2")
    before = path.read_bytes()
    assert Cleaning(path).step(lambda: opened(path))
    assert path.read_bytes() == before


def test_a_crash_while_a_page_is_cleaned_damages_nothing(
    path: Path, connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase_some(connection, 1)
    before, write = rows(connection), os.pwrite

    def partly(file: int, data: bytes, offset: int) -> int:
        write(file, data[: len(data) // 2], offset)
        raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", partly)
        with pytest.raises(OSError, match="killed"):
            Cleaning(path).step(lambda: opened(path))
    assert rows(connection) == before
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    clean(path, connection)
    assert list(dirty_pages(path)) == []


def test_pages_that_are_not_of_a_tree_are_left_alone(
    path: Path, connection: sqlite3.Connection
) -> None:
    """The pointer map begins with the type of a page, which can look like a page of a tree."""
    erase_some(connection, 1)
    file = page_remains._file(path)
    layout = Layout.read(file)
    assert layout.map_page(3) == 2
    assert not layout.is_of_tree(file, 2)
    overflowing = [n for n in range(3, layout.pages + 1) if not layout.is_of_tree(file, n)]
    assert len(overflowing) >= 4, "the long text"
    per_map = PAGE_SIZE // 5 + 1
    far = Layout(PAGE_SIZE, 10**7)
    assert far.map_page(2 + per_map) == 2 + per_map
    assert far.map_page(far.lock_page + 1) != far.lock_page


def test_a_file_without_a_pointer_map_is_left_alone(path: Path) -> None:
    with closing(opened(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE said (key INTEGER PRIMARY KEY, number, text)")
        erase_some(connection, 1)
        with pytest.raises(UnknownFormat):
            Layout.read(page_remains._file(path))
        assert not Cleaning(path).step(lambda: opened(path))
