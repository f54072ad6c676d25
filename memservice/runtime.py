"""Everything a process works with: the settings, and what the configured plugins opened."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from memservice.domain.configuration import Defaults
from memservice.domain.errors import ConfigurationError
from memservice.domain.failures import redacted_traceback
from memservice.plugins import Plugins, load_plugins
from memservice.reasoning import choice
from memservice.settings import Settings, connections, load_settings
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Embedder
from memservice.spi.llm import ModelCall
from memservice.spi.providers import Context, EmbedderProvider
from memservice.spi.reasoner import Reasoner
from memservice.spi.storage import Storage, Transaction
from memservice.spi.vectors import VectorIndex
from memservice.spi.webhooks import WebhookTransport
from memservice.telemetry.context import attributed
from memservice.telemetry.events import Event

if TYPE_CHECKING:
    from memservice.reasoning.apart.reasoner import Stop

log = logging.getLogger("memservice")


def utc_now() -> datetime:
    return datetime.now(UTC)


class Runtime:
    """The opened parts of one process. Make it after forking; close it once."""

    def __init__(
        self, settings: Settings, plugins: Plugins, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self.settings = settings
        self.plugins = plugins
        self.clock = clock
        self._lock = threading.Lock()
        self._embedders: dict[str, Embedder | None] = {}
        self._reasoners: dict[str, Reasoner] = {}
        self.reasoners: Mapping[str, str] = choice.choose(settings, plugins)
        """By task, the name of the reasoner that does it."""
        self._transports: dict[str, WebhookTransport] = {}
        self.call_listeners: list[Callable[[ModelCall], None]] = []
        """Told of each call of a model or an embedder, in the thread that made it."""
        self.event_listeners: list[Callable[[Event, datetime], None]] = []
        """Told of each event and of when it was emitted, in the thread that did."""
        self.work_listeners: list[Callable[[str, int | None, int], None]] = []
        """Told how many tasks of which kind and workspace were done."""
        self.observed = False
        """Whether somebody watches already (`services.events.wiring`)."""
        self.unwritten_tokens: Callable[[int, str], int] = lambda workspace_key, day: 0
        """Tokens that a workspace spent on a day by calls of this process that the store does not
        know of yet."""
        self.closing: list[Callable[[], None]] = []
        """Called when the runtime is closed, the last first, while the storage is still open."""
        plugins.check_options()
        uri = settings.db.connection_uri
        provider = plugins.storage(uri)
        self.storage: Storage = plugins.open_provider(
            provider, {"uri": uri, **settings.db.as_mapping()}, Context(clock, log)
        )
        self.vectors: VectorIndex = self._open_vectors()
        self.embedder: Embedder = self.open_embedder(settings.app.embedder)
        """By which new workspaces begin; those that have vectors stay with their own
        (`embedder_of`)."""
        self.defaults = Defaults(
            reasoning=settings.deriver.enabled,
            card=settings.peer_card.enabled,
            summary=settings.summary.enabled,
            dream=settings.dream.enabled,
            messages_per_short_summary=settings.summary.messages_per_short_summary,
            messages_per_long_summary=settings.summary.messages_per_long_summary,
        )

    def called(self, call: ModelCall) -> None:
        """A model was called. What a listener raises is logged: it is not the caller's."""
        call = attributed(call)
        for listener in self.call_listeners:
            try:
                listener(call)
            except Exception as error:
                log.error(
                    "a call of a model could not be noted: %s\n%s",
                    type(error).__name__,
                    redacted_traceback(error),
                )

    @property
    def hears_events(self) -> bool:
        """Whether anybody listens: what it takes to describe an event can be spared if not."""
        return bool(self.event_listeners) or self.plugins.hears_events

    def emit(self, event: Event) -> None:
        """Tell operators and plugins of something that happened. To be called once, after the
        commit of what it tells of, never inside `storage.write`, which may run its function again.
        Never raises: what a listener raises is logged, it is not the caller's."""
        if not self.hears_events:
            return
        now = self.clock()
        for listener in self.event_listeners:
            try:
                listener(event, now)
            except Exception as error:
                log.error(
                    "the event %s could not be noted: %s\n%s",
                    event.TYPE,
                    type(error).__name__,
                    redacted_traceback(error),
                )
        self.plugins.emit(event.TYPE, event.data)

    def worked(self, kind: str, workspace_key: int | None, number: int) -> None:
        """Tasks were done, and what came of them is stored. Never raises."""
        for listener in self.work_listeners:
            try:
                listener(kind, workspace_key, number)
            except Exception as error:
                log.error(
                    "tasks that were done could not be counted: %s\n%s",
                    type(error).__name__,
                    redacted_traceback(error),
                )

    def _open_vectors(self) -> VectorIndex:
        name = self.settings.vector_store.type
        if not name:
            if self.storage.vectors is None:
                known = ", ".join(self.plugins.names("vector index"))
                raise ConfigurationError(
                    f"The storage {self.storage.name!r} keeps no vectors itself: set "
                    "VECTOR_STORE_TYPE to one of "
                    f"{known or 'the vector indexes that a plugin offers (none is installed)'}."
                )
            return self.storage.vectors
        provider = self.plugins.vector_index(name)
        context = Context(
            self.clock, log, self.storage if provider.needs_storage == self.storage.name else None
        )
        section = self.settings.vector_store.as_mapping()
        section["namespace"] = section["namespace"] or self.settings.app.namespace
        opened: VectorIndex = self.plugins.open_provider(provider, section, context)
        return opened

    def open_embedder(self, name: str) -> Embedder:
        """The embedder of that name, opened as the settings say. Raises `ConfigurationError` if no
        plugin offers it."""
        opened = self._opened_embedder(self.plugins.embedder(name))
        self._embedders[opened.id] = opened
        return opened

    def _opened_embedder(self, provider: EmbedderProvider) -> Embedder:
        settings = connections.of_embedder(self.settings, provider.name)
        opened: Embedder = self.plugins.open_provider(
            provider, settings, Context(self.clock, log, called=self.called)
        )
        return opened

    @property
    def has_remote_embedder(self) -> bool:
        """Whether any embedder that this process has met may not be asked while a view is open."""
        return any(
            embedder is not None and Capability.INLINE not in embedder.capabilities
            for embedder in list(self._embedders.values())
        )

    def embedder_of(self, space_embedder: str) -> Embedder | None:
        """The embedder by whose vectors a space was built, if this process can open it as it is
        configured: a workspace may have been begun with another one than is chosen now, or moved to
        it (`memservice reembed`). Vectors stay their own; that is said once."""
        with self._lock:
            if space_embedder not in self._embedders:
                self._embedders[space_embedder] = embedder = self._other_embedder(space_embedder)
                kept = (
                    "which cannot be opened here: they are answered from text"
                    if embedder is None
                    else "which they stay with"
                )
                log.warning(
                    "some vectors are by the embedder %s, %s; configured is %s",
                    space_embedder,
                    kept,
                    self.embedder.id,
                )
            return self._embedders[space_embedder]

    def _other_embedder(self, wanted: str) -> Embedder | None:
        """An embedder of that id among all that are offered, those first that need neither a place
        nor a key."""
        offered = self.plugins.offers(EmbedderProvider)
        for provider in sorted(
            offered,
            key=lambda provider: (Capability.INLINE not in provider.capabilities, provider.name),
        ):
            try:
                opened = self._opened_embedder(provider)
            except (
                Exception
            ) as error:  # it was not chosen: whatever is wrong with it, the service does without
                log.debug(
                    "the embedder %s could not be opened: %s", provider.name, type(error).__name__
                )
                continue
            if opened.id == wanted:
                return opened
        return None

    def reasoner_for(self, task: str) -> Reasoner:
        """The reasoner of a task, by its name in `reasoning.choice`; opened at first use, since few
        routes of the API ask for one."""
        return self.reasoner(self.reasoners[task])

    def reasoner(self, name: str) -> Reasoner:
        """The reasoner of that name. Raises `ConfigurationError` if no plugin offers it."""
        with self._lock:
            if name not in self._reasoners:
                self._reasoners[name] = self._open_reasoner(name)
            return self._reasoners[name]

    def reason_apart(self, stop: Stop) -> None:
        """For a worker: ask reasoners that only compute in processes of their own from now on, and
        no more once `stop` is set."""
        from memservice.reasoning.apart.reasoner import Apart, place_of

        for name in {self.reasoners[task] for task in choice.BACKGROUND} - {choice.LLM}:
            provider = self.plugins.reasoner(name)
            location = place_of(provider)
            if location is None:
                continue
            apart = Apart(
                provider,
                location,
                self.settings.worker.cpu_seconds,
                stop,
                partial(self._open_reasoner, name),
            )
            self.closing.append(apart.close)
            with self._lock:
                self._reasoners[name] = apart

    def reasoner_can(self, task: str, capability: Capability) -> bool:
        """Whether the reasoner of a task has a capability. Opens nothing."""
        name = self.reasoners[task]
        return capability in (
            choice.LLM_CAPABILITIES
            if name == choice.LLM
            else self.plugins.reasoner(name).capabilities
        )

    def _open_reasoner(self, name: str) -> Reasoner:
        context = Context(self.clock, log, called=self.called)
        if name == choice.LLM:
            from memservice.reasoning.models import Models
            from memservice.reasoning.reasoner import LlmReasoner

            return LlmReasoner(Models(self.settings, self.plugins, context))
        opened: Reasoner = self.plugins.open_provider(self.plugins.reasoner(name), {}, context)
        return opened

    def webhook_transport(self, url: str) -> WebhookTransport:
        """The transport for this URL's scheme. Raises `ConfigurationError` if no plugin offers
        one."""
        provider = self.plugins.webhook_transport(url)
        with self._lock:
            if provider.name not in self._transports:
                settings = self.settings.webhook.as_mapping()
                self._transports[provider.name] = self.plugins.open_provider(
                    provider, settings, Context(self.clock, log)
                )
            return self._transports[provider.name]

    @property
    def vectors_transactional(self) -> bool:
        return Capability.TRANSACTIONAL in self.vectors.capabilities

    def beside(self, tx: Transaction) -> Transaction | None:
        """The view to hand to the vector index: the open one if the index lives in the storage."""
        return tx if self.vectors_transactional else None

    def close(self) -> None:
        try:
            while self.closing:
                self.closing.pop()()
        finally:
            self.storage.close()


def open_runtime(
    settings: Settings | None = None, clock: Callable[[], datetime] = utc_now, **overrides: Any
) -> Runtime:
    """Load settings and plugins as the environment says, and open what is configured."""
    settings = settings or load_settings(**overrides)
    return Runtime(settings, load_plugins(settings), clock)
