"""What goes wrong with a file: it is an error to the caller, in time, and nothing is half
stored."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memservice.domain import records as r
from memservice.domain.errors import ConfigurationError, Conflict, Damaged, NoStore, Unavailable
from memservice.domain.filters.ast import equals
from memservice.spi.storage import Transaction
from memservice.testing.storage.base import Dataset, populate, together
from memservice_sqlite import functions
from memservice_sqlite.narrowing import connection_of
from memservice_sqlite.storage import SqliteStorage, file_of
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
        return [fact.name for fact in tx.rows.page(r.Fact)]


def test_a_lock_held_by_another_process_ends_in_unavailable_in_time(
    storage: SqliteStorage, path: Path
) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(Unavailable, match="locked") as caught:
        storage.write(note("a"))
    assert 0.2 < time.monotonic() - began < 4, "the default is 5"
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    assert names(storage) == []
    other.execute("ROLLBACK")
    other.close()
    storage.write(note("b"))
    assert names(storage) == ["b"]


def test_a_lock_held_by_another_thread_ends_in_unavailable_in_time(storage: SqliteStorage) -> None:
    holding, done = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> float:
        tx.facts.set("held", "")
        holding.set()
        done.wait(30)
        return 0.0

    def attempt() -> float:
        holding.wait(30)
        began = time.monotonic()
        try:
            with pytest.raises(Unavailable, match="locked"):
                storage.write(note("a"))
        finally:
            done.set()
        return time.monotonic() - began

    _, waited = together(lambda: storage.write(hold), attempt)
    assert 0.2 < waited < 2
    assert names(storage) == ["held"]


def test_when_all_connections_are_in_use_a_read_ends_in_unavailable(path: Path) -> None:
    storage = migrated(path, pool_timeout=0.2, pool_size=1, max_overflow=1)
    with storage.read(), storage.read():
        with pytest.raises(Unavailable, match="in use"):
            with storage.read():
                pass
    assert names(storage) == []
    storage.close()


def test_without_a_pool_each_transaction_opens_a_connection(path: Path) -> None:
    storage = migrated(path, pool_class="null")
    storage.write(note("a"))
    with storage.read(), storage.read(), storage.read():
        assert names(storage) == ["a"]
    storage.close()


def test_a_full_disk_is_an_error_and_stores_nothing(storage: SqliteStorage) -> None:
    """Simulated by a limit on the pages of the file; SQLite reports it as it reports a full
    disk."""
    dataset = storage.write(lambda tx: populate(tx, "w"))
    with storage.engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        pages = driver.execute("PRAGMA page_count").fetchone()[0]
        driver.execute(f"PRAGMA max_page_count={pages + 5}")
    with pytest.raises(Unavailable, match="full") as caught:
        storage.write(
            lambda tx: tx.messages.append(
                [dataset.message(seq, content="x" * 1_000) for seq in range(1, 101)]
            )
        )
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    with storage.read() as tx:
        assert tx.messages.count(dataset.session.key) == 0
    storage.write(note("small"))
    assert names(storage) == ["small"]


FILL = """
import resource, signal, sys
from support.stores.sqlite_store import opened
from memservice.domain.errors import Unavailable
from pathlib import Path
storage = opened(Path(sys.argv[1]))
storage.write(lambda view: view.facts.set("before", ""))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
acknowledged = 0
try:
    while True:
        storage.write(lambda view: view.facts.set(f"fact {acknowledged}", "x" * 10_000))
        acknowledged += 1
except Unavailable as error:
    print(acknowledged, error)
"""


def test_a_file_that_cannot_grow_loses_nothing_that_was_acknowledged(path: Path) -> None:
    migrated(path).close()
    limit = 4_000_000
    result = preloaded.run_python(FILL, str(path), str(limit), folder=path.parent)
    assert result.returncode == 0, result.stderr
    acknowledged = int(result.stdout.split()[0])
    assert acknowledged > 50
    storage = opened(path)
    assert names(storage) == ["before", *[f"fact {n}" for n in range(acknowledged)]]
    storage.close()


WRITER = """
import sys
from msgspec.structs import replace
from pathlib import Path
from support.stores.sqlite_store import opened
storage = opened(Path(sys.argv[1]), pool_timeout=30)
me, number = sys.argv[2], int(sys.argv[3])

