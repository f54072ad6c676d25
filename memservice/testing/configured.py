"""The contract suites on a provider as an installation has it, for `memservice plugins check`. Not for the tests of a plugin's author.

`provider.json` in pytest's root says which one, and for what keeps something the place to keep it while it is checked, in which `{path}`
is a file or directory of each test's own. What the settings name is never touched.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memservice.plugins import Plugins, load_plugins
from memservice.settings import Settings, connections, load_settings
from memservice.spi.embedding import Embedder
from memservice.spi.providers import Context
from memservice.spi.reasoner import Reasoner
from memservice.spi.storage import Storage
from memservice.spi.vectors import VectorIndex
from memservice.testing.embedding import EmbedderContract
from memservice.testing.indexes import Engine
from memservice.testing.reasoner import ReasonerContract
from memservice.testing.storage import StorageContract
from memservice.testing.vectors import VectorIndexContract


@pytest.fixture(scope="session")
def wanted(pytestconfig: pytest.Config) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((pytestconfig.rootpath / "provider.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="session")
def settings(wanted: dict[str, Any]) -> Settings:
    return load_settings(Path(wanted["config"]) if wanted["config"] else None, cwd=Path(wanted["cwd"]))


@pytest.fixture(scope="session")
def plugins(settings: Settings) -> Plugins:
    return load_plugins(settings)


def _context() -> Context:
    return Context(lambda: datetime.now(UTC), logging.getLogger("memservice"))


class TestStorage(StorageContract):
    @pytest.fixture
    def open_storage(self, wanted: dict[str, Any], settings: Settings, plugins: Plugins, tmp_path: Path) -> Callable[[], Storage]:
        uri = wanted["scratch"].replace("{path}", str(tmp_path / "store"))

        def opened() -> Storage:
            given = {**settings.db.as_mapping(), "uri": uri, "connection_uri": uri}
            storage: Storage = plugins.open_provider(plugins.storage(wanted["name"]), given, _context())
            storage.migrate()
            return storage

        return opened


class TestVectorIndex(VectorIndexContract):
    @pytest.fixture
    def open_index(self, wanted: dict[str, Any], settings: Settings, plugins: Plugins, tmp_path: Path) -> Callable[[], Engine[VectorIndex]]:
        given = {**settings.vector_store.as_mapping(), "url": wanted["scratch"].replace("{path}", str(tmp_path / "vectors"))}
        return lambda: Engine(plugins.open_provider(plugins.vector_index(wanted["name"]), given, _context()))


class TestEmbedder(EmbedderContract):
    @pytest.fixture(scope="session")
    def embedder(self, wanted: dict[str, Any], settings: Settings, plugins: Plugins) -> Embedder:
        provider = plugins.embedder(wanted["name"])
        opened: Embedder = plugins.open_provider(provider, connections.of_embedder(settings, provider.name), _context())
        return opened


class TestReasoner(ReasonerContract):
    @pytest.fixture(scope="session")
    def reasoner(self, wanted: dict[str, Any], plugins: Plugins) -> Reasoner:
        opened: Reasoner = plugins.open_provider(plugins.reasoner(wanted["name"]), {}, _context())
        return opened
