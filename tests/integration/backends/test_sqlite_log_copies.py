"""Copies of the log into the database file, which are made between two turns to write."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from memservice.spi.storage import Transaction
from memservice_sqlite import connections
from memservice_sqlite.log_copies import PAGES, LogCopies
from memservice_sqlite.storage import SqliteStorage
from support.stores.sqlite_store import migrated, opened

TEXT = "x" * 200_000
"""About 50 pages."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def storage(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStorage]:
    """SQLite itself does not copy the log."""
    monkeypatch.setattr(connections, "WAL_PAGES", 10**6)
    migrated(path).close()
    storage = opened(path)
    yield storage
    storage.close()


def write(storage: SqliteStorage, number: int) -> None:
    for n in range(number):

        def change(tx: Transaction, n: int = n) -> None:
            tx.facts.set(f"text {n % 4}", f"{n} {TEXT}")

        storage.write(change)


def pages_of_log(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        return int(connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1])


def test_the_log_stays_small_although_nothing_else_copies_it(
    storage: SqliteStorage, path: Path
) -> None:
    write(storage, 200)
    assert pages_of_log(path) < 2 * PAGES
    assert path.with_name("memory.db-wal").stat().st_size < 4 * PAGES * 4_096


def test_few_copies_are_made_of_small_writes(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = []
    copy = LogCopies.copy

    def count(self: LogCopies) -> None:
        copies.append(1)
        copy(self)

    monkeypatch.setattr(LogCopies, "copy", count)
    for n in range(300):
        storage.write(lambda tx, n=n: tx.facts.set("number", str(n)))  # type: ignore[misc]
    assert 1 <= len(copies) <= 12


def test_others_can_write_while_the_log_is_copied(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = storage._sqlite_dialect._writer_lock
    monkeypatch.setattr(lock, "_seconds", 0.5)
    copies = []
    copy = LogCopies.copy

    def copy_while_another_writes(self: LogCopies) -> None:
        copies.append(1)
        with lock:  # raises if the thread that copies still has the turn
            copy(self)

    monkeypatch.setattr(LogCopies, "copy", copy_while_another_writes)
    write(storage, 20)
    assert copies


def test_a_fork_does_not_use_the_connection_of_its_parent(storage: SqliteStorage) -> None:
    write(storage, 1)
    dialect = storage._sqlite_dialect
    of_parent = dialect._log_copies
    dialect._writer_lock.pid = -1
    storage.reclaim()
    assert dialect._log_copies is not of_parent
    of_parent.close()


def test_a_write_succeeds_although_the_log_cannot_be_copied(
    storage: SqliteStorage,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(self: connections.ConnectionConfig) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    write(storage, 1)  # opens the connection of the storage
    storage._sqlite_dialect._log_copies.close()
    monkeypatch.setattr(connections.ConnectionConfig, "connect", fail)
    with caplog.at_level(logging.WARNING):
        write(storage, 9)
    assert "cannot be copied now: disk I/O error" in caplog.text
    with storage.read() as tx:
        assert str(tx.facts.get("text 0")).startswith("8 ")
