"""Fixtures: a scripted model server, and models that talk to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from memservice.plugins import Plugins, load_plugins
from memservice.spi.embedding import Embedder
from memservice.spi.llm import LanguageModel, ModelCall
from memservice.spi.providers import Context
from memservice.testing.model_server import KEY, Server, scripted


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    return load_plugins()


@pytest.fixture
def server() -> Iterator[Server]:
    with scripted() as running:
        yield running


@pytest.fixture
def calls() -> list[ModelCall]:
    """The calls that embedders have reported."""
    return []


@pytest.fixture
def context(calls: list[ModelCall]) -> Context:
    return Context(lambda: datetime.now(UTC), logging.getLogger("memservice"), called=calls.append)


OpenModel = Callable[..., LanguageModel]
OpenEmbedder = Callable[..., Embedder]


@pytest.fixture
def open_model(plugins: Plugins, server: Server, context: Context) -> OpenModel:
    """Open the language model of that protocol against the scripted server; `path` is that of its
    base URL."""

    def opened(name: str, path: str = "", **settings: Any) -> LanguageModel:
        given = {"api_key": KEY, "base_url": server.url + path, **settings}
        model: LanguageModel = plugins.open_provider(plugins.language_model(name), given, context)
        return model

    return opened


@pytest.fixture
def open_embedder(plugins: Plugins, server: Server, context: Context) -> OpenEmbedder:
    def opened(name: str, path: str = "", **settings: Any) -> Embedder:
        given = {"api_key": KEY, "base_url": server.url + path, **settings}
        embedder: Embedder = plugins.open_provider(plugins.embedder(name), given, context)
        return embedder

    return opened
