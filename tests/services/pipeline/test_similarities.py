"""The list by vectors of a search: messages beside the nearest ones that it also has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from memservice.domain.records import Message
from memservice.services import messages
from memservice.services.messages import Draft
from memservice.services.retrieval import search
from memservice.services.retrieval.explain import Explained
from memservice.services.retrieval.search import SearchOptions
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Purpose
from support.pipeline.fakes import LengthEmbedder
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

OpenPipeline = Callable[..., Pipeline]
OCTOBER = datetime(2023, 10, 4, 12, tzinfo=UTC)


class Plums(LengthEmbedder):
    """Texts with plums and questions are alike, and others are not."""

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        alike = [any(word in text for word in ("plums", "Which", "What")) for text in texts]
        return [np.array([1, 0] if each else [0, 1], np.float32) for each in alike]


def explain(pipeline: Pipeline, query: str, limit: int = 10) -> Explained[Message]:
    return search.explain(pipeline.rt, PRINCIPAL, WORKSPACE, SearchOptions(query, limit))


def open_with_plums(open_pipeline: OpenPipeline) -> Pipeline:
    embedder = Plums("lengths-1", Capability.SEMANTIC)
    return open_pipeline(embedder, EMBEDDER="lengths", SEARCH_DEPTH="1")


def similarities(explained: Explained[Message]) -> dict[str, tuple[int | None, float | None]]:
    """Text → rank by vectors and similarity, of the messages that have either."""
    return {
        row.content: (parts.vector.rank, parts.vector.similarity)
        for row, parts in explained.explained
        if parts.vector is not None
    }


def test_messages_of_a_day_that_the_query_names_are_in_the_list(
    open_pipeline: OpenPipeline,
) -> None:
    pipeline = open_with_plums(open_pipeline)
    drafts = [Draft(f"A heron, {each}.", "ann", created_at=OCTOBER) for each in ("big", "small")]
    messages.create(pipeline.rt, PRINCIPAL, WORKSPACE, "s", drafts)
    pipeline.say("t", *[("ann", f"{number} plums.") for number in range(30)])
    pipeline.say("u", ("ann", "A heron of today."))
    pipeline.work()
    of_day = {"A heron, big.", "A heron, small."}
    assert of_day.isdisjoint(similarities(explain(pipeline, "What about a heron?")))
    assert of_day <= similarities(explain(pipeline, "What was on 4 October 2023?")).keys()


def test_a_reply_is_in_the_list_without_a_similarity(open_pipeline: OpenPipeline) -> None:
    pipeline = open_with_plums(open_pipeline)
    pipeline.say("s", ("ann", "Which fruit?"), ("bob", "Never mind."), ("ann", "It rains."))
    for number in range(9):
        pipeline.say(f"t{number}", ("ann", f"{number} plums."))
    pipeline.work()
    explained = explain(pipeline, "What should I buy?")
    nearest = similarities(explained)
    assert (nearest["Which fruit?"], nearest["Never mind."]) == ((1, 1.0), (2, None))
    for parts in explained.parts:
        shares = [part.share for part in (parts.text, parts.vector) if part is not None]
        assert parts.score == sum(shares)
