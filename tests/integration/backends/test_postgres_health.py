"""What a PostgreSQL store says of itself, a pooler that stands before it, and a server that has no
connection to give."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import make_url

from memservice.domain.errors import Unavailable
from memservice.domain.records import Fact
from memservice.spi.storage import Transaction
from memservice_postgres import connections
from memservice_postgres.connections import Driver, driver_of
from memservice_postgres.storage import PostgresStorage
from memservice_postgres.waiting_pool import is_full
from support.stores.pgbouncer import IGNORING, pooled
from support.stores.postgres_server import connect, drop_database, new_database
from support.stores.postgres_store import migrated, new_store, opened

SETTINGS = (
    "search_path",
    "enable_seqscan",
    "lock_timeout",
    "statement_timeout",
    "idle_in_transaction_session_timeout",
)


@pytest.fixture
def uri() -> Iterator[str]:
    uri = new_store()
    yield uri
    drop_database(uri)


@pytest.fixture
def empty() -> Iterator[str]:
    uri = new_database()
    yield uri
    drop_database(uri)


def note(name: str) -> Callable[[Transaction], None]:
    return lambda tx: tx.facts.set(name, "")


def names(storage: PostgresStorage) -> list[str]:
    with storage.read() as tx:
        return [fact.name for fact in tx.rows.page(Fact)]


def test_a_healthy_database_has_no_findings(uri: str) -> None:
    storage = opened(uri)
    storage.write(note("a"))
    assert storage.examine() == []
    assert storage.examine(thorough=True) == []
    storage.close()


def test_a_read_only_server_is_reported(uri: str) -> None:
    name = make_url(uri).database
    with connect(uri) as connection:
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
    storage = opened(uri)
    storage.check()
    with pytest.raises(Unavailable, match="may only be read"):
        storage.write(note("a"))
    (finding,) = storage.examine()
    assert (finding.state, "default_transaction_read_only" in finding.found) == ("failed", True)
    storage.close()
    with connect(uri) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())
    storage = opened(uri)
    assert storage.examine() == []
    storage.close()


def test_a_pool_larger_than_the_servers_limit_is_reported(uri: str) -> None:
    storage = opened(uri, pool_size=150)
    storage.write(note("a"))  # from now on it is told of work, and so counted
    deadline = time.monotonic() + 30
    while not (findings := storage.examine(thorough=True)) and time.monotonic() < deadline:
        time.sleep(0.05)
    (finding,) = findings
    assert (finding.state, "1 processes may open 171 connections each" in finding.found) == (
        "degraded",
        True,
    )
    assert storage.examine() == []
    storage.close()


class TestFewConnections:
    """The server gives this user no more than two connections."""

    @pytest.fixture
    def few(self, uri: str) -> Iterator[str]:
        role = f"few_{os.getpid()}"
        with connect(uri) as connection:
            connection.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 2".encode())
            connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}".encode())
            connection.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}".encode())
            yield make_url(uri).set(username=role).render_as_string(hide_password=False)
            connection.execute(
                (
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "
                    f"'{role}'"
                ).encode()
            )
            connection.execute(f"DROP OWNED BY {role}".encode())
            connection.execute(f"DROP ROLE {role}".encode())

    def test_writes_wait_for_a_connection_of_their_process(self, few: str) -> None:
        storage = opened(few, pool_size=10, pool_timeout=20)

        def work(tx: Transaction) -> None:
            time.sleep(0.05)
            tx.facts.set("a", "")

        with ThreadPoolExecutor(10) as pool:
            for done in [pool.submit(storage.write, work) for _ in range(20)]:
                done.result(60)
        storage.close()

    def test_the_wait_is_limited(self, few: str) -> None:
        storage = opened(few, pool_timeout=0.5)
        with psycopg.connect(_text(few)), psycopg.connect(_text(few)):
            began = time.monotonic()
            with pytest.raises(Unavailable, match="too many connections"):
                storage.check()
            assert 0.4 < time.monotonic() - began < 5
        storage.check()
        storage.close()

    def test_the_servers_error_is_recognised(self) -> None:
        messages = [
            "connection failed: FATAL:  sorry, too many clients already",
            (
                "connection failed: FATAL:  remaining connection slots are reserved for roles "
                "with the SUPERUSER attribute"
            ),
            'connection failed: FATAL:  too many connections for role "memservice"',
            "connection failed: FATAL:  no more connections allowed (max_client_conn)",
        ]
        assert [is_full(psycopg.OperationalError(text)) for text in messages] == [True] * 4
        assert is_full(psycopg.errors.TooManyConnections())
        assert not is_full(psycopg.OperationalError("connection failed: Connection refused"))


def _text(uri: str) -> str:
    return make_url(uri).set(drivername="postgresql").render_as_string(hide_password=False)


def in_force(storage: PostgresStorage, settings: Sequence[str] = SETTINGS) -> dict[str, str]:
    """These settings in a writing transaction."""
    values: dict[str, str] = {}

    def look(tx: Transaction) -> None:
        driver = driver_of(tx.rows.connection)  # type: ignore[attr-defined]
        values.update(
            {
                name: driver.execute("SELECT current_setting(%s)", (name,)).fetchall()[0][0]
                for name in settings
            }
        )

    storage.write(look)
    return values


def tables(uri: str, schema: str) -> int:
    with connect(uri) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = %s", (schema,)
        ).fetchone()
    assert row is not None
    return int(str(row[0]))


@pytest.fixture(params=["ignored", "refused"])
def without_settings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Connections that are not opened with the settings that they are asked to have, as through
    PgBouncer with `ignore_startup_parameters`, and without."""
    connecting = Driver.connect.__func__  # type: ignore[attr-defined]

    def connect(
        cls: type[Driver], /, conninfo: str = "", *, options: str = "", **arguments: Any
    ) -> Driver:
        if options and request.param == "refused":
            raise psycopg.OperationalError(
                "connection failed: FATAL:  unsupported startup parameter: options"
            )
        return connecting(cls, conninfo, **arguments)  # type: ignore[no-any-return]

    monkeypatch.setattr(Driver, "connect", classmethod(connect))
    return str(request.param)


