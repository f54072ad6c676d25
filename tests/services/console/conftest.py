"""A console with one owner, on each local storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memservice import compose
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.settings import load_settings
from support.services.console import AUTH_ON, Console, Open
from support.services.services import Clock
from support.stores.stores import sqlite_store_at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_runtime(local_storage_name: str, tmp_path: Path, clock: Clock) -> Iterator[Open]:
    """Opens the store of this test with these settings; on SQLite, again and again the same."""
    opened: list[Runtime] = []
    uri = "memory://" if local_storage_name == "memory" else sqlite_store_at(tmp_path / "c.db")

    def open_with(**overrides: str) -> Runtime:
        environ = {"DB_CONNECTION_URI": uri, "DB_SYNCHRONOUS": "normal", **AUTH_ON, **overrides}
        settings = load_settings(environ=environ, cwd=tmp_path)
        opened.append(compose.open_runtime(settings, plugins=load_plugins(settings), clock=clock))
        opened[-1].storage.migrate()
        return opened[-1]

    yield open_with
    for runtime in opened:
        runtime.close()


@pytest.fixture
def console(open_runtime: Open, clock: Clock) -> Console:
    return Console(open_runtime(), clock)
