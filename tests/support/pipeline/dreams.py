"""A store whose dreams a test decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memservice.domain.filters import equals
from memservice.domain.records import Collection, Conclusion, Task
from memservice.services import cards, dreams, workspaces
from memservice.services.dreams import DreamRequest
from memservice.services.tasks import kinds
from memservice.spi.reasoner import Consolidated, ConsolidateRequest
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

OpenPipeline = Callable[..., Pipeline]


class Dreamer(ScriptedReasoner):
    """Consolidates as a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.dream_requests: list[ConsolidateRequest] = []
        self.dream: Callable[[ConsolidateRequest], Consolidated] = lambda request: Consolidated()

    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        self.dream_requests.append(request)
        return self.dream(request)


class DreamingMemory:
    """A store whose dreams a test decides, with a short way to let them run."""

    def __init__(self, pipeline: Pipeline, reasoner: Dreamer) -> None:
        self.pipeline, self.reasoner = pipeline, reasoner

    def tell(self, *contents: str, peer: str = "alice", session: str = "s") -> list[Conclusion]:
        """Explicit conclusions, one a minute; all that the peer holds of itself."""
        for content in contents:
            self.pipeline.clock.advance(minutes=1)
            self.pipeline.say(session, (peer, content))
            self.pipeline.work()
        return self.pipeline.conclusions(peer)

    def dream(
        self, result: Consolidated | None = None, observer: str = "alice", **fields: Any
    ) -> Task:
        """Let a dream with this result run; the task."""
        if result is not None:
            self.reasoner.dream = lambda request: result
        kind = fields.pop("kind", dreams.OMNI)
        assert dreams.schedule(
            self.pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest(observer, kind, **fields)
        )
        self.pipeline.work()
        return self.pipeline.tasks(kinds.DREAM)[-1]

    def rows(self, **values: Any) -> dict[str, Conclusion]:
        """Every conclusion in whatever state, by content."""
        with self.pipeline.rt.storage.read() as tx:
            return {row.content: row for row in tx.rows.page(Conclusion, equals(**values))}

    def collection(self, observer: str = "alice", observed: str = "alice") -> Collection:
        with self.pipeline.rt.storage.read() as tx:
            (item,) = tx.rows.page(Collection, equals(observer=observer, observed=observed))
        return item

    def card(self, observer: str = "alice") -> list[str] | None:
        return cards.get(self.pipeline.rt, PRINCIPAL, WORKSPACE, observer)

    def write_card(self, *lines: str) -> None:
        cards.put(self.pipeline.rt, PRINCIPAL, WORKSPACE, "alice", None, lines)

    def configure(self, **config: Any) -> None:
        workspaces.update(self.pipeline.rt, PRINCIPAL, WORKSPACE, None, config)


NO_REFRESH = {"PEER_CARD_REFRESH": "false"}
"""So that dreams alone write cards here."""


@pytest.fixture
def memory(open_pipeline: OpenPipeline) -> DreamingMemory:
    reasoner = Dreamer()
    return DreamingMemory(open_pipeline(reasoner=reasoner, **NO_REFRESH), reasoner)
