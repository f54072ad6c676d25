"""The pipeline on each storage."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memservice.compose import Role, open_runtime
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.settings import load_settings
from support.pipeline.fakes import Scripted
from support.pipeline.place import Clock, Place
from support.stores.stores import sqlite_store_at

Start = Callable[..., Place]


@pytest.fixture
def start(local_storage_name: str, tmp_path: Path) -> Iterator[Start]:
    """Open a store with the scripted reasoner, these further plugins and settings."""
    opened: list[Runtime] = []

    def open_place(
        *plugins: object,
        reasoner: Scripted | None = None,
        role: Role = "command",
        stop: threading.Event | None = None,
        **settings: str,
    ) -> Place:
        uri = "memory://" if local_storage_name == "memory" else sqlite_store_at(tmp_path / "p.db")
        given = {"DB_CONNECTION_URI": uri, "REASONER": "scripted", **settings}
        loaded = load_settings(environ=given, cwd=tmp_path)
        scripted, clock = reasoner or Scripted(), Clock()
        runtime = open_runtime(
            loaded,
            role,
            plugins=load_plugins(loaded, extra=[scripted, *plugins]),
            clock=clock,
            stop=stop,
        )
        opened.append(runtime)
        runtime.storage.migrate()
        return Place(runtime, clock, scripted)

    yield open_place
    for runtime in opened:
        runtime.close()


@pytest.fixture
def place(start: Start) -> Place:
    return start()