@pytest.mark.usefixtures("without_settings")
def test_our_settings_apply_in_every_transaction(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    storage = opened(uri)
    with caplog.at_level("WARNING", "memservice"):
        storage.check()
        storage.check()
    assert [record.levelname for record in caplog.records] == ["WARNING"], "once"
    assert "is behind a connection pooler" in caplog.text
    assert in_force(storage) == {
        "search_path": "public,public,extensions",
        "enable_seqscan": "off",
        "lock_timeout": "5s",
        "statement_timeout": "30s",
        "idle_in_transaction_session_timeout": "1min",
    }
    with storage.engine.connect() as connection:
        assert driver_of(connection).prepare_threshold is None
        assert connection.exec_driver_sql("SHOW enable_seqscan").scalar() == "on", (
            "what is set ends with its transaction"
        )
    assert storage.examine() == []
    assert [finding.state for finding in storage.examine(thorough=True)] == ["degraded"]
    storage.close()


@pytest.mark.usefixtures("without_settings")
def test_tables_of_a_configured_schema_are_not_created_in_public(empty: str) -> None:
    storage = migrated(empty, schema="elsewhere")
    storage.check()
    storage.write(note("a"))
    assert names(storage) == ["a"]
    assert tables(empty, "public") == 0
    assert tables(empty, "elsewhere") > 10
    storage.close()


def test_without_a_pooler_settings_are_those_of_the_connection(uri: str) -> None:
    storage = opened(uri)
    with storage.engine.connect() as connection:
        driver = driver_of(connection)
        assert (driver.pooler, driver.settings) == (False, b"")
        assert driver.prepare_threshold is not None
        assert connection.exec_driver_sql("SHOW enable_seqscan").scalar() == "off"
    storage.close()


class TestReadingAhead:
    """Pages that the system has in memory are read without other processes."""

    def pages_ahead(self, uri: str) -> str:
        storage = opened(uri)
        try:
            return in_force(storage, ["effective_io_concurrency"]).popitem()[1]
        finally:
            storage.close()

    def of_server(self, uri: str) -> str:
        with connect(uri) as connection:
            return str(connection.execute("SHOW effective_io_concurrency").fetchall()[0][0])

    def test_a_database_that_fits_in_memory_is_not_read_ahead(self, uri: str) -> None:
        assert self.of_server(uri) != "0"
        assert self.pages_ahead(uri) == "0"

    @pytest.mark.usefixtures("without_settings")
    def test_behind_a_pooler_neither(self, uri: str) -> None:
        assert self.pages_ahead(uri) == "0"

    def test_a_database_larger_than_the_memory_is_read_as_the_server_does(self, uri: str) -> None:
        small = make_url(uri).update_query_dict({"options": "-c effective_cache_size=1MB"})
        small_uri = small.render_as_string(hide_password=False)
        assert self.pages_ahead(small_uri) == self.of_server(uri)

    def test_what_the_administrator_sets_applies(self, uri: str) -> None:
        with connect(uri) as connection:
            name = make_url(uri).database
            connection.execute(f'ALTER DATABASE "{name}" SET effective_io_concurrency = 7'.encode())
        assert self.pages_ahead(uri) == "7"

    def test_a_server_that_does_not_know_these_settings_can_be_used(
        self, uri: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connections, "_IS_IN_MEMORY", b"SELECT no_such_function()")
        assert self.pages_ahead(uri) == self.of_server(uri)


class TestPgBouncer:
    """A real one, where it is installed: it is no part of any wheel."""

    @pytest.fixture(params=["", IGNORING], ids=["as it is", "ignoring"])
    def pooled(self, request: pytest.FixtureRequest, empty: str) -> Iterator[str]:
        with pooled(empty, request.param) as uri:
            yield uri

    def test_concurrent_writers_succeed(self, pooled: str, empty: str) -> None:
        storage = migrated(pooled, schema="elsewhere")
        storage.check()
        assert (tables(empty, "public"), tables(empty, "elsewhere") > 10) == (0, True)
        assert in_force(storage)["lock_timeout"] == "5s"

        def work(number: int) -> None:
            for step in range(10):
                storage.write(note(f"{number} {step}"))
                assert f"{number} {step}" in names(storage)

        with ThreadPoolExecutor(12) as pool:
            for done in [pool.submit(work, number) for number in range(12)]:
                done.result(60)
        assert len(names(storage)) == 120
        assert [finding.state for finding in storage.examine(thorough=True)] == ["degraded"]
        storage.close()
