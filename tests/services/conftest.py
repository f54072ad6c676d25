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
from support.services.services import Clock, Services
from support.stores.stores import sqlite_store_at

OpenServices = Callable[..., Services]


@pytest.fixture
def open_services(local_storage_name: str, tmp_path: Path) -> Iterator[OpenServices]:
    """Open an empty store in a role, with these settings and plugins."""
    opened: list[Runtime] = []
    numbers = count()

    def open_store(
        *plugins: object, role: Role = "command", metrics: Metrics | None = None, **settings: str
    ) -> Services:
        uri = (
            "memory://"
            if local_storage_name == "memory"
            else sqlite_store_at(tmp_path / f"s{next(numbers)}.db")
        )
        environ = {"DB_CONNECTION_URI": uri, "DB_SYNCHRONOUS": "normal", **settings}
        loaded = load_settings(environ=environ, cwd=tmp_path)
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
        return Services(runtime, clock)

    yield open_store
    for runtime in opened:
        runtime.close()


@pytest.fixture
def services(open_services: OpenServices) -> Services:
    return open_services()
