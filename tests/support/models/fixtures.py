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
from memservice.testing import badmodel
from memservice.testing.model_server import KEY, Request, Server, scripted
from support.models.request_schemas import violations


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    return load_plugins()


EXTRA_FIELDS = {"mine", "service_tier"}
"""Fields that tests send through `extra_body`."""
NOT_IN_RESPONSES = {"seed", "stop", "frequency_penalty", "presence_penalty"}
"""Options that the Responses API does not have. Other servers with this protocol do, so they are
sent if they are set, and left out after a rejection."""


@pytest.fixture
def server() -> Iterator[Server]:
    """Its requests to language models must fit the public schemas of their APIs."""
    with scripted() as running:
        yield running
    for request in running.requests:
        if "embed" not in request.path.lower():
            is_responses = request.path.endswith("/responses")
            ignored = EXTRA_FIELDS | (NOT_IN_RESPONSES if is_responses else set())
            body = {name: value for name, value in request.body.items() if name not in ignored}
            assert violations(request.path, body) == []


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
        options = {"api_key": KEY, "base_url": server.url + path, **settings}
        model: LanguageModel = plugins.open_provider(plugins.language_model(name), options, context)
        return model

    return opened


@pytest.fixture
def open_embedder(plugins: Plugins, server: Server, context: Context) -> OpenEmbedder:
    def opened(name: str, path: str = "", **settings: Any) -> Embedder:
        options = {"api_key": KEY, "base_url": server.url + path, **settings}
        embedder: Embedder = plugins.open_provider(plugins.embedder(name), options, context)
        return embedder

    return opened


@pytest.fixture(autouse=True)
def requests_to_models(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Any]]]:
    """Paths and bodies of the requests to models that misbehave. At the end of a test each must fit
    the public schema of its API."""
    requests: list[tuple[str, Any]] = []
    read = badmodel.read_request

    def recording(raw: Request) -> badmodel.ModelRequest:
        requests.append((raw.path, raw.body))
        return read(raw)

    monkeypatch.setattr(badmodel, "read_request", recording)
    yield requests
    assert [text for path, body in requests for text in violations(path, body)] == []
