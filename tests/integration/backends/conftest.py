"""What the tests of several indexes of SQLite use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.stores.sqlite_file import SqliteFile, open_whole


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store, migrated once: a copy is had faster."""
    path = tmp_path_factory.mktemp("template") / "memory.db"
    open_whole(path).close()
    return path


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SqliteFile]:
    """A file with the tables of an index, without the rest of a store."""
    opened = SqliteFile(tmp_path / "index.db")
    yield opened
    opened.close()
