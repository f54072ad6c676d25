"""What a plugin offers: small frozen records that the configuration can name. The object behind one is made by `open`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marshmallow import Schema

    from memservice.spi.embedding import Embedder
    from memservice.spi.llm import LanguageModel
    from memservice.spi.reasoner import Reasoner
    from memservice.spi.storage import Storage
    from memservice.spi.vectors import VectorIndex
    from memservice.spi.webhooks import WebhookTransport

from memservice.spi.capabilities import Capability

SPI_VERSION = 0
"""The version of everything in `memservice.spi`. 0 = may still change; from 1 on only additions."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the core hands to `open`."""

    clock: Callable[[], datetime]
    """The present time, timezone-aware UTC. Providers never read the wall clock themselves."""
    logger: logging.Logger
    storage: Storage | None = None
    """The opened storage, for a provider whose `needs_storage` names it; else None."""


Settings = Mapping[str, Any]
"""A provider's settings, loaded by its own schema."""


@dataclass(frozen=True, slots=True)
class _Provider:
    name: str
    """By which the configuration names it: lower case, unique within its kind."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name.strip().lower())


@dataclass(frozen=True, slots=True)
class StorageProvider(_Provider):
    """A storage. The scheme of `DB_CONNECTION_URI` (before any `+driver`) is its name, or one of `schemes`.

    `settings` receives `uri` and the fields of the `DB_` section.
    """

    open: Callable[[Settings, Context], Storage]
    settings: type[Schema] | None = None
    schemes: tuple[str, ...] = ()
    capabilities: frozenset[Capability] = field(default_factory=frozenset)
    spi: int = SPI_VERSION


@dataclass(frozen=True, slots=True)
class VectorIndexProvider(_Provider):
    """A vector index, named by `VECTOR_STORE_TYPE`. `settings` receives the fields of the `VECTOR_STORE_` section."""

    open: Callable[[Settings, Context], VectorIndex]
    settings: type[Schema] | None = None
    needs_storage: str | None = None
    """The name of the storage that it lives in, if it does."""
    capabilities: frozenset[Capability] = field(default_factory=frozenset)
    spi: int = SPI_VERSION


@dataclass(frozen=True, slots=True)
class LanguageModelProvider(_Provider):
    """A protocol by which language models are reached, named by `…MODEL_CONFIG__TRANSPORT`."""

    open: Callable[[Settings, Context], LanguageModel]
    settings: type[Schema] | None = None
    capabilities: frozenset[Capability] = field(default_factory=frozenset)
    spi: int = SPI_VERSION


@dataclass(frozen=True, slots=True)
class EmbedderProvider(_Provider):
    """An embedder, named by `EMBEDDER`. `settings` receives the fields of `EMBEDDING_MODEL_CONFIG__`."""

    open: Callable[[Settings, Context], Embedder]
    settings: type[Schema] | None = None
    capabilities: frozenset[Capability] = field(default_factory=frozenset)
    spi: int = SPI_VERSION


@dataclass(frozen=True, slots=True)
class ReasonerProvider(_Provider):
    """A reasoner, named by `REASONER`."""

    open: Callable[[Settings, Context], Reasoner]
    settings: type[Schema] | None = None
    capabilities: frozenset[Capability] = field(default_factory=frozenset)
    spi: int = SPI_VERSION


@dataclass(frozen=True, slots=True)
class WebhookTransportProvider(_Provider):
    """A way to hand events to an endpoint, chosen by the scheme of the endpoint's URL."""

    open: Callable[[Settings, Context], WebhookTransport]
    schemes: tuple[str, ...] = ()
    settings: type[Schema] | None = None
    capabilities: frozenset[Capability] = field(default_factory=frozenset)
    spi: int = SPI_VERSION


Provider = StorageProvider | VectorIndexProvider | LanguageModelProvider | EmbedderProvider | ReasonerProvider | WebhookTransportProvider
