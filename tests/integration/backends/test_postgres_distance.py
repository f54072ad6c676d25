"""Requests that wait for a distant PostgreSQL let others begin."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from memservice.domain.records import Workspace
from memservice.spi.waiting import on_wait
from memservice_postgres import connections
from support.stores import postgres_store


@pytest.fixture
def waits() -> Iterator[list[str]]:
    """What `about_to_wait` has been called for."""
    calls: list[str] = []
    on_wait(lambda: calls.append(""))
    yield calls
    on_wait(None)


def read_and_write(uri: str) -> None:
    storage = postgres_store.opened(uri)
    with storage.read_committed() as tx:
        tx.rows.count(Workspace)
    with storage.read() as tx:
        tx.rows.count(Workspace)
    storage.write(lambda tx: tx.facts.set("name", ""))
    storage.close()


@pytest.fixture(autouse=True)
def quick_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(connections, "SLOW_COMMIT_SECONDS", 60.0)


def test_each_transaction_with_a_distant_database_reports_that_it_waits(
    waits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_round_trip", lambda driver: 0.001)
    uri = postgres_store.new_store()
    waits.clear()
    read_and_write(uri)
    assert len(waits) == 3


def test_transactions_with_a_near_database_report_nothing(
    waits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "DISTANT_SECONDS", 60.0)  # a busy machine seems distant
    uri = postgres_store.new_store()
    waits.clear()
    read_and_write(uri)
    assert waits == []


def test_one_quick_answer_shows_that_a_database_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    round_trips = [0.2, 0.0001, 0.2]
    monkeypatch.setattr(connections, "_round_trip", lambda driver: round_trips.pop(0))
    config = connections.config_of(postgres_store.new_store())
    assert config.is_distant, "unknown before the first connection"
    states = []
    for _ in range(3):
        config.connect().close()
        states.append(config.is_distant)
    assert states == [True, False, False]
    assert round_trips == [0.2], "it is known to be near"


def test_the_first_connections_measure_the_round_trip_and_one_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uri = postgres_store.new_store()
    measured: list[float] = []

    def round_trip(driver: object) -> float:
        measured.append(0.2)
        return 0.2

    monkeypatch.setattr(connections, "_round_trip", round_trip)
    monkeypatch.setattr(connections, "MEASURED", 3)
    config = connections.config_of(uri)
    for _ in range(5):
        config.connect().close()
    assert len(measured) == 3
    assert config.is_distant
    monkeypatch.setattr(connections, "MEASURE_SECONDS", 0.0)  # a minute later
    config.connect().close()
    assert len(measured) == 4


def test_the_round_trip_is_that_of_a_query() -> None:
    with connections.config_of(postgres_store.new_store()).connect() as driver:
        began = time.perf_counter()
        seconds = connections._round_trip(driver)
        assert 0 < seconds <= time.perf_counter() - began


def test_slow_commits_report_that_they_wait(
    waits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that takes long to write: other transactions can then commit with this one."""
    monkeypatch.setattr(connections, "DISTANT_SECONDS", 60.0)
    monkeypatch.setattr(connections, "SLOW_COMMIT_SECONDS", 0.0)
    storage = postgres_store.opened(postgres_store.new_store())
    waits.clear()
    for _ in range(3):
        storage.write(lambda tx: tx.facts.set("name", ""))
    with storage.read() as tx:
        tx.rows.count(Workspace)
    storage.close()
    assert len(waits) == 2, "the first commit was not measured yet"


def test_the_quickest_of_the_last_commits_counts() -> None:
    """Other threads and a busy machine delay some of them."""
    config = connections.config_of("postgresql+psycopg://localhost/name")
    states = []
    for milliseconds in (0.3, 80, 80, 80, 0.4, *[5] * 40, 0.2):
        config.committed(milliseconds / 1000)
        states.append(config._observed.commit_seconds > 0.001)
    assert states[:5] == [False] * 5
    assert states[5:45] == sorted(states[5:45]), "slow from some point on"
    assert states[44:] == [True, False]
