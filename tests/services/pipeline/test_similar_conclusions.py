"""If no message has the words of a query, the most similar derived conclusion leads to messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from memservice.domain.records import Conclusion, Message
from memservice.services.retrieval import bridges, search
from memservice.services.retrieval.explain import Explained
from memservice.services.retrieval.search import SearchOptions
from memservice.services.retrieval.trace import SourcePart
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Purpose
from support.pipeline.fakes import LengthEmbedder
from support.pipeline.pipeline import Pipeline
from support.services.services import ME, WORKSPACE, Clock, Services

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

OpenPipeline = Callable[..., Pipeline]

QUESTION = "Should we take ann along to the opera?"
REHEARSAL = "Rehearsal, forty voices."
PIANIST = "I turn pages for a pianist."
TASTE = "ann loves classical music."


class Subjects(LengthEmbedder):
    """Texts about music and the opera are alike, and so are all others."""

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        return [
            np.array(
                [1, 0] if "opera" in text else [0.8, 0.6] if "music" in text else [0, 1], np.float32
            )
            for text in texts
        ]


@pytest.fixture(params=["inline", "remote"])
def capabilities(request: pytest.FixtureRequest) -> list[Capability]:
    inline = [Capability.INLINE] if request.param == "inline" else []
    return [Capability.SEMANTIC, *inline]


def fill(open_pipeline: OpenPipeline, capabilities: Sequence[Capability]) -> Memory:
    pipeline = open_pipeline(Subjects("lengths-1", *capabilities), EMBEDDER="lengths")
    return Memory(pipeline)


class Memory:
    """Two messages that no query finds, and conclusions from them."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline, self.services = pipeline, Services(pipeline.rt, Clock())
        self.premises: list[Conclusion] = []
        for number, text in enumerate((REHEARSAL, PIANIST)):
            (message,) = self.services.say(f"s{number}", ("ann", text))
            self.premises.append(
                self.services.derive("ann", "ann", f"Fact {number}.", message_keys=[message.key])
            )
        for number in range(12):
            self.services.say(f"t{number}", ("ann", f"Lots of cake, number {number}."))

    def conclude(self, content: str, premises: Sequence[Conclusion], observed: str = "ann") -> None:
        self.services.deduce(content, premises, "inductive", observed, observed)

    def explain(self, query: str, limit: int = 5) -> Explained[Message]:
        self.pipeline.work()
        options = SearchOptions(query, limit)
        return search.explain(self.pipeline.rt, ME, WORKSPACE, options)

    def sources(self, query: str, limit: int = 5) -> dict[str, SourcePart]:
        """Text → its source, of the first messages that have one."""
        return {
            row.content: parts.source
            for row, parts in self.explain(query, limit).explained
            if parts.source is not None
        }


def test_the_most_similar_conclusion_leads_to_its_messages(
    open_pipeline: OpenPipeline, capabilities: list[Capability]
) -> None:
    memory = fill(open_pipeline, capabilities)
    assert not memory.sources(QUESTION)
    memory.conclude(TASTE, memory.premises)
    sources = memory.sources(QUESTION)
    assert sources.keys() == {REHEARSAL, PIANIST}
    k = memory.explain(QUESTION).fusion_k
    for rank, part in enumerate(sources.values(), 1):
        assert (part.rank, part.covered) == (rank, None)
        assert part.similarity == pytest.approx(0.8)
        assert part.share == pytest.approx(1 / (k + rank))


def test_only_the_most_similar_conclusion_counts(
    open_pipeline: OpenPipeline, capabilities: list[Capability]
) -> None:
    memory = fill(open_pipeline, capabilities)
    memory.conclude(TASTE, memory.premises[:1])
    memory.conclude("ann is often at the opera.", memory.premises[1:])
    assert memory.sources(QUESTION).keys() == {PIANIST}


def test_the_conclusion_is_about_the_peer_that_the_query_names(
    open_pipeline: OpenPipeline, capabilities: list[Capability]
) -> None:
    memory = fill(open_pipeline, capabilities)
    memory.conclude(TASTE, memory.premises[:1])
    memory.conclude("bob is often at the opera.", memory.premises[1:], "bob")
    assert memory.sources(QUESTION).keys() == {REHEARSAL}
    assert memory.sources("Who would like the opera?").keys() == {PIANIST}


def test_conclusions_about_others_take_no_place_among_the_most_similar(
    open_pipeline: OpenPipeline,
) -> None:
    memory = fill(open_pipeline, [Capability.SEMANTIC, Capability.INLINE])
    memory.conclude(TASTE, memory.premises[:1])
    for number in range(bridges.MAX_SIMILAR):
        memory.conclude(f"bob is at the opera, {number}.", memory.premises[1:], "bob")
    assert memory.sources(QUESTION).keys() == {REHEARSAL}


def test_the_name_of_a_peer_is_no_word_of_the_query(open_pipeline: OpenPipeline) -> None:
    memory = fill(open_pipeline, [Capability.SEMANTIC, Capability.INLINE])
    memory.conclude("cleo loves classical music.", memory.premises, "cleo")
    memory.services.say("t", ("ann", "There is cleo."))
    assert memory.sources("Is cleo at the opera?").keys() == {REHEARSAL, PIANIST}


def test_a_message_with_words_of_the_query_is_enough(
    open_pipeline: OpenPipeline, capabilities: list[Capability]
) -> None:
    memory = fill(open_pipeline, capabilities)
    memory.conclude(TASTE, memory.premises)
    memory.services.say("t", ("ann", "They take us along."))
    assert not memory.sources(QUESTION)


def test_what_a_search_cannot_return_is_no_source(
    open_pipeline: OpenPipeline, capabilities: list[Capability]
) -> None:
    memory = fill(open_pipeline, capabilities)
    memory.conclude(TASTE, memory.premises)
    memory.pipeline.work()
    options = SearchOptions(QUESTION, 5)
    rows = search.search(memory.pipeline.rt, ME, WORKSPACE, options, session_id="s0")
    assert [row.content for row in rows] == [REHEARSAL]


def test_vectors_that_do_not_represent_meaning_lead_nowhere(open_pipeline: OpenPipeline) -> None:
    memory = fill(open_pipeline, [Capability.INLINE])
    memory.conclude(TASTE, memory.premises)
    assert not memory.sources(QUESTION)


@pytest.mark.every_storage("sqlite")
def test_vectors_from_before_the_embedder_was_changed_lead_nowhere(
    open_pipeline: OpenPipeline,
) -> None:
    before = Memory(open_pipeline())
    if before.pipeline.rt.storage.name == "memory":
        pytest.skip("a store in memory cannot be opened a second time")
    before.conclude(TASTE, before.premises)
    embedder = Subjects("lengths-1", Capability.SEMANTIC, Capability.INLINE)
    after = open_pipeline(embedder, EMBEDDER="lengths")
    explained = search.explain(after.rt, ME, WORKSPACE, SearchOptions(QUESTION, 5))
    assert explained.rows
    assert "source" not in explained.lists
