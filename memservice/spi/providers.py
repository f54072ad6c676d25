"""Providers: what a plugin offers under a name, as small frozen records. `open` creates the object
itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memservice.spi.backups import Backups
    from memservice.spi.embedding import Embedder
    from memservice.spi.llm import LanguageModel, ModelCall
    from memservice.spi.reasoner import Reasoner
    from memservice.spi.storage import Storage
    from memservice.spi.vectors import VectorIndex
    from memservice.spi.webhooks import TransportFixture, WebhookTransport

from memservice.spi.capabilities import Capability

SPI_VERSION = 1
"""The version of everything in `memservice.spi` and `memservice.hookspecs`. Within a version there
are only additions: see "Compatibility" in docs/plugins.md."""


def _ignore(call: ModelCall) -> None:
    """The default of `Context.called`."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the core passes to `open`."""

    clock: Callable[[], datetime]
    """Returns the present time, timezone-aware UTC. Providers do not read the system clock."""
    logger: logging.Logger
    storage: Storage | None = None
    """The opened storage, for a provider whose `needs_storage` names it; else None."""
    called: Callable[[ModelCall], None] = _ignore
    """Report each call of a model here. It is cheap and does not raise. Do not call it inside a
    transaction."""


Settings = Mapping[str, Any]
"""A provider's settings, loaded by its own schema. A provider that declares a dataclass gets an
instance of it instead."""


@dataclass(frozen=True, slots=True)
class _Provider:
    name: str
    """Its name in the configuration: lower case, unique within its kind."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name.strip().lower())


@dataclass(frozen=True, slots=True)
class StorageProvider(_Provider):
    """A storage. The scheme of `DB_CONNECTION_URI` (before any `+driver`) is its name, or one of
    `schemes`.

    `settings` receives `uri` and the fields of the `DB_` section.
    """

    open: Callable[[Any, Context], Storage]
    settings: type[Any] | None = None
    schemes: tuple[str, ...] = ()
    capabilities: frozenset[Capability] = field(default_factory=frozenset)
    erase: Callable[[Any, Context], None] | None = None
    """Erases the whole store that `settings` name, if it is more than a file: the testing kit calls
    it for stores that it created. With a field `schema` in the settings, each test has a store of
    that name."""
    backups: Callable[[Settings, Context], Backups] | None = None
    """Backups of the store that `settings` name, for `memservice backup` and `restore`. It opens
    nothing yet."""
    modules: tuple[str, ...] = ()
    """What `open` imports. A server imports them once, before it forks, so that its processes share
    their memory: an import must open nothing and start no thread."""
    spi: int = SPI_VERSION


@dataclass(frozen=True, slots=True)
class VectorIndexProvider(_Provider):
    """A vector index, named by `VECTOR_STORE_TYPE`. `settings` receives the fields of the
    `VECTOR_STORE_` section."""

    open: Callable[[Any, Context], VectorIndex]
    settings: type[Any] | None = None
    needs_storage: str | None = None
    """The name of the storage that it is part of, if any."""
    capabilities: frozenset[Capability] = field(default_factory=frozenset)
    erase: Callable[[Any, Context], None] | None = None
    """Erases everything in the `namespace` that `settings` name: the testing kit calls it for
    namespaces that it created. None: the kit drops the spaces that it filled."""
    spi: int = SPI_VERSION


@dataclass(frozen=True, slots=True)
class LanguageModelProvider(_Provider):
    """A protocol of language models, named by `…MODEL_CONFIG__TRANSPORT`.

    `settings` receives the connection of the model: `api_key` and `base_url` (None if not set),
    `timeout` (seconds of one call, or None), and the mappings `extra_body`, `extra_headers` and
    `extra_query`. It is opened once for each connection.
    """

    open: Callable[[Any, Context], LanguageModel]
    settings: type[Any] | None = None
    capabilities: frozenset[Capability] = field(default_factory=frozenset)
    base_url: str | None = None
    """The address of its models unless a base URL is configured. With this default, a task counts
    as configured only if it has a key or a base URL; None: it needs neither."""
    connection_of: str | None = None
    """The transport whose key and base URL this one uses, unless it has its own."""
    spi: int = SPI_VERSION


@dataclass(frozen=True, slots=True)
class EmbedderProvider(_Provider):
    """An embedder, named by `EMBEDDER`. `settings` receives the fields of
    `EMBEDDING_MODEL_CONFIG__`."""

    open: Callable[[Any, Context], Embedder]
    settings: type[Any] | None = None
    capabilities: frozenset[Capability] = field(default_factory=frozenset)
    suggestion: str = ""
    """One line for the start: how to use it, and what for. Printed if the configured embedder is
    not `SEMANTIC`."""
    spi: int = SPI_VERSION


@dataclass(frozen=True, slots=True)
class ReasonerProvider(_Provider):
    """A reasoner, named by `REASONER`."""

    open: Callable[[Any, Context], Reasoner]
    settings: type[Any] | None = None
    capabilities: frozenset[Capability] = field(default_factory=frozenset)
    spi: int = SPI_VERSION


@dataclass(frozen=True, slots=True)
class WebhookTransportProvider(_Provider):
    """A way to deliver events to an endpoint, chosen by the scheme of the endpoint's URL."""

    open: Callable[[Any, Context], WebhookTransport]
    schemes: tuple[str, ...] = ()
    settings: type[Any] | None = None
    capabilities: frozenset[Capability] = field(default_factory=frozenset)
    world: Callable[[Path, Context], AbstractContextManager[TransportFixture]] | None = None
    """For the testing kit: a context manager (`@contextmanager def world(directory, context)`) that
    yields the opened transport with endpoints on this machine. `directory` is empty, and the
    test's own."""
    spi: int = SPI_VERSION


@dataclass(frozen=True, slots=True)
class PluginSettings(_Provider):
    """The settings of hooks: `[plugins.NAME]`, for a plugin that has more than providers."""

    settings: type[Any]
    """A marshmallow schema, or a dataclass with fields of plain types (`str`, `int`, `float`,
    `bool`, `Path`, `Literal`, dataclasses, and lists, tuples and dictionaries of them). The
    metadata `validate` of a field is a marshmallow validator; its `secrecy` is `public` if
    `memservice config show` may print the value, or `uri` if it may without password and keys.
    Without it, only numbers, switches and choices among words are printed."""
    use: Callable[[Any], None]
    """Called once in each process when plugins are loaded, before any event hook: with the mapping
    that the schema makes, or with the instance of the dataclass. It keeps the settings for the
    hooks. It may raise `ConfigurationError`, which prevents the start."""


Provider = (
    StorageProvider
    | VectorIndexProvider
    | LanguageModelProvider
    | EmbedderProvider
    | ReasonerProvider
    | WebhookTransportProvider
)
