"""Everything a process works with: the settings, and what the configured plugins opened."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from memservice.domain.configuration import Defaults
from memservice.domain.errors import ConfigurationError
from memservice.plugins import Plugins, load_plugins
from memservice.settings import Settings, load_settings
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Embedder
from memservice.spi.providers import Context
from memservice.spi.reasoner import Reasoner
from memservice.spi.storage import Storage, View
from memservice.spi.vectors import VectorIndex
from memservice.spi.webhooks import WebhookTransport

log = logging.getLogger("memservice")


def utc_now() -> datetime:
    return datetime.now(UTC)


class Runtime:
    """The opened parts of one process. Make it after forking; close it once."""

    def __init__(self, settings: Settings, plugins: Plugins, clock: Callable[[], datetime] = utc_now) -> None:
        self.settings = settings
        self.plugins = plugins
        self.clock = clock
        self._lock = threading.Lock()
        self._embedders: dict[str, Embedder] = {}
        self._reasoner: Reasoner | None = None
        self._transports: dict[str, WebhookTransport] = {}
        uri = settings.db.connection_uri
        provider = plugins.storage(uri)
        self.storage: Storage = plugins.open_provider(provider, {"uri": uri, **settings.db.as_mapping()}, Context(clock, log))
        self.vectors: VectorIndex = self._open_vectors()
        self.embedder: Embedder = self._open_embedder(settings.app.embedder)
        self.defaults = Defaults(
            reasoning=settings.deriver.enabled,
            card=settings.peer_card.enabled,
            summary=settings.summary.enabled,
            dream=settings.dream.enabled,
            messages_per_short_summary=settings.summary.messages_per_short_summary,
            messages_per_long_summary=settings.summary.messages_per_long_summary,
        )

    def _open_vectors(self) -> VectorIndex:
        name = self.settings.vector_store.type
        if not name:
            if self.storage.vectors is None:
                raise ConfigurationError(
                    f"The storage {self.storage.name!r} keeps no vectors itself: set VECTOR_STORE_TYPE to one of "
                    f"{', '.join(self.plugins.names('vector index')) or 'the vector indexes that a plugin offers (none is installed)'}."
                )
            return self.storage.vectors
        provider = self.plugins.vector_index(name)
        context = Context(self.clock, log, self.storage if provider.needs_storage == self.storage.name else None)
        opened: VectorIndex = self.plugins.open_provider(provider, self.settings.vector_store.as_mapping(), context)
        return opened

    def _open_embedder(self, name: str) -> Embedder:
        provider = self.plugins.embedder(name)
        opened: Embedder = self.plugins.open_provider(provider, self.settings.embedding.model_config.as_mapping(), Context(self.clock, log))
        self._embedders[opened.id] = opened
        return opened

    def embedder_of(self, space_embedder: str) -> Embedder | None:
        """The embedder by whose vectors a space was built, if this process can open it."""
        return self._embedders.get(space_embedder)

    @property
    def reasoner(self) -> Reasoner:
        """The configured reasoner; opened at first use, since the API asks for it only in a few routes."""
        with self._lock:
            if self._reasoner is None:
                name = self.settings.app.reasoner
                provider = self.plugins.reasoner("extractive" if name == "auto" else name)
                self._reasoner = self.plugins.open_provider(provider, {}, Context(self.clock, log))
            return self._reasoner

    def webhook_transport(self, url: str) -> WebhookTransport:
        """The transport for this URL's scheme. Raises `ConfigurationError` if no plugin offers one."""
        provider = self.plugins.webhook_transport(url)
        with self._lock:
            if provider.name not in self._transports:
                settings = self.settings.webhook.as_mapping()
                self._transports[provider.name] = self.plugins.open_provider(provider, settings, Context(self.clock, log))
            return self._transports[provider.name]

    @property
    def vectors_transactional(self) -> bool:
        return Capability.TRANSACTIONAL in self.vectors.capabilities

    def beside(self, view: View) -> View | None:
        """The view to hand to the vector index: the open one if the index lives in the storage."""
        return view if self.vectors_transactional else None

    def close(self) -> None:
        self.storage.close()


def open_runtime(settings: Settings | None = None, clock: Callable[[], datetime] = utc_now, **overrides: Any) -> Runtime:
    """Load settings and plugins as the environment says, and open what is configured."""
    settings = settings or load_settings(**overrides)
    return Runtime(settings, load_plugins(settings), clock)
