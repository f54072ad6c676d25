"""Reads from a real streaming replica of PostgreSQL. Two storages stand for two server processes:
they share nothing but the database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from flask import Flask

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.domain import records as r
from memservice.domain.errors import ConfigurationError
from memservice.settings import load_settings
from memservice.spi.storage import Finding, ReplicaReads, Transaction
from memservice_postgres import replica as replicas
from memservice_postgres.connections import driver_of
from memservice_postgres.storage import PostgresStorage
from memservice_sql.rows import SqlRows
from support.processes.processes import eventually
from support.stores.postgres_server import OwnServer, StreamingReplica, connect, drop_database
from support.stores.postgres_store import migrated, new_store, opened

# In one process, which starts the primary and its replica once.
pytestmark = pytest.mark.xdist_group("postgres-replica")


@dataclass(frozen=True)
class Pair:
    primary: OwnServer
    replica: StreamingReplica

    def opened(self, **settings: object) -> PostgresStorage:
        return opened(self.primary.uri, read_connection_uri=self.replica.uri, **settings)


@pytest.fixture(scope="module")
def primary() -> Iterator[OwnServer]:
    server = OwnServer()
    migrated(server.uri).close()
    yield server
    server.end()


@pytest.fixture(scope="module")
def running_pair(primary: OwnServer) -> Iterator[Pair]:
    replica = primary.new_replica()
    yield Pair(primary, replica)
    replica.stop()


@pytest.fixture
def pair(running_pair: Pair) -> Iterator[Pair]:
    yield running_pair
    running_pair.replica.resume()


@pytest.fixture
def own_pair(primary: OwnServer) -> Iterator[Pair]:
    """With a replica that the test may stop or promote."""
    replica = primary.new_replica()
    yield Pair(primary, replica)
    replica.stop()


@pytest.fixture
def one(pair: Pair) -> Iterator[PostgresStorage]:
    storage = pair.opened()
    yield storage
    storage.close()


@pytest.fixture
def other(pair: Pair) -> Iterator[PostgresStorage]:
    storage = pair.opened()
    yield storage
    storage.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica that failed is tried at once."""
    monkeypatch.setattr(replicas, "RETRY_SECONDS", 0.0)


def note(name: str, value: str = "") -> Callable[[Transaction], None]:
    return lambda tx: tx.facts.set(name, value)


def in_recovery(tx: Transaction) -> bool:
    """Whether a replica answers."""
    assert isinstance(tx.rows, SqlRows)
    driver = driver_of(tx.rows.connection)
    return bool(driver.execute("SELECT pg_is_in_recovery()").fetchall()[0][0])


def names(tx: Transaction) -> list[str]:
    return [fact.name for fact in tx.rows.page(r.Fact)]


def reads(storage: PostgresStorage) -> ReplicaReads:
    numbers = storage.replica_reads()
    assert numbers is not None
    return numbers


def at_replica(storage: PostgresStorage) -> bool:
    def read() -> bool:
        with storage.read() as tx:
            return in_recovery(tx)

    return storage.reading(read)


def test_a_replica_that_has_everything_answers(one: PostgresStorage) -> None:
    eventually(lambda: at_replica(one), "the replica answers")

    def read_committed() -> bool:
        with one.read_committed() as tx:
            return in_recovery(tx)

    eventually(lambda: one.reading(read_committed), "it answers single statements")
    assert reads(one).replica >= 2
    assert reads(one).away == 0


def test_only_plain_reads_go_to_the_replica(one: PostgresStorage) -> None:
    eventually(lambda: at_replica(one), "the replica answers")
    with one.read() as tx:
        assert not in_recovery(tx)
    assert not one.write(in_recovery)

    def write_and_read() -> tuple[bool, list[str]]:
        one.write(note("written within"))
        with one.read() as tx:
            return in_recovery(tx), names(tx)

    is_replica, noted = one.reading(write_and_read)
    assert not is_replica
    assert "written within" in noted


def test_a_process_reads_what_another_has_written(
    pair: Pair, one: PostgresStorage, other: PostgresStorage
) -> None:
    eventually(lambda: at_replica(other), "the replica answers")
    pair.replica.pause()
    behind = reads(other).behind
    one.write(note("written elsewhere"))

    def read() -> tuple[bool, list[str]]:
        with other.read() as tx:
            return in_recovery(tx), names(tx)

    is_replica, noted = other.reading(read)
    assert not is_replica
    assert "written elsewhere" in noted
    assert reads(other).behind == behind + 1
    pair.replica.resume()
    eventually(lambda: at_replica(other), "the replica has caught up")
    assert "written elsewhere" in other.reading(read)[1]


