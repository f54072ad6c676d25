"""The storage contract, on SQLite files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memservice.spi.storage import Storage
from memservice.testing.storage import StorageContract
from support.stores.sqlite_store import migrated, opened


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store, migrated once: copying a file is faster than migrating for each test."""
    path = tmp_path_factory.mktemp("template") / "memory.db"
    migrated(path).close()
    return path


class TestSqlite(StorageContract):
    @pytest.fixture
    def open_storage(self, tmp_path: Path, template: Path) -> Callable[[], Storage]:
        path = tmp_path / "memory.db"
        shutil.copy(template, path)

        return lambda: opened(path, pool_timeout=30)
