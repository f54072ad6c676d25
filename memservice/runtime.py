"""Everything a process works with: the settings, and what the configured plugins opened."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from memservice.domain.configuration import Defaults
from memservice.domain.errors import ConfigurationError
from memservice.domain.records import Message
from memservice.plugins import Plugins
from memservice.reasoning import choice
from memservice.settings import Settings, connections
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Embedder
from memservice.spi.fair_locks import FairLocks
from memservice.spi.providers import Context, EmbedderProvider
from memservice.spi.reasoner import Reasoner
from memservice.spi.storage import Replicated, Storage, Transaction
from memservice.spi.vectors import VectorIndex
from memservice.spi.webhooks import WebhookTransport
from memservice.telemetry.bus import Events
from memservice.telemetry.events import Event
from memservice.timed_calls import TimedCalls

if TYPE_CHECKING:
    from memservice.reasoning.apart.reasoner import Stop
    from memservice.spi.vectors import Vector
    from memservice.telemetry.metrics import Metrics

log = logging.getLogger("memservice")

WRITERS_OF_SESSION = 2
"""Requests of a process that store messages in the same session at a time. Only one can have the
lock of the session's row; the other one prepares meanwhile."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class DaySpending(Struct):
    """Tokens of one workspace, or of all, on one day, as last read from the store."""

    day: str
    tokens: int
    """0 without a limit: nothing was summed."""
    limit: int | None
    """Tokens per day; None: no limit."""
    read_at: float
    """Of `time.monotonic`."""
    reported: bool = False
    """Whether the log says that the budget is reached."""


class CountedMessages(Struct, frozen=True):
    """Messages of one session that were counted while peers were being erased."""

    erased: tuple[int, ...]
    """Keys of the peers whose messages were left out."""
    last: int
    """Key of the last message that was counted."""
    seq: int
    """Its position then."""
    total: int
    gap: int = 0
    """Key of the newest task then that closes a gap in the session; 0 if there was none."""


class CountedMatches(Struct, frozen=True):
    """Messages of one session that match a filter, as they were counted."""

    total: int
    through: int
    """Number of messages of the session then."""
    revision: int
    """The session's revision then."""
    counted_at: float
    """When all were counted and not only added ones, of `time.monotonic`."""


class FewMatches(Struct, frozen=True):
    """The few messages of one session that match a filter."""

    seqs: Sequence[int]
    """Their positions, ascending."""
    through: int
    """As in `CountedMatches`, as are the following."""
    revision: int
    counted_at: float


class RememberedPage(Struct, frozen=True):
    """Messages of one session at a range of positions."""

    revision: int
    """The session's revision then."""
    items: Sequence[Message] | None
    """None if the page was only read once."""
    read_at: float
    """Of `time.monotonic`."""


class RememberedMatches(Struct, frozen=True):
    """What a process remembers of the messages of sessions: of filters, by uid of the session and
    digest of the filter, and of positions."""

    totals: dict[tuple[str, bytes], CountedMatches] = field(default_factory=dict)
    """For `services.matching_totals`."""
    few: dict[tuple[str, bytes], FewMatches] = field(default_factory=dict)
    """For `services.few_matches`."""
    pages: dict[tuple[str, int, int], RememberedPage] = field(default_factory=dict)
    """For `services.remembered_pages`, by uid of the session, first and last position."""


class RememberedVector(Struct, frozen=True):
    """The vector of a query, by an embedder that is not inline."""

    vector: Vector
    read_at: float
    """Of `time.monotonic`."""


def _reading_of(storage: Storage) -> Callable[[Callable[[], Any]], Any]:
    """As `memservice.spi.storage.Replicated.reading`; without replicas, calls the function."""
    return storage.reading if isinstance(storage, Replicated) else lambda fn: fn()


def _defaults_of(settings: Settings) -> Defaults:
    return Defaults(
        reasoning=settings.deriver.enabled,
        card=settings.peer_card.enabled,
        summary=settings.summary.enabled,
        dream=settings.dream.enabled,
        messages_per_short_summary=settings.summary.messages_per_short_summary,
        messages_per_long_summary=settings.summary.messages_per_long_summary,
    )


def _all_written(workspace_key: int | None, day: str) -> int:
    return 0


