"""Queries that a connection to PostgreSQL runs again, each on the same cursor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.adapt import AdaptersMap

from memservice_postgres.connections import Driver, config_of
from memservice_postgres.reader import MAX_CURSORS
from support.stores.postgres_server import drop_database, new_database

SQUARES = "SELECT n, n * n FROM generate_series(1, %(last)s) AS n ORDER BY n"


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    uri = new_database()
    with config_of(uri).connect() as opened:
        yield opened
    drop_database(uri)


def test_a_query_reads_its_rows_with_other_values_each_time(driver: Driver) -> None:
    assert driver.reader.rows(SQUARES, {"last": 2}) == [(1, 1), (2, 4)]
    assert driver.reader.rows(SQUARES, {"last": 3}) == [(1, 1), (2, 4), (3, 9)]
    assert driver.reader.rows(SQUARES, {"last": 0}) == []
    assert driver.reader.execute(SQUARES, {"last": 1}).fetchone() == (1, 1)


def test_the_format_of_a_result_may_change(driver: Driver) -> None:
    for binary in (False, True, False):
        assert driver.reader.rows(SQUARES, {"last": 1}, binary=binary) == [(1, 1)]


def test_conversions_are_looked_up_at_the_first_run_of_a_query(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[int] = []
    get = AdaptersMap.get_loader

    def get_loader(self: AdaptersMap, oid: int, format: Any) -> Any:
        looked_up.append(oid)
        return get(self, oid, format)

    monkeypatch.setattr(AdaptersMap, "get_loader", get_loader)
    query = "SELECT %s::bigint, %s::text"
    driver.reader.rows(query, (1, "one"))
    assert looked_up
    looked_up.clear()
    # An equal query that is another object, as one that is written for each search.
    assert driver.reader.rows("".join(list(query)), (2, "two")) == [(2, "two")]
    assert looked_up == []


def test_a_result_leaves_the_memory_when_its_rows_were_fetched(driver: Driver) -> None:
    cursor = driver.reader.execute(SQUARES, {"last": 3})
    assert cursor.pgresult is not None
    assert cursor.pgresult.ntuples == 3
    driver.reader.rows("SELECT 1")
    assert cursor.pgresult.ntuples == 0


def test_a_query_runs_again_after_it_failed(driver: Driver) -> None:
    query = "SELECT 10 / %s::int"
    assert driver.reader.rows(query, (5,)) == [(2,)]
    with pytest.raises(psycopg.errors.DivisionByZero):
        driver.reader.rows(query, (0,))
    assert driver.reader.rows(query, (2,)) == [(5,)]


def test_the_cursors_of_the_queries_used_last_are_kept(driver: Driver) -> None:
    first = driver.reader.execute("SELECT 0")
    for number in range(1, MAX_CURSORS):
        driver.reader.rows(f"SELECT {number}")
    assert driver.reader.execute("SELECT 0") is first
    driver.reader.rows("SELECT 'one more'")
    assert driver.reader.execute("SELECT 0") is first
    for number in range(1, MAX_CURSORS + 1):
        driver.reader.rows(f"SELECT {number}")
    assert driver.reader.execute("SELECT 0") is not first
