"""What goes wrong around a database server: it is an error to the caller, in time, and goes away
with its cause."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from memservice.domain import records as r
from memservice.domain.errors import ConfigurationError, Conflict, SchemaVersionError, Unavailable
from memservice.domain.filters.ast import equals
from memservice.spi.storage import Transaction
from memservice.testing.storage.base import populate, together
from memservice.testing.vectors import OURS, row
from memservice_postgres import committing, vector_schema
from memservice_postgres.connections import config_of, driver_of, execute_directly
from memservice_postgres.storage import PostgresStorage
from support.processes import preloaded
from support.stores.postgres_server import OwnServer, connect, drop_database, new_database
from support.stores.postgres_store import empty, migrated, new_store, opened
from support.stores.postgres_wire import Wire


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    uri = new_store()
    yield uri
    drop_database(uri)


@pytest.fixture
def uri(store: str) -> str:
    empty(store)
    return store


@pytest.fixture
def storage(uri: str) -> Iterator[PostgresStorage]:
    storage = opened(uri, pool_timeout=0.5)
    yield storage
    storage.close()


def note(name: str) -> Callable[[Transaction], None]:
    return lambda tx: tx.facts.set(name, "")


def names(storage: PostgresStorage) -> list[str]:
    with storage.read() as tx:
        return [fact.name for fact in tx.rows.page(r.Fact)]


# By default, connections that the server closed are replaced; see below.
@pytest.mark.heavy
def test_a_server_that_stops_and_starts_under_load(own_server: OwnServer) -> None:
    """Errors while it is down, none after, and nothing that was acknowledged is lost."""
    storage = migrated(own_server.uri, pool_timeout=2)
    acknowledged: list[str] = []
    refused: list[float] = []
    down, over = threading.Event(), threading.Event()
    back = [float("inf")]

    def write(me: int) -> None:
        for n in range(1_000_000):
            if over.is_set():
                return
            name, began = f"{me}-{n}", time.monotonic()
            try:
                storage.write(note(name))
                acknowledged.append(name)
            except Unavailable:
                refused.append(began)
                time.sleep(0.02)

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, me) for me in range(4)]
        while len(acknowledged) < 40:
            time.sleep(0.01)
        own_server.stop()
        down.set()
        began = time.monotonic()
        with pytest.raises(Unavailable, match="postgres on"):
            storage.check()
        assert time.monotonic() - began < 20
        while len(refused) < 8:
            time.sleep(0.01)
        own_server.start()
        back[0] = time.monotonic()
        before = len(acknowledged)
        while len(acknowledged) < before + 40:
            time.sleep(0.01)
        over.set()
        for future in writing:
            future.result(30)
    assert [began for began in refused if began > back[0] + 1] == []
    assert set(acknowledged) <= set(names(storage))
    storage.close()


def test_an_error_of_the_client_library_means_a_lost_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """libpq reports some lost connections with a result of its own, without a code of the server,
    while the connection still counts as usable."""
    result = SimpleNamespace(status=psycopg.pq.ExecStatus.FATAL_ERROR)
    pgconn = SimpleNamespace(exec_=lambda command: result, status=psycopg.pq.ConnStatus.OK)
    monkeypatch.setattr(
        psycopg.errors,
        "error_from_result",
        lambda result: psycopg.DatabaseError("server closed the connection unexpectedly\n"),
    )
    with pytest.raises(psycopg.OperationalError, match="server closed the connection"):
        execute_directly(SimpleNamespace(pgconn=pgconn), b"BEGIN")  # type: ignore[arg-type]


@pytest.fixture
def own_server() -> Iterator[OwnServer]:
    server = OwnServer()
    yield server
    server.end()


@pytest.fixture
def wire(uri: str) -> Iterator[Wire]:
    folder = Path(tempfile.mkdtemp(prefix="ms-wire-"))  # a socket's path has to be short
    wire_ = Wire(folder, uri)
    yield wire_
    wire_.close()
    shutil.rmtree(folder)


def test_a_commit_whose_answer_was_lost_is_a_success(wire: Wire) -> None:
    storage = opened(wire.uri)
    storage.write(note("a"))
    wire.cut = "after"
    storage.write(note("b"))
    assert wire.was_cut()
    storage.write(note("c"))
    assert names(storage) == ["a", "b", "c"]
    storage.close()


def test_a_commit_that_did_not_reach_the_server_stored_nothing(
    wire: Wire,
) -> None:
    storage = opened(wire.uri)
    storage.write(note("a"))
    wire.cut = "before"
    with pytest.raises(Unavailable) as caught:
        storage.write(note("b"))
    assert wire.was_cut()
    assert "the connection was lost" in str(caught.value)
    assert "not known" not in str(caught.value)
    assert names(storage) == ["a"]
    storage.close()


def test_a_transaction_number_that_a_crashed_server_has_not_reached_was_not_committed(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = opened(wire.uri)
    storage.write(note("a"))
    monkeypatch.setattr(committing, "_number", lambda driver: ("99999999999", None))
    wire.cut = "before"
    with pytest.raises(Unavailable) as caught:
        storage.write(note("b"))
    assert "not known" not in str(caught.value)
    assert names(storage) == ["a"]
    storage.close()


def test_an_unknown_outcome_of_a_commit_is_reported(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = opened(wire.uri)
    storage.write(note("a"))
    monkeypatch.setattr(committing, "STATUS_TIMEOUT", 0.3)
    wire.cut = "after"
    wire.close()  # no other connection is to be had
    with pytest.raises(Unavailable, match="the outcome of the transaction is not known"):
        storage.write(note("b"))
    storage.close()


def test_connections_that_the_server_closed_are_replaced_before_they_are_used(
    storage: PostgresStorage, uri: str
) -> None:
    storage.write(note("a"))
    with connect(uri) as other:
        others = "pid <> pg_backend_pid() AND datname = current_database()"
        other.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}".encode()
        )
    time.sleep(0.1)
    storage.write(note("b"))
    assert names(storage) == ["a", "b"]


def test_when_all_connections_are_in_use_a_read_ends_in_unavailable_in_time(uri: str) -> None:
    storage = opened(uri, pool_timeout=0.3, pool_size=1, max_overflow=1)
    with storage.read(), storage.read():
        began = time.monotonic()
        with pytest.raises(Unavailable, match="in use"):
            with storage.read():
                pass
        assert time.monotonic() - began < 4, "the default is 5"
    assert names(storage) == []
    storage.close()


def test_a_released_transaction_holds_no_connection(uri: str) -> None:
    storage = opened(uri, pool_timeout=0.3, pool_size=1, max_overflow=0)
    with storage.read() as tx:
        assert tx.facts.get("a") is None
        with tx.released():
            storage.write(note("a"))
            with pytest.raises(ValueError), storage.read():
                raise ValueError
        assert tx.facts.get("a") == ""
        with pytest.raises(Unavailable, match="in use"), tx.released():
            connection = storage.engine.connect()
        connection.close()
    with pytest.raises(RuntimeError, match="cannot be paused"):
        storage.write(lambda tx: tx.released())
    assert names(storage) == ["a"]
    storage.close()


def test_a_row_held_by_another_transaction_ends_in_unavailable_in_time(
    storage: PostgresStorage, uri: str
) -> None:
    storage.write(note("a"))
    with connect(uri) as other, other.transaction():
        other.execute("UPDATE facts SET value = 'held'")
        began = time.monotonic()
        with pytest.raises(Unavailable, match="stayed locked") as caught:
            storage.write(note("a"))
        assert 0.3 < time.monotonic() - began < 4, "the default is 5"
        assert isinstance(caught.value.__cause__, psycopg.errors.LockNotAvailable)
    storage.write(note("a"))


def test_a_statement_that_takes_too_long_is_ended(uri: str) -> None:
    storage = opened(uri, statement_timeout_seconds=0.2)
    with (
        pytest.raises(Unavailable, match="too long"),
        storage.translated(),
        storage.engine.connect() as connection,
    ):
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.execute("SELECT pg_sleep(20)")
    storage.close()


def test_a_deadlock_is_retried(uri: str) -> None:
    storage = opened(uri)
    storage.write(lambda tx: tx.rows.put([r.Fact(name=name, value="") for name in "ab"]))
    met = threading.Barrier(2)
    tries: list[str] = []

    def cross(first: str, second: str) -> Callable[[Transaction], None]:
        def work(tx: Transaction) -> None:
            tries.append(first)
            tx.facts.set(first, "1")
            if len(tries) <= 2:
                met.wait(20)
            tx.facts.set(second, "2")

        return work

    together(lambda: storage.write(cross("a", "b")), lambda: storage.write(cross("b", "a")))
    assert len(tries) == 3
    storage.close()


def test_a_refused_connection_is_unavailable_at_once() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        storage = opened(f"postgresql://user:s3cret@127.0.0.1:{nobody.getsockname()[1]}/memory")
        began = time.monotonic()
        with pytest.raises(
            Unavailable, match=r"memory on 127\.0\.0\.1.*cannot be reached"
        ) as caught:
            storage.check()
        assert time.monotonic() - began < 20
        assert "s3cret" not in str(caught.value)
        storage.close()


def test_a_server_that_does_not_answer_is_unavailable_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        storage = opened(
            f"postgresql://user@127.0.0.1:{silent.getsockname()[1]}/memory",
            connect_timeout_seconds=1,
        )
        began = time.monotonic()
        with pytest.raises(Unavailable, match="cannot be reached"):
            storage.check()
        assert time.monotonic() - began < 20
        storage.close()


def test_a_reference_to_a_row_erased_concurrently_is_a_conflict(storage: PostgresStorage) -> None:
    dataset = storage.write(lambda tx: populate(tx, "w"))
    with pytest.raises(Conflict, match="deleted at the same time"):
        storage.write(
            lambda tx: tx.messages.append(
                [dataset.message(1, session_key=dataset.session.key + 1_000)]
            )
        )
    with storage.read() as tx:
        assert tx.rows.count(r.Message) == 0


def test_a_workspace_may_be_erased_in_any_order(storage: PostgresStorage) -> None:
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


def test_a_forked_process_opens_its_own_connections(storage: PostgresStorage) -> None:
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


MIGRATE = """
import sys
from support.stores.postgres_store import opened
storage = opened(sys.argv[1])
sys.stdin.read()
storage.migrate()
storage.check()
storage.write(lambda view: view.rows.put([]))
storage.close()
"""


def test_several_processes_may_migrate_at_once(tmp_path: Path) -> None:
    uri = new_database()
    wait, go = os.pipe()
    started = [preloaded.start_python(MIGRATE, uri, folder=tmp_path, stdin=wait) for _ in range(3)]
    os.close(wait)
    os.close(go)
    errors = [process.communicate(timeout=100)[1] for process in started]
    assert [process.returncode for process in started] == [0] * 3, "\n".join(errors)
    drop_database(uri)


# By default, tests/contracts/test_scratch.py opens several stores in one database.
@pytest.mark.heavy
def test_two_schemas_of_one_database_are_two_stores() -> None:
    uri = new_database()
    one, other = migrated(uri), opened(uri, schema="elsewhere")
    one.write(note("one"))
    with pytest.raises(SchemaVersionError, match="memservice db upgrade"):
        other.check()
    other.migrate()
    other.write(note("other"))
    assert (names(one), names(other)) == (["one"], ["other"])
    mine, theirs = one.vectors, other.vectors
    assert mine is not None
    assert theirs is not None
    one.write(lambda tx: mine.upsert(tx, OURS, [row(1)]))
    with one.read() as tx, other.read() as elsewhere:
        assert (mine.count(tx, OURS), theirs.count(elsewhere, OURS)) == (1, 0)
    one.close()
    other.close()
    drop_database(uri)


def test_stores_in_separate_schemas_share_the_extension() -> None:
    uri = new_database()
    for schema in ("one", "other"):
        store = opened(uri, schema=schema)
        store.migrate()
        store.check()
        store.close()
    with connect(uri) as connection:
        connection.execute(
            "DROP SCHEMA other CASCADE; CREATE SCHEMA hidden; ALTER EXTENSION vector SET "
            "SCHEMA hidden"
        )
    other = opened(uri, schema="other")
    with pytest.raises(ConfigurationError, match="ALTER EXTENSION vector SET SCHEMA public"):
        other.migrate()
    other.close()
    drop_database(uri)


def test_a_database_that_cannot_hold_every_text_is_refused_before_it_is_upgraded() -> None:
    uri = new_database(encoding="LATIN1")
    storage = opened(uri)
    for ask in (storage.check, storage.migrate):
        with pytest.raises(
            ConfigurationError, match=r"has the encoding LATIN1.* createdb --encoding UTF8"
        ):
            ask()
    storage.close()
    drop_database(uri)


def test_the_error_for_an_empty_database_says_what_to_do() -> None:
    uri = new_database()
    storage = opened(uri)
    for attempt in (storage.check, lambda: storage.write(note("a"))):
        with pytest.raises(SchemaVersionError, match="memservice db upgrade"):
            attempt()
    storage.close()
    drop_database(uri)


def test_without_pgvector_the_storage_works_without_vectors_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uri = new_database()
    monkeypatch.setattr(vector_schema, "_one", lambda driver, sql: None)
    storage = opened(uri)
    with pytest.raises(
        ConfigurationError, match=r"pgvector.*apt install.*VECTOR_STORE_TYPE.*vectors.: false"
    ):
        storage.migrate()
    with pytest.raises(SchemaVersionError, match="vectors"):
        storage.check()
    storage.close()
    storage = migrated(uri, vectors=False)
    storage.check()
    assert storage.vectors is None
    storage.close()
    drop_database(uri)


def test_an_old_pgvector_is_refused(
    monkeypatch: pytest.MonkeyPatch, storage: PostgresStorage
) -> None:
    monkeypatch.setattr(vector_schema, "_one", lambda driver, sql: "0.6.2")
    with storage.engine.connect() as connection:
        driver = driver_of(connection)
        with pytest.raises(
            ConfigurationError,
            match=r"pgvector 0\.6\.2.*0\.8 or newer.*ALTER EXTENSION vector UPDATE",
        ):
            vector_schema.ensure(driver, "memory")


def test_an_acknowledged_write_is_on_disk_unless_configured_otherwise(uri: str) -> None:
    for level, expected in (("full", "on"), ("normal", "off")):
        storage = opened(uri, synchronous=level)
        with storage.engine.connect() as connection:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == expected
        storage.close()


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("memory", "not a URI"),
        ("postgresql://", "names no database"),
        ("postgresql://host:port/db", "not a URI"),
    ],
)
def test_the_error_for_an_invalid_uri_shows_a_valid_one(uri: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{words}.*postgresql\+psycopg://"):
        config_of(uri)