def test_a_commit_that_does_not_wait_for_the_disk_is_read(pair: Pair) -> None:
    storage = pair.opened(synchronous="normal")
    for n in range(20):
        storage.write(note("counted", f"{n}"))

        def read() -> str | None:
            with storage.read() as tx:
                return tx.facts.get("counted")

        assert storage.reading(read) == f"{n}"
    storage.close()


def test_a_paused_read_continues(one: PostgresStorage) -> None:
    """A view that releases its connection, for a model's answer, takes one again."""

    def read() -> list[bool]:
        with one.read() as tx:
            before = in_recovery(tx)
            with tx.released():
                pass
            return [before, in_recovery(tx)]

    eventually(lambda: one.reading(read) == [True, True], "both views are the replica's")


def test_a_read_is_repeated_at_the_primary_if_the_replica_fails(
    pair: Pair, one: PostgresStorage, impatient: None
) -> None:
    eventually(lambda: at_replica(one), "the replica answers")
    servers: list[bool] = []

    def read() -> list[str]:
        with one.read() as tx:
            servers.append(in_recovery(tx))
            if servers[-1]:
                assert isinstance(tx.rows, SqlRows)
                pid = driver_of(tx.rows.connection).info.backend_pid
                with connect(pair.replica.uri) as connection:
                    connection.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
            return names(tx)

    one.write(note("kept"))
    eventually(lambda: "kept" in one.reading(read) and True in servers, "the replica was read")
    assert servers[-2:] == [True, False]
    eventually(lambda: at_replica(one), "the replica answers again")


def test_a_read_is_repeated_at_the_primary_if_replaying_cancels_it(
    own_pair: Pair, impatient: None
) -> None:
    with connect(own_pair.replica.uri) as connection:
        connection.execute("ALTER SYSTEM SET max_standby_streaming_delay = 0")
        connection.execute("SELECT pg_reload_conf()")
    storage = own_pair.opened()
    for n in range(50):
        storage.write(note(f"erased {n}"))
    eventually(lambda: at_replica(storage), "the replica answers")
    servers: list[bool] = []

    def conflicts() -> bool:
        with connect(own_pair.replica.uri) as connection:
            (number,) = connection.execute(
                "SELECT sum(confl_snapshot) FROM pg_stat_database_conflicts"
            ).fetchall()[0]
            return bool(number)

    def read() -> list[str]:
        with storage.read() as tx:
            servers.append(in_recovery(tx))
            if servers[-1]:
                with connect(own_pair.primary.uri) as connection:
                    connection.execute("DELETE FROM facts WHERE name LIKE 'erased%'")
                    connection.execute("VACUUM facts")
                eventually(conflicts, "the replica cancels the read")
            return names(tx)

    assert [name for name in storage.reading(read) if name.startswith("erased")] == []
    assert servers == [True, False]
    storage.close()


# By default, the test before this one but one lets a replica fail.
@pytest.mark.heavy
def test_a_replica_that_is_away(
    own_pair: Pair, impatient: None, caplog: pytest.LogCaptureFixture
) -> None:
    storage = own_pair.opened()
    eventually(lambda: at_replica(storage), "the replica answers")
    assert storage.examine() == []
    own_pair.replica.stop()
    with caplog.at_level(logging.INFO, "memservice.test"):
        for n in range(3):
            storage.write(note(f"away {n}"))
            assert not at_replica(storage)
        assert reads(storage).away == 3
        assert _degraded(storage.examine()).startswith("the replica postgres on")
        assert _messages(caplog, "is not used") == 1
        own_pair.replica.start()
        eventually(lambda: at_replica(storage), "it is used again")
        assert _messages(caplog, "is used again") == 1
    assert storage.examine() == []
    storage.close()