class Runtime:
    """The opened parts of one process, as `memservice.compose.open_runtime` puts them together.
    Open it after forking; close it once."""

    def __init__(
        self,
        settings: Settings,
        plugins: Plugins,
        clock: Callable[[], datetime],
        *,
        storage: Storage,
        events: Events,
        closing: ExitStack,
        metrics: Metrics | None = None,
        unwritten_tokens: Callable[[int | None, str], int] | None = None,
        stop: Stop | None = None,
    ) -> None:
        """`closing` closes the storage and what else was opened before the runtime.
        `unwritten_tokens` takes a workspace's key (None: all) and a day, and returns the tokens of
        this process's calls that are not in the store yet. `stop` is a worker's: reasoners that
        only compute then run in processes of their own, until it is set."""
        self.settings = settings
        self.plugins = plugins
        self.clock = clock
        self.storage = storage
        self.events = events
        self.metrics = metrics
        self.unwritten_tokens = unwritten_tokens or _all_written
        self.reading = _reading_of(storage)
        self.day_spending: dict[int | None, DaySpending] = {}
        """By workspace, None for all together, for `services.usage.budget`."""
        self.retrying: dict[str, object] = {}
        """By language model, the attempt of this process that repeats failed calls of it."""
        self.models_answered: dict[str, float] = {}
        """By language model, when it last answered in this process (monotonic seconds)."""
        self.names: dict[tuple[type[object], int], str] = {}
        """Names of workspaces, sessions and peers, by record and key, for the log."""
        self.visible_totals: dict[int, CountedMessages] = {}
        """By key of the session, for `services.visible_totals`."""
        self.matches = RememberedMatches()
        self.query_vectors: dict[tuple[str, bytes], RememberedVector] = {}
        """By id of the embedder and digest of the text, for `retrieval.query_embedding`."""
        self.session_writers = FairLocks(WRITERS_OF_SESSION)
        """By the names of workspace and session, for `services.messages`."""
        self.embedder_calls = TimedCalls("embed-query")
        self.vector_calls = TimedCalls("nearest")
        self.reasoners: Mapping[str, str] = choice.choose(settings, plugins)
        """By task, the name of the reasoner that does it."""
        self._stop = stop
        self._lock = threading.Lock()
        self._embedders: dict[str, Embedder | None] = {}
        self._reasoners: dict[str, Reasoner] = {}
        self._transports: dict[str, WebhookTransport] = {}
        self._closing = closing
        self._closing.callback(self.embedder_calls.close)
        self._closing.callback(self.vector_calls.close)
        self.vectors: VectorIndex = self._open_vectors()
        self.embedder: Embedder = self.open_embedder(settings.app.embedder)
        """By which new workspaces begin; those that have vectors stay with their own
        (`embedder_of`)."""
        self.defaults = _defaults_of(settings)

    @property
    def hears_events(self) -> bool:
        """As `Events.has_listeners`."""
        return self.events.has_listeners

    def emit(self, event: Event) -> None:
        """As `Events.emit`: once, after the commit."""
        self.events.emit(event)

    def _open_vectors(self) -> VectorIndex:
        name = self.settings.vector_store.type
        if not name:
            if self.storage.vectors is None:
                names = ", ".join(self.plugins.names("vector index"))
                raise ConfigurationError(
                    f"The storage {self.storage.name!r} keeps no vectors itself: set "
                    "VECTOR_STORE_TYPE to one of "
                    f"{names or 'the vector indexes that a plugin offers (none is installed)'}."
                )
            return self.storage.vectors
        provider = self.plugins.vector_index(name)
        context = Context(self.clock, log, None if provider.needs_storage is None else self.storage)
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
            provider, settings, Context(self.clock, log, called=self.events.called)
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
                effect = (
                    "which cannot be opened here: their searches use text only"
                    if embedder is None
                    else "which remains in use for them"
                )
                log.warning(
                    "some vectors come from the embedder %s, %s; the configured embedder is %s",
                    space_embedder,
                    effect,
                    self.embedder.id,
                )
            return self._embedders[space_embedder]

    def _other_embedder(self, embedder_id: str) -> Embedder | None:
        """An embedder of that id among all that are offered, those first that need neither a place
        nor a key."""
        offered = self.plugins.providers_of(EmbedderProvider)
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
            if opened.id == embedder_id:
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

    def open_background_models(self) -> None:
        """Open the language models of a worker's tasks: at its start it has time for it."""
        for task in choice.BACKGROUND:
            if self.reasoners[task] != choice.LLM:
                continue
            try:
                self.reasoner_for(task).open_model(task)  # type: ignore[attr-defined]
            except Exception as error:  # of a plugin: the first task that needs it reports it
                log.debug("the model for %s cannot be opened: %s", task, type(error).__name__)

    def reasoner_can(self, task: str, capability: Capability) -> bool:
        """Whether the reasoner of a task has a capability. Opens nothing."""
        name = self.reasoners[task]
        return capability in (
            choice.LLM_CAPABILITIES
            if name == choice.LLM
            else self.plugins.reasoner(name).capabilities
        )

    def _open_reasoner(self, name: str) -> Reasoner:
        if self._stop is None or name == choice.LLM:
            return self._open_reasoner_here(name)
        from memservice.reasoning.apart.reasoner import Apart, location_of

        provider = self.plugins.reasoner(name)
        location = location_of(provider)
        if location is None or name not in {self.reasoners[task] for task in choice.BACKGROUND}:
            return self._open_reasoner_here(name)
        apart = Apart(
            provider,
            location,
            self.settings.worker.cpu_seconds,
            self._stop,
            partial(self._open_reasoner_here, name),
        )
        self._closing.callback(apart.close)
        return apart

    def _open_reasoner_here(self, name: str) -> Reasoner:
        context = Context(self.clock, log, called=self.events.called)
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
        """Close all parts, the last one first: what is buffered is written before the storage
        closes. May be called twice."""
        self._closing.close()
