"""The services on each storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from memservice.compose import Role, open_runtime
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.settings import load_settings
from memservice.telemetry.metrics import Metrics
from support.services.world import Clock, Small
from support.stores.stores import sqlite_store_at

Begin = Callable[..., Small]


@pytest.fixture
def begin(local_storage_name: str, tmp_path: Path) -> Iterator[Begin]:
    """Open an empty store in a role, with these settings and plugins."""
    opened: list[Runtime] = []
    numbers = count()

    def open_small(
        *plugins: object, role: Role = "command", metrics: Metrics | None = None, **settings: str
    ) -> Small:
        uri = (
            "memory://"
            if local_storage_name == "memory"
            else sqlite_store_at(tmp_path / f"s{next(numbers)}.db")
        )
        given = {"DB_CONNECTION_URI": uri, "DB_SYNCHRONOUS": "normal", **settings}
        loaded = load_settings(environ=given, cwd=tmp_path)
        clock = Clock()
        runtime = open_runtime(
            loaded,
            role,
            plugins=load_plugins(loaded, extra=list(plugins)),
            clock=clock,
            metrics=metrics,
        )
        opened.append(runtime)
        runtime.storage.migrate()
        return Small(runtime, clock)

    yield open_small
    for runtime in opened:
        runtime.close()


@pytest.fixture
def small(begin: Begin) -> Small:
    return begin()
