"""The storage contract, on a PostgreSQL database behind PgBouncer in transaction mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from memservice.spi.storage import Storage
from memservice.testing.storage import StorageContract
from memservice.testing.storage.transactions import names, note
from support.stores.pgbouncer import IGNORING, pooled
from support.stores.postgres_server import drop_database
from support.stores.postgres_store import empty, migrated, new_store

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def store() -> Iterator[tuple[str, str]]:
    """The URI of a database, and its URI through PgBouncer."""
    uri = new_store()
    with pooled(uri, IGNORING) as through:
        yield uri, through
    drop_database(uri)


class TestPostgresBehindPgBouncer(StorageContract):
    @pytest.fixture
    def open_storage(self, store: tuple[str, str]) -> Callable[[], Storage]:
        uri, through = store
        empty(uri)
        return lambda: migrated(through, pool_timeout=30, pool_size=4, max_overflow=4)

    def test_waiting_ends_when_the_other_opening_commits(
        self, storage: Storage, another: Storage
    ) -> None:
        """A pooler that shares connections between transactions passes no notifications on. Workers
        look for new work within their polling interval, and see it."""
        another.write(note("work"))
        assert names(storage) == ["work"]

    def test_a_healthy_store_has_no_findings(self, storage: Storage) -> None:
        """But one: the pooler."""
        assert list(storage.examine()) == []
        (finding,) = storage.examine(thorough=True)
        assert finding.state == "degraded"
        assert "is behind a connection pooler" in finding.found