def step(view):
    session = view.sessions.by_key(1, lock=True)
    assert session is not None
    seq = session.message_count + 1
    from memservice.testing.storage.base import NOW
    from memservice.domain.records import Message
    view.messages.append([Message(uid=f"{me}-{seq}", workspace_key=1, session_key=1, author_key=1, \
session="talk", author="alice", seq=seq,
        content=me, tokens=1, tokens_through=seq, created_at=NOW)])
    view.sessions.save(replace(session, message_count=seq, token_total=seq))

for _ in range(number):
    storage.write(step)
storage.close()
"""


def test_several_processes_write_to_one_session(path: Path) -> None:
    storage = migrated(path)
    dataset: Dataset = storage.write(lambda tx: populate(tx, "w"))
    started = [
        preloaded.start_python(WRITER, str(path), me, "25", folder=path.parent) for me in "abc"
    ]
    errors = [process.communicate(timeout=90)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], "\n".join(errors)
    with storage.read() as tx:
        messages = tx.messages.run(dataset.session.key, 1, 1_000)
        session = tx.sessions.by_key(dataset.session.key)
    assert [message.seq for message in messages] == list(range(1, 76))
    assert session is not None
    assert (session.message_count, session.token_total) == (75, 75)
    assert {me: sum(message.content == me for message in messages) for me in "abc"} == {
        "a": 25,
        "b": 25,
        "c": 25,
    }
    storage.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_opens_its_own_connections(storage: SqliteStorage) -> None:
    storage.write(note("parent"))
    storage.wait_for_work(0)
    child = os.fork()
    if child == 0:  # no assertion and no return to pytest in here
        try:
            storage.write(note("child"))
            storage.wait_for_work(0.01)
            os._exit(0 if names(storage) == ["parent", "child"] else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    storage.write(note("after"))
    assert names(storage) == ["parent", "child", "after"]


def test_a_process_killed_in_the_middle_of_a_write_leaves_nothing_of_it(path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from support.stores.sqlite_store import opened
storage = opened(Path(sys.argv[1]))
storage.write(lambda view: view.facts.set("acknowledged", ""))
def die(view):
    view.facts.set("half", "")
    os.kill(os.getpid(), signal.SIGKILL)
storage.write(die)
"""
    storage = migrated(path)
    assert preloaded.run_python(code, str(path), folder=path.parent).returncode == -9
    storage.write(note("after"))
    assert names(storage) == ["acknowledged", "after"]
    storage.close()


def test_a_reference_to_a_row_erased_concurrently_is_a_conflict(storage: SqliteStorage) -> None:
    dataset = storage.write(lambda tx: populate(tx, "w"))

    def lost(tx: Transaction) -> None:
        tx.messages.append([dataset.message(1, session_key=dataset.session.key + 1_000)])

    with pytest.raises(Conflict, match="deleted at the same time"):
        storage.write(lost)
    with storage.read() as tx:
        assert tx.rows.count(r.Message) == 0


def test_a_workspace_may_be_erased_in_any_order(storage: SqliteStorage) -> None:
    dataset = storage.write(lambda tx: populate(tx, "w"))

    def erase(tx: Transaction) -> None:
        for record in (r.Workspace, r.Session, r.Peer, r.Collection, r.Member):
            field = "key" if record is r.Workspace else "workspace_key"
            tx.rows.delete(record, equals(**{field: dataset.workspace.key}))

    storage.write(erase)
    with storage.read() as tx:
        assert [
            tx.rows.count(record)
            for record in (r.Workspace, r.Session, r.Peer, r.Collection, r.Member)
        ] == [0] * 5


def test_a_file_that_is_not_a_database_is_not_changed(path: Path) -> None:
    path.write_text("my diary\n" * 200)
    storage = opened(path)
    with pytest.raises(Damaged, match="not a SQLite database"):
        storage.check()
    storage.close()
    assert path.read_text().startswith("my diary")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_file_is_unavailable(storage: SqliteStorage, path: Path) -> None:
    storage.close()
    path.chmod(0o400)
    reopened = opened(path)
    with pytest.raises(Unavailable):
        reopened.write(note("a"))
    reopened.close()


