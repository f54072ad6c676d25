"""Full text in PostgreSQL keeps the contract and its budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from memservice.spi.text import TextIndex
from memservice.testing.indexes import Engine
from memservice.testing.text import TextIndexContract
from memservice_postgres.storage import PostgresStorage
from memservice_postgres.text import PostgresTextIndex
from support.stores.postgres_server import drop_database
from support.stores.postgres_store import empty, migrated, new_store


@pytest.fixture(scope="module")
def store() -> Iterator[tuple[str, PostgresStorage]]:
    uri = new_store()
    storage = migrated(uri)
    yield uri, storage
    storage.close()
    drop_database(uri)


@pytest.fixture
def storage(store: tuple[str, PostgresStorage]) -> PostgresStorage:
    empty(store[0])
    return store[1]


class TestPostgresText(TextIndexContract):
    @pytest.fixture
    def open_index(self, storage: PostgresStorage) -> Callable[[], Engine[TextIndex]]:
        return lambda: Engine(PostgresTextIndex(), storage)


class TestPostgresTextOnASmallBudget(TextIndexContract):
    """Every term is common here, so that postings are read and counted in part; nothing else may
    change."""

    @pytest.fixture
    def open_index(self, storage: PostgresStorage) -> Callable[[], Engine[TextIndex]]:
        return lambda: Engine(PostgresTextIndex(budget=1), storage)


# By default, test_large_workspaces.py looks at them.
@pytest.mark.heavy
class TestPostgresTextInALargeWorkspace(TextIndexContract):
    @pytest.fixture
    def open_index(self, storage: PostgresStorage) -> Callable[[], Engine[TextIndex]]:
        return lambda: Engine(PostgresTextIndex(exact_documents=0), storage)
