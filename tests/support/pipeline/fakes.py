"""Providers and listeners of which a test decides what they do, offered the way a plugin offers
them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from memservice.domain.errors import IndexUnavailable
from memservice.domain.records import Conclusion, Message, Space
from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Purpose
from memservice.spi.index_filter import IndexFilter
from memservice.spi.providers import EmbedderProvider, ReasonerProvider, VectorIndexProvider
from memservice.spi.reasoner import (
    AnswerRequest,
    Consolidated,
    ConsolidateRequest,
    Derived,
    DeriveRequest,
    Spent,
    Statement,
    Summarized,
    SummarizeRequest,
)
from memservice.spi.vectors import VectorHit, VectorRow

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction
    from memservice.spi.vectors import Vector


class ScriptedReasoner:
    """Takes each sentence of the observed peer's new messages for a statement; a summary says how
    many messages it read.

    `act` is called first and may wait, or raise.
    """

    name = "scripted"

    def __init__(self, *capabilities: Capability) -> None:
        self.capabilities = frozenset(capabilities)
        self.requests: list[DeriveRequest] = []
        self.summaries: list[SummarizeRequest] = []
        self.act: Callable[[DeriveRequest], None] | None = None
        self.act_on_summary: Callable[[SummarizeRequest], None] | None = None

    def derive(self, request: DeriveRequest) -> Derived:
        self.requests.append(request)
        if self.act is not None:
            self.act(request)
        own = [
            message
            for message in request.messages
            if message.new and message.author == request.observed
        ]
        statements = [
            (sentence, message.key)
            for message in own
            for sentence in message.content.splitlines()
            if sentence.strip()
        ]
        return Derived(
            [Statement(sentence, (key,)) for sentence, key in statements], Spent(model="scripted-1")
        )

    def summarize(self, request: SummarizeRequest) -> Summarized:
        self.summaries.append(request)
        if self.act_on_summary is not None:
            self.act_on_summary(request)
        return Summarized(
            f"{request.kind} of {len(request.messages)}, {request.messages[0].content} to "
            f"{request.messages[-1].content}"
        )

    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        return Consolidated()

    def answer(self, request: AnswerRequest) -> Iterable[str]:
        return iter(())

    @hookimpl
    def memservice_reasoners(self) -> Iterable[ReasonerProvider]:
        yield ReasonerProvider(
            name=self.name,
            open=lambda settings, context: self,  # type: ignore[arg-type, return-value]
            capabilities=self.capabilities,
        )

    def new_messages(self) -> list[list[str]]:
        """What was new in each request, in order."""
        return [
            [message.content for message in request.messages if message.new]
            for request in self.requests
        ]


class LengthEmbedder:
    """A slow embedder: vectors depend on the length of a text and its first letter."""

    dimension = 2
    duplicate_distance: float | None = None

    def __init__(self, id: str = "lengths-1", *capabilities: Capability) -> None:
        self.id = id
        self.capabilities = frozenset(capabilities)
        self.calls: list[list[str]] = []
        self.fails = 0

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        self.calls.append(list(texts))
        if self.fails:
            self.fails -= 1
            raise ConnectionError("the embedder is away")
        rows = [np.array([len(text), ord(text[:1] or " ")], np.float32) for text in texts]
        return [row / np.float32(np.linalg.norm(row)) for row in rows]

    @hookimpl
    def memservice_embedders(self) -> Iterable[EmbedderProvider]:
        yield EmbedderProvider(
            name="lengths", open=lambda settings, context: self, capabilities=self.capabilities
        )


class ExternalIndex:
    """A vector index that lives elsewhere: it is only ever called after commit, and without a
    view."""

    capabilities: frozenset[Capability] = frozenset()

    def __init__(self) -> None:
        self.rows: dict[tuple[int, int], VectorRow] = {}
        """By space key and row key."""
        self.away = False
        self.calls = 0

    def _look(self, tx: Transaction | None) -> None:
        assert tx is None
        self.calls += 1
        if self.away:
            raise IndexUnavailable("the index is away")

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
        self._look(tx)
        self.rows.update({(space.key, row.key): row for row in rows})

    def delete(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> None:
        self._look(tx)
        for key in keys:
            self.rows.pop((space.key, key), None)

    def query(
        self,
        tx: Transaction | None,
        space: Space,
        vector: Vector,
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int] | None = None,
    ) -> list[VectorHit]:
        self._look(tx)
        hits = [
            VectorHit(row.key, float(row.vector @ vector))
            for (space_key, _), row in self.rows.items()
            if space_key == space.key
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))[:k]

    def fetch(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> dict[int, Vector]:
        self._look(tx)
        return {
            key: self.rows[space.key, key].vector for key in keys if (space.key, key) in self.rows
        }

    def keys(
        self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
    ) -> list[int]:
        self._look(tx)
        return sorted(
            key for space_key, key in self.rows if space_key == space.key and key > after
        )[:limit]

    def count(self, tx: Transaction | None, space: Space) -> int:
        self._look(tx)
        return sum(1 for space_key, _ in self.rows if space_key == space.key)

    def drop(self, tx: Transaction | None, space: Space) -> None:
        self._look(tx)
        self.rows = {
            space_key: row for space_key, row in self.rows.items() if space_key[0] != space.key
        }

    @hookimpl
    def memservice_vector_indexes(self) -> Iterable[VectorIndexProvider]:
        yield VectorIndexProvider(name="outside", open=lambda settings, context: self)


class Listener:
    """Has a word in what is stored."""

    def __init__(self) -> None:
        self.on_message: Callable[[Message], Message | None] = lambda message: None
        self.on_conclusion: Callable[[Conclusion], bool | None] = lambda conclusion: None

    @hookimpl
    def memservice_message_storing(self, message: Message) -> Message | None:
        return self.on_message(message)

    @hookimpl
    def memservice_conclusion_storing(self, conclusion: Conclusion) -> bool | None:
        return self.on_conclusion(conclusion)
