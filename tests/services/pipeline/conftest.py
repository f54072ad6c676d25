"""The pipeline on each storage."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memservice.compose import Role, open_runtime
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.settings import load_settings
from support.pipeline.all_tables import Contents
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import Clock, Pipeline
from support.stores.stores import sqlite_store_at, store_of

OpenPipeline = Callable[..., Pipeline]


@pytest.fixture
def store_uri(local_storage_name: str, tmp_path: Path) -> Iterator[str]:
    """The URI of an empty store. Modules whose tests depend on the storage replace it by
    `support.pipeline.store_uri`."""
    with store_of(local_storage_name, tmp_path) as uri:
        yield uri


@contextmanager
def opening_pipelines(uri: str, folder: Path) -> Iterator[OpenPipeline]:
    """Open a store with the scripted reasoner, these further plugins and settings."""
    opened: list[Runtime] = []

    def open_store(
        *plugins: object,
        reasoner: ScriptedReasoner | None = None,
        role: Role = "command",
        stop: threading.Event | None = None,
        **settings: str,
    ) -> Pipeline:
        environment = {"DB_CONNECTION_URI": uri, "REASONER": "scripted", **settings}
        loaded = load_settings(environ=environment, cwd=folder)
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
def open_pipeline(store_uri: str, tmp_path: Path) -> Iterator[OpenPipeline]:
    with opening_pipelines(store_uri, tmp_path) as open_store:
        yield open_store


@pytest.fixture
def stored_pipeline(storage_name: str, tmp_path: Path) -> Iterator[Pipeline]:
    """Like `pipeline`, on each storage."""
    with (
        store_of(storage_name, tmp_path) as uri,
        opening_pipelines(uri, tmp_path) as open_store,
    ):
        yield open_store()


@pytest.fixture
def pipeline(open_pipeline: OpenPipeline) -> Pipeline:
    return open_pipeline()


@pytest.fixture
def other_uri(local_storage_name: str, tmp_path: Path) -> str:
    """The URI of an empty store of another kind."""
    return (
        "memory://" if local_storage_name == "sqlite" else sqlite_store_at(tmp_path / "second.db")
    )


@pytest.fixture(scope="module")
def contents() -> Contents:
    """Kept for a module by `filled_once`."""
    return {}