def test_a_deleted_directory_is_a_missing_store(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    storage = opened(folder / "memory.db")
    folder.rmdir()
    with pytest.raises(NoStore, match="There is no file"):
        storage.check()
    storage.close()


def test_a_closed_store_is_unavailable(storage: SqliteStorage) -> None:
    storage.close()
    for attempt in (storage.check, lambda: storage.write(note("a")), lambda: names(storage)):
        with pytest.raises(Unavailable, match="closed"):
            attempt()


@pytest.mark.parametrize(("level", "number"), [("full", 2), ("normal", 1)])
def test_a_setting_controls_flushing(path: Path, level: str, number: int) -> None:
    storage = migrated(path, synchronous=level)
    with storage.engine.connect() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("synchronous", "journal_mode", "foreign_keys")
        }
    assert pragmas == {"synchronous": number, "journal_mode": "wal", "foreign_keys": 1}
    storage.close()


def test_the_log_is_copied_into_the_file_while_idle(
    storage: SqliteStorage, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memservice_sqlite.connections.IDLE_SECONDS", 0.2)
    monkeypatch.setattr("memservice_sqlite.log_copies.LogCopies.committed", lambda self: None)
    storage.write(
        lambda tx: tx.rows.put([r.Fact(name=f"{n}", value="x" * 500) for n in range(200)])
    )
    before = path.stat().st_size
    deadline = time.monotonic() + 30
    while path.stat().st_size == before and time.monotonic() < deadline:
        storage.wait_for_work(0.1)
    assert path.stat().st_size > before + 200 * 500


WRONG = {
    "sqlite://": "names no file",
    "sqlite:///:memory:": "names no file",
    "sqlite:///file:memory?mode=memory": "names no file",
    "sqlite:///memory.db?cache=shared": "options",
    "sqlite:////nowhere/at/all/memory.db": "mkdir -p /nowhere/at/all",
    "sqlite:////tmp": "is a directory",
    "memory.db": "not a URI",
}


@pytest.mark.parametrize(("uri", "words"), WRONG.items())
def test_the_error_for_an_invalid_uri_shows_a_valid_one(uri: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        file_of(uri)


def test_a_relative_path_is_resolved_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert file_of("sqlite:///memory.db") == tmp_path / "memory.db"
    assert file_of(f"sqlite:///{tmp_path}/ä b.db") == tmp_path / "ä b.db"


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_only_a_reading_statement_that_takes_too_long_is_ended(path: Path) -> None:
    """And not where it writes. The connection goes on."""
    storage = migrated(path, statement_timeout_seconds=0.2)
    storage.write(note("a"))
    began = time.monotonic()
    with (
        pytest.raises(Unavailable, match="took too long to answer") as caught,
        storage.read() as tx,
    ):
        connection_of(tx).exec_driver_sql(ENDLESS)
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    assert 0.2 <= time.monotonic() - began < 10
    assert names(storage) == ["a"]
    bounded = ENDLESS.replace("FROM n)", "FROM n WHERE i < 3000000)")
    (counted,) = storage.write(lambda tx: connection_of(tx).exec_driver_sql(bounded).one())
    assert counted == 3_000_000
    with storage.read() as tx:
        for _ in range(5):  # each statement has the time to itself
            time.sleep(0.1)
            assert [fact.name for fact in tx.rows.page(r.Fact)] == ["a"]
    storage.close()


def test_slow_conditions_evaluated_in_python_are_ended(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite takes few steps between two of them, however long each takes."""

    def slow(text: str) -> str:
        time.sleep(0.01)
        return text

    monkeypatch.setattr(functions, "_fold", slow)
    storage = migrated(path, statement_timeout_seconds=0.1)
    rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
    began = time.monotonic()
    with pytest.raises(Unavailable, match="took too long to answer"), storage.read() as tx:
        connection_of(tx).exec_driver_sql(f"{rows} SELECT count({functions.FOLD}(i)) FROM n")
    assert time.monotonic() - began < 15
    storage.close()
