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
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import Clock, Pipeline
from support.stores.stores import sqlite_store_at

OpenPipeline = Callable[..., Pipeline]


@pytest.fixture
def open_pipeline(local_storage_name: str, tmp_path: Path) -> Iterator[OpenPipeline]:
    """Open a store with the scripted reasoner, these further plugins and settings."""
    opened: list[Runtime] = []

    def open_store(
        *plugins: object,
        reasoner: ScriptedReasoner | None = None,
        role: Role = "command",
        stop: threading.Event | None = None,
        **settings: str,
    ) -> Pipeline:
        uri = "memory://" if local_storage_name == "memory" else sqlite_store_at(tmp_path / "p.db")
        given = {"DB_CONNECTION_URI": uri, "REASONER": "scripted", **settings}
        loaded = load_settings(environ=given, cwd=tmp_path)
        scripted, clock = reasoner or ScriptedReasoner(), Clock()
        runtime = open_runtime(
            loaded,
            role,
            plugins=load_plugins(loaded, extra=[scripted, *plugins]),
            clock=clock,
            stop=stop,
        )
        opened.append(runtime)
        runtime.storage.migrate()
        return Pipeline(runtime, clock, scripted)

    yield open_store
    for runtime in opened:
        runtime.close()


@pytest.fixture
def pipeline(open_pipeline: OpenPipeline) -> Pipeline:
    return open_pipeline()
