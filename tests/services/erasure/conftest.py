"""Empty stores to import into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from memservice.compose import open_runtime
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.settings import load_settings
from support.erasure.imports import Open
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import Clock, Pipeline
from support.stores.stores import store_of


@pytest.fixture
def open_pipeline(storage_name: str, tmp_path: Path) -> Iterator[Open]:
    stores: list[AbstractContextManager[str]] = []
    opened: list[Runtime] = []

    def open_store() -> Pipeline:
        folder = tmp_path / str(len(stores))
        folder.mkdir()
        stores.append(store := store_of(storage_name, folder))
        settings = load_settings(
            environ={"DB_CONNECTION_URI": store.__enter__(), "REASONER": "scripted"}, cwd=folder
        )
        reasoner, clock = ScriptedReasoner(), Clock()
        plugins = load_plugins(settings, extra=[reasoner])
        rt = open_runtime(settings, "command", plugins=plugins, clock=clock)
        rt.storage.migrate()
        opened.append(rt)
        return Pipeline(rt, clock, reasoner)

    yield open_store
    for rt in opened:
        rt.close()
    for store in stores:
        store.__exit__(None, None, None)
