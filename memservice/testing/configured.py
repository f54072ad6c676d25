"""The contract suites for a provider of an installation, for `memservice plugins check`. Authors of
plugins use the suites directly.

`provider.json` in pytest's root names the provider and, for storages and vector indexes, a location
for test data, in which every test has its own part (`memservice.testing.scratch`). The configured
store is never used. Before the first test the provider is opened and does one small operation; if
that fails, the reason goes into `fault.txt` and the run ends.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memservice.domain.errors import MemserviceError
from memservice.plugins import Plugins, load_plugins
from memservice.settings import Settings, connections, load_settings
from memservice.settings.models import ModelChoice
from memservice.spi.embedding import Embedder
from memservice.spi.llm import LanguageModel, ModelFailure
from memservice.spi.providers import Context, WebhookTransportProvider
from memservice.spi.reasoner import Reasoner
from memservice.spi.storage import Storage
from memservice.spi.vectors import VectorIndex
from memservice.testing.embedding import EmbedderContract
from memservice.testing.indexes import Engine
from memservice.testing.llm_live import LiveModelContract
from memservice.testing.reasoner import ReasonerContract
from memservice.testing.scratch import Scratch
from memservice.testing.storage import StorageContract
from memservice.testing.vectors import OURS, SPACES, VectorIndexContract
from memservice.testing.webhooks import TransportFixture, WebhookTransportContract


@pytest.fixture(scope="session")
def check_options(pytestconfig: pytest.Config) -> dict[str, Any]:
    arguments: dict[str, Any] = json.loads(
        (pytestconfig.rootpath / "provider.json").read_text(encoding="utf-8")
    )
    return arguments


@pytest.fixture(scope="session")
def settings(check_options: dict[str, Any]) -> Settings:
    return load_settings(
        Path(check_options["config"]) if check_options["config"] else None,
        cwd=Path(check_options["cwd"]),
    )


@pytest.fixture(scope="session")
def plugins(settings: Settings) -> Plugins:
    return load_plugins(settings)


def _context() -> Context:
    return Context(lambda: datetime.now(UTC), logging.getLogger("memservice"))


@contextmanager
def _opening(pytestconfig: pytest.Config) -> Iterator[None]:
    """End the run if a provider cannot be opened: its driver is missing, its server is unreachable,
    its settings are wrong."""
    try:
        yield
    except Exception as error:  # a provider is a plugin and may fail in any way
        is_expected = isinstance(error, (MemserviceError, ModelFailure))
        reason = str(error) if is_expected else f"{type(error).__name__}: {error}"
        (pytestconfig.rootpath / "fault.txt").write_text(reason, encoding="utf-8")
        pytest.exit(reason, returncode=pytest.ExitCode.USAGE_ERROR)


@pytest.fixture(scope="session")
def storage_scratch(
    check_options: dict[str, Any],
    settings: Settings,
    plugins: Plugins,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> Scratch:
    with _opening(pytestconfig):
        scratch = Scratch(
            plugins,
            plugins.storage(check_options["name"]),
            settings.db.as_mapping(),
            check_options["scratch"],
            _context(),
        )
        with scratch.one(tmp_path_factory.mktemp("first")) as open_one:
            opened: Storage = open_one()
            opened.migrate()
            opened.close()
    return scratch


class TestStorage(StorageContract):
    @pytest.fixture
    def open_storage(
        self, storage_scratch: Scratch, tmp_path: Path
    ) -> Iterator[Callable[[], Storage]]:
        with storage_scratch.one(tmp_path) as open_one:

            def opened() -> Storage:
                storage: Storage = open_one()
                storage.migrate()
                return storage

            yield opened


@pytest.fixture(scope="session")
def index_scratch(
    check_options: dict[str, Any],
    settings: Settings,
    plugins: Plugins,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> Scratch:
    with _opening(pytestconfig):
        provider = plugins.vector_index(check_options["name"])
        scratch = Scratch(
            plugins,
            provider,
            settings.vector_store.as_mapping(),
            check_options["scratch"],
            _context(),
        )
        with scratch.one(tmp_path_factory.mktemp("first")) as open_one:
            open_one().count(None, OURS)
    return scratch


class TestVectorIndex(VectorIndexContract):
    @pytest.fixture
    def open_index(
        self,
        index_scratch: Scratch,
        check_options: dict[str, Any],
        plugins: Plugins,
        tmp_path: Path,
    ) -> Iterator[Callable[[], Engine[VectorIndex]]]:
        with index_scratch.one(tmp_path) as open_one:
            yield lambda: Engine(open_one())
            if plugins.vector_index(check_options["name"]).erase is None:
                index: VectorIndex = open_one()
                for space in SPACES:
                    index.drop(None, space)


@pytest.fixture(scope="session")
def opened_embedder(
    check_options: dict[str, Any],
    settings: Settings,
    plugins: Plugins,
    pytestconfig: pytest.Config,
) -> Embedder:
    with _opening(pytestconfig):
        provider = plugins.embedder(check_options["name"])
        opened: Embedder = plugins.open_provider(
            provider, connections.of_embedder(settings, provider.name), _context()
        )
        opened.embed(["memservice plugins check"])
    return opened


class TestEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self, opened_embedder: Embedder) -> Embedder:
        return opened_embedder


@pytest.fixture(scope="session")
def opened_reasoner(
    check_options: dict[str, Any], plugins: Plugins, pytestconfig: pytest.Config
) -> Reasoner:
    with _opening(pytestconfig):
        opened: Reasoner = plugins.open_provider(
            plugins.reasoner(check_options["name"]), {}, _context()
        )
    return opened


class TestReasoner(ReasonerContract):
    @pytest.fixture
    def reasoner(self, opened_reasoner: Reasoner) -> Reasoner:
        return opened_reasoner


def _models(group: Any) -> Iterator[ModelChoice]:
    """Every model that the settings name."""
    if isinstance(group, ModelChoice):
        yield group
    elif is_dataclass(group):
        for field in fields(group):
            yield from _models(getattr(group, field.name))


@pytest.fixture(scope="session")
def opened_model(
    check_options: dict[str, Any],
    settings: Settings,
    plugins: Plugins,
    pytestconfig: pytest.Config,
) -> LanguageModel:
    with _opening(pytestconfig):
        name, model_name = check_options["name"], check_options["model"]
        choice = next(
            each for each in _models(settings) if (each.transport, each.model) == (name, model_name)
        )
        provider = plugins.language_model(name)
        connection = connections.connection(
            settings.llm, name, choice.overrides, provider.connection_of
        )
        opened: LanguageModel = plugins.open_provider(provider, connection, _context())
        opened.complete(LiveModelContract.ask(model_name))
    return opened


class TestLanguageModel(LiveModelContract):
    @pytest.fixture
    def model(self, opened_model: LanguageModel) -> LanguageModel:
        return opened_model

    @pytest.fixture
    def named(self, check_options: dict[str, Any]) -> str:
        return str(check_options["model"])


@pytest.fixture(scope="session")
def transport_provider(
    check_options: dict[str, Any],
    plugins: Plugins,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> WebhookTransportProvider:
    with _opening(pytestconfig):
        provider = plugins.webhook_transport(check_options["name"])
        assert provider.world is not None, "the command checks this before"
        with provider.world(tmp_path_factory.mktemp("first"), _context()):
            pass
    return provider


class TestWebhookTransport(WebhookTransportContract):
    @pytest.fixture
    def world(
        self, transport_provider: WebhookTransportProvider, tmp_path: Path
    ) -> Iterator[TransportFixture]:
        assert transport_provider.world is not None
        with transport_provider.world(tmp_path, _context()) as transport_fixture:
            yield transport_fixture
