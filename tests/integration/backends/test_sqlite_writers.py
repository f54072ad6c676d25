"""The order of writers in several processes."""

from __future__ import annotations

import os
import statistics
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memservice.spi.storage import Transaction
from memservice.spi.waiting import on_wait
from memservice_sqlite.storage import SqliteStorage
from memservice_sqlite.writer_lock import SUFFIX
from support.processes import preloaded
from support.processes.processes import eventually
from support.stores.sqlite_store import migrated, opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def storage(path: Path) -> Iterator[SqliteStorage]:
    storage = migrated(path)
    yield storage
    storage.close()


BUSY = """
import sys, time
from pathlib import Path
from support.stores.sqlite_store import opened
storage = opened(Path(sys.argv[1]), pool_timeout=30)

def count(tx):
    time.sleep(0.02)
    tx.facts.set("transactions", str(int(tx.facts.get("transactions") or 0) + 1))
    return tx.facts.get("end")

while storage.write(count) is None:
    pass
storage.close()
"""


def test_a_thread_says_that_it_waits_for_another_writer_and_only_then(
    storage: SqliteStorage,
) -> None:
    reported = threading.Event()

    def write() -> None:
        on_wait(reported.set)
        storage.write(lambda tx: tx.facts.set("name", ""))

    alone = threading.Thread(target=write)
    alone.start()
    alone.join(30)
    assert not reported.is_set()
    second = threading.Thread(target=write)

    def while_another_waits(tx: Transaction) -> None:
        second.start()
        assert reported.wait(30)

    storage.write(while_another_waits)
    second.join(30)


def test_writers_of_a_process_commit_in_the_order_of_arrival(storage: SqliteStorage) -> None:
    locks = storage._sqlite_dialect._writer_lock._threads
    order: list[int] = []
    threads = []

    def write(number: int) -> None:
        storage.write(lambda tx: order.append(number))

    def while_others_arrive(tx: Transaction) -> None:
        for number in range(8):
            threads.append(threading.Thread(target=write, args=[number]))
            threads[-1].start()
            eventually(
                lambda: sum(len(queue.waiting) for queue in locks._queues.values()) == len(threads)
            )

    storage.write(while_others_arrive)
    for thread in threads:
        thread.join(30)
    assert order == list(range(8))
    assert locks._queues == {}


def transactions(tx: Transaction) -> int:
    return int(tx.facts.get("transactions") or 0)


def test_a_process_that_writes_without_a_pause_does_not_keep_others_waiting(
    storage: SqliteStorage, path: Path
) -> None:
    busy = preloaded.start_python(BUSY, str(path), folder=path.parent)

    def waits() -> int:
        """Transactions of the other process while this one waits for its turn."""
        with storage.read() as tx:
            before = transactions(tx)
        return storage.write(transactions) - before

    def has_begun() -> bool:
        with storage.read() as tx:
            return transactions(tx) > 0

    eventually(has_begun)
    counts = [waits() for _ in range(21)]
    storage.write(lambda tx: tx.facts.set("end", ""))
    _, errors = busy.communicate(timeout=60)
    assert busy.returncode == 0, errors
    assert statistics.median(counts) <= 2, counts


def test_a_killed_writer_leaves_its_turn_to_others(storage: SqliteStorage, path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from support.stores.sqlite_store import opened
opened(Path(sys.argv[1])).write(lambda tx: os.kill(os.getpid(), signal.SIGKILL))
"""
    assert preloaded.run_python(code, str(path), folder=path.parent).returncode == -9
    storage.write(lambda tx: tx.facts.set("after", ""))
    with storage.read() as tx:
        assert tx.facts.get("after") == ""


def test_without_the_file_of_turns_writes_succeed(path: Path) -> None:
    """The file cannot be opened, because a directory has its name."""
    path.with_name(path.name + SUFFIX).mkdir()
    storage = migrated(path)
    storage.write(lambda tx: tx.facts.set("a", ""))
    storage.close()


def test_who_may_write_to_the_database_may_wait_for_a_turn(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    path.touch()
    path.chmod(0o660)
    before = os.umask(0o077)
    try:
        storage = migrated(path)
        storage.write(lambda tx: tx.facts.set("a", ""))
        assert path.with_name(path.name + SUFFIX).stat().st_mode & 0o777 == 0o660
        storage.close()
    finally:
        os.umask(before)


def test_a_store_that_is_closed_leaves_one_file(storage: SqliteStorage, path: Path) -> None:
    storage.write(lambda tx: tx.facts.set("a", ""))
    storage.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_process_that_writes_keeps_the_file_when_another_ends(
    storage: SqliteStorage, path: Path
) -> None:
    file = path.with_name(path.name + SUFFIX)
    code = """
import sys, time
from pathlib import Path
from support.stores.sqlite_store import opened
storage = opened(Path(sys.argv[1]))
storage.write(lambda tx: tx.facts.set("a", ""))
for _ in range(6000):
    if Path(sys.argv[2]).exists():
        break
    time.sleep(0.01)
storage.close()
"""
    end = path.parent / "end"
    other = preloaded.start_python(code, str(path), str(end), folder=path.parent)
    eventually(lambda: storage.write(lambda tx: tx.facts.get("a")) is not None)
    inode = file.stat().st_ino
    with storage._dialect.writer_turn():
        end.touch()
        _, errors = other.communicate(timeout=60)
        assert other.returncode == 0, errors
        assert file.stat().st_ino == inode
    storage.close()
    assert not file.exists()


def test_a_file_that_was_removed_is_replaced_by_one_for_all(
    storage: SqliteStorage, path: Path
) -> None:
    file = path.with_name(path.name + SUFFIX)
    storage.write(lambda tx: tx.facts.set("a", ""))
    file.unlink()
    storage.write(lambda tx: tx.facts.set("b", ""))
    inode = file.stat().st_ino
    other = opened(path)
    other.write(lambda tx: tx.facts.set("c", ""))
    assert file.stat().st_ino == inode
    other.close()