def test_a_replica_that_stays_behind_is_reported(
    pair: Pair, one: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    eventually(lambda: at_replica(one), "the replica answers")
    pair.replica.pause()
    one.write(note("later"))
    # With this limit for a moment only: the server writes to its log by itself too, and a replica
    # is behind then for as long as a busy machine takes to send it.
    with monkeypatch.context() as at_once:
        at_once.setattr(replicas, "LAGGING_SECONDS", 0.0)
        assert not at_replica(one)
        assert "has been behind" in _degraded(one.examine())
    pair.replica.resume()
    eventually(lambda: at_replica(one), "it has caught up")
    assert one.examine() == []


def test_a_promoted_replica_is_not_read(own_pair: Pair, impatient: None) -> None:
    storage = own_pair.opened()
    eventually(lambda: at_replica(storage), "the replica answers")
    own_pair.replica.promote()
    with connect(own_pair.replica.uri) as connection:
        connection.execute("INSERT INTO facts (name, value) VALUES ('of the copy', '')")

    def read() -> list[str]:
        with storage.read() as tx:
            return names(tx)

    assert "of the copy" not in storage.reading(read)
    assert "was promoted" in _degraded(storage.examine())
    storage.close()


def test_a_replica_on_another_timeline_is_not_read(
    one: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the replica of an earlier primary is; see the next test."""
    eventually(lambda: at_replica(one), "the replica answers")
    own_timeline = "substr(pg_walfile_name(lsn), 1, 8)"
    assert own_timeline in replicas._POSITION
    monkeypatch.setattr(
        replicas, "_POSITION", replicas._POSITION.replace(own_timeline, "'FFFFFFFF'")
    )
    assert not at_replica(one)
    assert (reads(one).behind, reads(one).away) == (1, 0)


@pytest.mark.heavy
def test_a_replica_of_an_earlier_primary_is_not_read(own_pair: Pair, impatient: None) -> None:
    """After a failover, its positions do not compare with those of the new primary."""
    second = own_pair.primary.new_replica()
    try:
        own_pair.replica.promote()
        storage = opened(own_pair.replica.uri, read_connection_uri=second.uri)
        storage.write(note("after the failover"))

        def read() -> list[str]:
            with storage.read() as tx:
                return names(tx)

        assert "after the failover" in storage.reading(read)
        assert reads(storage) == ReplicaReads(replica=0, behind=1, away=0)
        storage.close()
    finally:
        second.stop()


def test_another_database_is_not_read(pair: Pair) -> None:
    elsewhere = new_store()
    for uri, read_uri, problem in (
        (pair.primary.uri, elsewhere, "not a replica"),
        (elsewhere, pair.replica.uri, "not a copy of the primary"),
    ):
        storage = opened(uri, read_connection_uri=read_uri)
        assert not at_replica(storage)
        assert problem in _degraded(storage.examine())
        storage.close()
    drop_database(elsewhere)


def test_other_storages_have_no_replicas() -> None:
    variables = {"DB_CONNECTION_URI": "memory://", "DB_READ_CONNECTION_URI": "postgresql://h/d"}
    with pytest.raises(ConfigurationError, match="cannot read from a replica"):
        open_runtime(load_settings(environ=variables))


class TestServers:
    """Two servers, with a replica that stands still."""

    SESSIONS = "/v3/workspaces/replicated/sessions"

    @pytest.fixture
    def servers(self, pair: Pair) -> Iterator[tuple[Flask, Flask]]:
        variables = {
            "DB_CONNECTION_URI": pair.primary.uri,
            "DB_READ_CONNECTION_URI": pair.replica.uri,
            "METRICS_ENABLED": "true",
        }
        apps = (
            create_app(load_settings(environ=variables)),
            create_app(load_settings(environ=variables)),
        )
        yield apps
        for app in apps:
            app.extensions["memservice"].close()

    def test_what_was_deleted_is_gone(self, pair: Pair, servers: tuple[Flask, Flask]) -> None:
        one, other = (app.test_client() for app in servers)
        for name in ("kept", "deleted"):
            assert one.post(self.SESSIONS, json={"id": name}).status_code == 201
            messages = [{"peer_id": "alice", "content": f"Blue elephants are {name}."}]
            url = f"{self.SESSIONS}/{name}/messages"
            assert one.post(url, json={"messages": messages}).status_code == 201

        def listed() -> set[str]:
            answer = other.post(f"{self.SESSIONS}/list", json={})
            return {session["id"] for session in answer.get_json()["items"]}

        def hits() -> set[str]:
            query = {"query": "blue elephants"}
            answer = other.post("/v3/workspaces/replicated/search", json=query)
            return {message["session_id"] for message in answer.get_json()}

        def numbers() -> ReplicaReads:
            return reads(servers[1].extensions["memservice"].runtime.storage)

        def reads_both() -> bool:
            before = numbers().replica
            assert (listed(), hits()) == ({"kept", "deleted"}, {"kept", "deleted"})
            return numbers().replica >= before + 2

        eventually(reads_both, "the replica answers")
        pair.replica.pause()
        assert one.delete(f"{self.SESSIONS}/deleted").status_code == 202
        before = numbers()
        assert (listed(), hits()) == ({"kept"}, {"kept"})
        assert numbers().replica == before.replica
        assert numbers().behind >= before.behind + 2
        metrics = other.get("/metrics").get_data(as_text=True)
        assert 'db_replica_reads{instance_type="api",namespace="memservice",result="behind"}' in (
            metrics
        )
        pair.replica.resume()

        def reads_rest() -> bool:
            before = numbers().replica
            assert (listed(), hits()) == ({"kept"}, {"kept"})
            return numbers().replica >= before + 2

        eventually(reads_rest, "the replica answers again")


def _degraded(findings: object) -> str:
    assert isinstance(findings, list)
    (finding,) = findings
    assert isinstance(finding, Finding)
    assert finding.state == "degraded"
    return finding.found


def _messages(caplog: pytest.LogCaptureFixture, part: str) -> int:
    return sum(part in record.getMessage() for record in caplog.records)
