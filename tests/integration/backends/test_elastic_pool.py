"""Additional connections of a pool are kept while they are used."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from memservice_sql import elastic_pool
from memservice_sql.elastic_pool import IDLE_SECONDS, ElasticPool
from support.stores.sqlite_store import migrated


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(elastic_pool, "time", clock)
    return clock


@pytest.fixture
def open_connections() -> list[sqlite3.Connection]:
    return []


@pytest.fixture
def engine(clock: Clock, open_connections: list[sqlite3.Connection]) -> Iterator[sa.Engine]:
    class Connection(sqlite3.Connection):
        def close(self) -> None:
            open_connections.remove(self)
            super().close()

    def connect() -> sqlite3.Connection:
        open_connections.append(
            sqlite3.connect(":memory:", factory=Connection, check_same_thread=False)
        )
        return open_connections[-1]

    engine = sa.create_engine(
        "sqlite://",
        creator=connect,
        poolclass=ElasticPool,
        pool_size=2,
        max_overflow=3,
        pool_timeout=0.05,
        pool_use_lifo=True,
    )
    yield engine
    engine.dispose()


def use(engine: sa.Engine, connections: int) -> list[object]:
    """Use `connections` at once, and return them. Returns the driver's connections."""
    opened = [engine.connect() for _ in range(connections)]
    drivers = [connection.connection.driver_connection for connection in opened]
    for connection in opened:
        connection.close()
    return drivers


def test_additional_connections_are_used_again(
    engine: sa.Engine, open_connections: list[sqlite3.Connection], clock: Clock
) -> None:
    first = use(engine, 5)
    clock.now += IDLE_SECONDS - 1
    assert {id(driver) for driver in use(engine, 5)} == {id(driver) for driver in first}
    assert len(open_connections) == 5


def test_additional_connections_that_are_idle_are_closed(
    engine: sa.Engine, open_connections: list[sqlite3.Connection], clock: Clock
) -> None:
    use(engine, 5)
    clock.now += IDLE_SECONDS / 2
    use(engine, 3)
    assert len(open_connections) == 5
    clock.now += IDLE_SECONDS / 2
    use(engine, 1)
    assert len(open_connections) == 3, "the pool's two, and the one that was used since"
    clock.now += IDLE_SECONDS
    use(engine, 1)
    assert len(open_connections) == 2
    assert len(set(map(id, use(engine, 5)))) == 5, "closed ones make room for new ones"


def test_there_are_never_more_than_the_maximum(
    engine: sa.Engine, open_connections: list[sqlite3.Connection]
) -> None:
    for _ in range(2):
        opened = [engine.connect() for _ in range(5)]
        with pytest.raises(exc.TimeoutError):
            engine.connect()
        assert len(open_connections) == 5
        for connection in opened:
            connection.close()


def test_the_state_counts_additional_connections(engine: sa.Engine) -> None:
    pool = engine.pool
    assert isinstance(pool, ElasticPool)
    opened = [engine.connect() for _ in range(4)]
    assert (pool.checkedout(), pool.checkedin(), pool.overflow()) == (4, 0, 2)
    for connection in opened[:3]:
        connection.close()
    assert (pool.checkedout(), pool.checkedin(), pool.overflow()) == (1, 3, 2)
    opened[3].close()
    assert (pool.checkedout(), pool.checkedin(), pool.overflow()) == (0, 4, 2)


def test_disposing_closes_all_connections(
    engine: sa.Engine, open_connections: list[sqlite3.Connection]
) -> None:
    use(engine, 5)
    engine.dispose()
    assert open_connections == []
    assert len(use(engine, 5)) == 5


def test_threads_share_the_connections(
    engine: sa.Engine, open_connections: list[sqlite3.Connection], clock: Clock
) -> None:
    def work(index: int) -> int:
        with engine.connect() as connection:
            clock.now += IDLE_SECONDS / 3
            return connection.scalar(sa.select(sa.literal(index))) or 0

    with ThreadPoolExecutor(5) as threads:
        assert list(threads.map(work, range(300))) == list(range(300))
    assert len(open_connections) <= 5
    assert len(use(engine, 5)) == 5, "none was lost"


def test_sqlite_keeps_few_connections_that_are_idle(clock: Clock, tmp_path: Path) -> None:
    """Each has a cache of its own, and is opened in a millisecond."""
    storage = migrated(tmp_path / "memory.db")
    pool = storage.engine.pool
    assert isinstance(pool, ElasticPool)
    with ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(storage.read())
        assert pool.checkedout() == 5
    assert pool.checkedin() == 5
    clock.now += 11
    with storage.read() as tx:
        assert tx.facts.get("none") is None
    assert pool.checkedin() == 2
    storage.close()
