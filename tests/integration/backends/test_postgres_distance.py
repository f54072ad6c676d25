"""Requests that wait for a distant PostgreSQL let others begin."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

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


def test_each_transaction_with_a_distant_database_reports_that_it_waits(
    waits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first_query = connections._detect_pooler

    def slow(*arguments: Any) -> None:
        time.sleep(2 * connections.DISTANT_SECONDS)
        first_query(*arguments)

    monkeypatch.setattr(connections, "_detect_pooler", slow)
    read_and_write(postgres_store.new_store())
    assert len(waits) == 3


def test_transactions_with_a_near_database_report_nothing(
    waits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "DISTANT_SECONDS", 60.0)  # a busy machine seems distant
    read_and_write(postgres_store.new_store())
    assert waits == []


def test_one_quick_answer_shows_that_a_database_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "DISTANT_SECONDS", 0.1)
    pauses = [0.2, 0.0, 0.2]
    first_query = connections._detect_pooler

    def delayed(*arguments: Any) -> None:
        time.sleep(pauses.pop())
        first_query(*arguments)

    monkeypatch.setattr(connections, "_detect_pooler", delayed)
    config = connections.config_of(postgres_store.new_store())
    assert config.is_distant, "unknown before the first connection"
    states = []
    for _ in range(3):
        config.connect().close()
        states.append(config.is_distant)
    assert states == [True, False, False]
