"""What a SQLite store says of itself: damage, a disk that is full, a file that is gone or another
one."""

from __future__ import annotations

import logging
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memservice.domain.errors import Damaged, NoStore, Unavailable
from memservice.domain.records import Fact
from memservice.spi.base import RESTORE
from memservice.spi.storage import Transaction
from memservice.spi.text import TextRow
from memservice.testing.storage.base import NOW, populate
from memservice_sqlite.storage import SqliteStorage
from support.processes import preloaded
from support.stores.sqlite_store import migrated, opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def storage(path: Path) -> Iterator[SqliteStorage]:
    storage = migrated(path, pool_timeout=0.3)
    yield storage
    storage.close()


def note(name: str) -> Callable[[Transaction], None]:
    return lambda tx: tx.facts.set(name, "")


def names(storage: SqliteStorage) -> list[str]:
    with storage.read() as tx:
        return [fact.name for fact in tx.rows.page(Fact)]


def fill(storage: SqliteStorage) -> None:
    dataset = storage.write(lambda tx: populate(tx, "w"))

    def store(tx: Transaction) -> None:
        tx.messages.append(
            [dataset.message(seq, content=f"message {seq} " * 20) for seq in range(1, 301)]
        )
        tx.conclusions.put([dataset.conclusion(number) for number in range(300)])
        tx.tasks.add([dataset.task(number, "unit") for number in range(300)])
        rows = [
            TextRow(key, [f"term{key * 7 + n}" for n in range(20)], at=NOW) for key in range(1, 301)
        ]
        storage.text.add(tx, "message", dataset.workspace.key, rows)

    storage.write(store)


def damage(path: Path, table: str) -> None:
    """Overwrite one page of a table or an index, not its first, with what is no page."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = database.execute("PRAGMA page_size").fetchone()[0]
        try:
            database.execute("SELECT 1 FROM dbstat")
        except sqlite3.OperationalError:
            pytest.skip("this SQLite cannot tell which page is whose: it was built without dbstat")
        pages = [
            page
            for (page,) in database.execute(
                "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (table,)
            )
        ]
    with path.open("r+b") as file:
        file.seek((pages[len(pages) // 2] - 1) * size)
        file.write(random.Random(7).randbytes(size))


@pytest.mark.parametrize(
    "table",
    [
        "messages",
        "conclusions",
        "tasks",
        "ix_messages_workspace_key_key",
        "text_index_data",
        "text_terms",
    ],
)
def test_doctor_finds_a_damaged_page(path: Path, table: str) -> None:
    storage = migrated(path)
    fill(storage)
    assert storage.examine(thorough=True) == []
    storage.close()
    damage(path, table)
    storage = opened(path)
    storage.check()
    try:
        findings = [(finding.state, finding.advice) for finding in storage.examine(thorough=True)]
    except Damaged:
        findings = [("failed", RESTORE)]  # the doctor says the same then
    storage.close()
    assert findings == [("failed", RESTORE)]


def test_damage_is_reported_from_then_on_and_logged_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage = migrated(path)
    fill(storage)
    storage.close()
    damage(path, "messages")
    storage = opened(path)
    assert storage.examine() == [], "nobody has met it, and readiness reads no more than it must"

    def read() -> None:
        with storage.read() as tx:
            tx.messages.run(1, 1, 1_000)

    with caplog.at_level(logging.WARNING, "memservice"):
        for _ in range(3):
            with pytest.raises(Damaged, match="is damaged"):
                read()
    # A thread of another test, for instance one that waits for its PostgreSQL, may log as well.
    logged = [record for record in caplog.records if str(path) in record.getMessage()]
    assert [(record.levelname, RESTORE in record.getMessage()) for record in logged] == [
        ("ERROR", True)
    ], logged
    storage.write(note("a part that is whole"))
    (finding,) = storage.examine()
    assert (finding.state, finding.advice) == ("failed", RESTORE)
    storage.close()


def test_a_damaged_file_header_is_reported_as_damage(path: Path) -> None:
    migrated(path).close()
    with path.open("r+b") as file:
        file.write(random.Random(7).randbytes(4_096))
    storage = opened(path)
    with pytest.raises(Damaged, match="beginning is damaged"):
        storage.check()
    storage.close()


FULL = """
import resource, signal, sys
from pathlib import Path
from support.stores.sqlite_store import opened
from memservice.domain.errors import Unavailable
from memservice.spi import base
storage = opened(Path(sys.argv[1]))
storage.check()
assert storage.examine() == []
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
if sys.argv[2] == "written":
    try:
        storage.write(lambda view: view.facts.set("big", "x" * 100_000))
    except Unavailable:
        pass
    else:
        sys.exit("it could be written")
else:
    base.PROBE_INTERVAL_SECONDS = 0
(finding,) = storage.examine()
print(finding.state, finding.found)
storage.check()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert storage.examine() == [], "it is noticed that there is room again, though nobody wrote"
storage.close()
"""


@pytest.mark.parametrize("before", ["written", "quiet"])
def test_a_full_disk_is_reported_with_and_without_recent_writes(path: Path, before: str) -> None:
    migrated(path).close()
    result = preloaded.run_python(FULL, str(path), before, folder=path.parent)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("failed writes fail: the database"), result.stdout


@pytest.mark.parametrize("replaced", [False, True])
def test_writes_to_a_deleted_or_replaced_file_fail(
    storage: SqliteStorage, path: Path, replaced: bool
) -> None:
    storage.write(note("before"))
    if replaced:
        other = path.with_name("other.db")
        migrated(other).close()
        other.replace(path)
    else:
        for file in path.parent.glob("memory.db*"):
            file.unlink()
    words = "was replaced by another file" if replaced else "was deleted or moved"
    with pytest.raises(Unavailable, match=words):
        storage.write(note("after"))
    with pytest.raises(Unavailable, match=words):
        storage.check()
    (finding,) = storage.examine()
    assert (finding.state, words in finding.found) == ("failed", True)
    with pytest.raises(Unavailable, match=words):
        storage.migrate()
    assert path.exists() == replaced, "it is not made anew under a process that had another one"


def test_a_write_during_the_deletion_of_the_file_fails(storage: SqliteStorage, path: Path) -> None:
    def work(tx: Transaction) -> None:
        tx.facts.set("lost", "")
        path.unlink()

    with pytest.raises(Unavailable, match="was deleted or moved"):
        storage.write(work)


def test_a_file_that_is_moved_and_restored_works(storage: SqliteStorage, path: Path) -> None:
    storage.write(note("before"))
    path.rename(path.with_name("elsewhere"))
    with pytest.raises(Unavailable, match="was deleted or moved"):
        storage.write(note("meanwhile"))
    path.with_name("elsewhere").rename(path)
    storage.write(note("after"))
    assert names(storage) == ["before", "after"]
    assert storage.examine() == []


def test_only_migrating_creates_a_file(path: Path) -> None:
    storage = opened(path)
    for attempt in (
        storage.check,
        storage.schema_version,
        storage.examine,
        lambda: storage.write(note("a")),
        lambda: names(storage),
    ):
        with pytest.raises(NoStore, match=rf"no file {path}: check DB_CONNECTION_URI"):
            attempt()
    assert list(path.parent.iterdir()) == []
    storage.migrate()
    storage.write(note("a"))
    assert names(storage) == ["a"]
    storage.close()
