"""The storage contract, on PostgreSQL databases."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from memservice.spi import base
from memservice.spi.storage import Storage
from memservice.testing.storage import StorageContract
from support.stores.postgres_server import drop_database
from support.stores.postgres_store import empty, new_store, opened


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    uri = new_store()
    yield uri
    drop_database(uri)


class TestPostgres(StorageContract):
    @pytest.fixture(autouse=True)
    def short_pauses(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        """A write that violates a constraint is tried again, with pauses of half a second in all,
        in case another one was committed meanwhile."""
        if request.function.__name__ == "test_unique":
            monkeypatch.setattr(
                base, "time", SimpleNamespace(**vars(time) | {"sleep": lambda seconds: None})
            )

    @pytest.fixture
    def open_storage(self, store: str) -> Callable[[], Storage]:
        empty(store)
        # Small pools: the server may still list the connections of stores that were just closed.
        return lambda: opened(store, pool_timeout=30, pool_size=4, max_overflow=4)
