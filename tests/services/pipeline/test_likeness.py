"""Conclusions that say nearly the same as one that is held: counted again, or superseded by the
fuller one; never merged wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from memservice.domain.filters import equals
from memservice.domain.records import SUPERSEDED, Conclusion
from memservice.domain.text.particulars import same_particulars
from memservice.services.sessions import MemberConfig
from memservice.services.tasks import kinds
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Purpose
from services.pipeline.conftest import OpenPipeline
from support.pipeline.fakes import ExternalIndex, LengthEmbedder
from support.pipeline.pipeline import Pipeline

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector


def semantic() -> LengthEmbedder:
    """Texts that begin alike and are about as long are nearly the same to it."""
    embedder = LengthEmbedder("lengths-1", Capability.SEMANTIC)
    embedder.duplicate_distance = 0.05
    return embedder


@pytest.fixture(params=["inside", "outside"])
def pipeline(open_pipeline: OpenPipeline, request: pytest.FixtureRequest) -> Pipeline:
    if request.param == "inside":
        return open_pipeline(semantic(), EMBEDDER="lengths")
    return open_pipeline(
        semantic(), ExternalIndex(), EMBEDDER="lengths", VECTOR_STORE_TYPE="outside"
    )


def stated(pipeline: Pipeline, observer: str = "alice") -> list[tuple[str, int]]:
    return [(row.content, row.times_derived) for row in pipeline.conclusions(observer, "alice")]


def tell(pipeline: Pipeline, *contents: str, session: str = "s") -> None:
    for content in contents:
        pipeline.say(session, ("alice", content))
        pipeline.work()


def test_a_less_detailed_statement_is_counted_and_not_stored(pipeline: Pipeline) -> None:
    tell(
        pipeline, "I am fond of green plums from Zwetschgau.", "I am fond of plums from Zwetschgau."
    )
    assert stated(pipeline) == [("I am fond of green plums from Zwetschgau.", 2)]
    assert (
        pipeline.outcome("said_already"),
        pipeline.outcome("stored"),
        pipeline.counted("alice"),
    ) == (
        1,
        1,
        1,
    )


def test_a_more_detailed_statement_supersedes_the_stored_one(pipeline: Pipeline) -> None:
    tell(
        pipeline, "I am fond of plums from Zwetschgau.", "I am fond of green plums from Zwetschgau."
    )
    assert stated(pipeline) == [("I am fond of green plums from Zwetschgau.", 2)]
    assert (
        pipeline.outcome("replaced"),
        pipeline.outcome("stored"),
        pipeline.counted("alice"),
    ) == (1, 2, 1)
    with pipeline.rt.storage.read() as tx:
        (old,) = tx.rows.page(Conclusion, equals(state=SUPERSEDED))
    assert old.content == "I am fond of plums from Zwetschgau."
    assert old.superseded_by == pipeline.conclusions("alice")[0].key
    assert old.internal["superseded"]


@pytest.mark.slow
def test_counts_continue_over_several_replacements(pipeline: Pipeline) -> None:
    tell(
        pipeline,
        "I am fond of plums.",
        "I am fond of green plums.",
        "I am so fond of green plums.",
        "I am fond of plums.",
    )
    assert [times for _, times in stated(pipeline)] == [4]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I run 5 kilometres every morning.", "I run 7 kilometres every morning."),
        ("I have two sisters in the north.", "I have ten sisters in the north."),
        ("I went there with Anna in spring.", "I went there with Olga in spring."),
        ("I like plums with my morning tea.", "I never like plums with my tea."),
        ("I was there in March, by train.", "I was there in April, by train."),
    ],
)
def test_statements_that_differ_in_a_fact_are_not_merged(
    pipeline: Pipeline, one: str, other: str
) -> None:
    tell(pipeline, one, other)
    assert stated(pipeline) == [(one, 1), (other, 1)]


class Angles(LengthEmbedder):
    """Two texts, at an angle of 60 degrees: their cosine is exactly 0.5."""

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        vectors = [[1, 0] if "plums" in text else [0.5, 0.75**0.5] for text in texts]
        return [np.array(vector, np.float32) for vector in vectors]


@pytest.mark.slow
@pytest.mark.parametrize(("distance", "merged"), [(0.5, True), (0.499, False)])
def test_a_score_of_exactly_the_minimum_is_a_duplicate(
    open_pipeline: OpenPipeline, distance: float, merged: bool
) -> None:
    embedder = Angles("lengths-1", Capability.SEMANTIC)
    embedder.duplicate_distance = distance
    pipeline = open_pipeline(embedder, EMBEDDER="lengths")
    tell(pipeline, "I like green plums.", "I like plums.", "I like green.")
    assert len(stated(pipeline)) == (1 if merged else 2)


def test_statements_of_different_sessions_are_not_merged(pipeline: Pipeline) -> None:
    tell(pipeline, "I am fond of green plums.")
    tell(pipeline, "I am fond of plums.", session="t")
    assert len(stated(pipeline)) == 2


def test_each_observer_is_deduplicated_by_itself(pipeline: Pipeline) -> None:
    tell(pipeline, "I am fond of green plums.")
    pipeline.join("s", bob=MemberConfig(observe_others=True))
    tell(pipeline, "I am fond of plums.")
    assert stated(pipeline) == [("I am fond of green plums.", 2)]
    assert stated(pipeline, "bob") == [("I am fond of plums.", 1)]


def test_deduplication_can_be_switched_off(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(semantic(), EMBEDDER="lengths", DERIVER_DEDUPLICATE="false")
    tell(pipeline, "I am fond of green plums.", "I am fond of plums.")
    assert len(stated(pipeline)) == 2


def test_a_non_semantic_embedder_merges_nothing(open_pipeline: OpenPipeline) -> None:
    embedder = LengthEmbedder()
    embedder.duplicate_distance = 0.05
    pipeline = open_pipeline(embedder, EMBEDDER="lengths")
    tell(pipeline, "I am fond of green plums.", "I am fond of plums.")
    assert len(stated(pipeline)) == 2


def test_an_unreachable_embedder_loses_nothing(open_pipeline: OpenPipeline) -> None:
    embedder = semantic()
    pipeline = open_pipeline(embedder, EMBEDDER="lengths", DERIVER_FLUSH_ENABLED="true")
    tell(pipeline, "I am fond of green plums.")
    embedder.fails = 1
    pipeline.say("s", ("alice", "I am fond of plums."))
    (unit,) = [unit for unit in pipeline.ready() if unit.startswith(kinds.REPRESENTATION)]
    pipeline.run(unit)
    assert len(stated(pipeline)) == 2
    pipeline.work()
    assert pipeline.tasks(kinds.EMBED, state="pending") == []


def test_the_vectors_that_were_compared_are_stored(open_pipeline: OpenPipeline) -> None:
    embedder = semantic()
    pipeline = open_pipeline(embedder, EMBEDDER="lengths", EMBED_MESSAGES="false")
    tell(pipeline, "I am fond of green plums.")
    assert embedder.calls == [["I am fond of green plums."]]
    assert pipeline.tasks(kinds.EMBED) == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Alice likes plums.", "Alice is fond of plums.", True),
        ("Alice likes plums.", "Bob likes plums.", False),
        ("Alice's dog barks.", "The dog of Alice barks.", True),
        ("Alice has 3 cats.", "Alice has 3 small cats.", True),
        ("Alice has 3 cats.", "Alice has three cats.", False),
        ("Alice doesn't eat fish.", "Alice does not eat fish.", True),
        ("Alice eats fish.", "Alice does not eat fish.", False),
        ("Alice was born on 1.5.1990.", "Alice was born on 5.1.1990.", False),
        ("小明住在北京", "小红住在北京", False),
        ("小明住在北京。", "小明住在北京", True),
    ],
)
def test_particulars(one: str, other: str, same: bool) -> None:
    assert same_particulars(one, other) is same_particulars(other, one) is same
