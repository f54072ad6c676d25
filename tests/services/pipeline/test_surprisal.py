"""Which conclusions a dream is pointed at."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from memservice.domain.records import Conclusion
from memservice.pipeline.dream.outliers import outliers
from memservice.services import dreams
from memservice.services.dreams import DreamRequest
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Purpose
from support.pipeline.dreams import Dreamer
from support.pipeline.fakes import ExternalIndex, LengthEmbedder
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

OpenPipeline = Callable[..., Pipeline]
ON = {
    "DREAM_SURPRISAL__ENABLED": "true",
    "DREAM_SURPRISAL__TREE_K": "2",
    "PEER_CARD_REFRESH": "false",
    "DREAM_SURPRISAL__TOP_PERCENT_SURPRISAL": "0.2",
}
COMMON = tuple(f"Tea number {n}." for n in range(9))
ODD = "Zebras scare me."


class Directions(LengthEmbedder):
    """Texts that begin with the same letter lie close together."""

    dimension = 3

    def __init__(self) -> None:
        super().__init__("directions-1", Capability.INLINE)

    def embed(self, texts: Any, purpose: Purpose = "document") -> list[Vector]:
        return [
            np.array(
                [1.0, 0.01 * (len(text) % 5), 0.0] if text.startswith("T") else [0.0, 0.0, 1.0],
                np.float32,
            )
            for text in texts
        ]


def dreamed(
    open_pipeline: OpenPipeline, *contents: str, **settings: str
) -> tuple[Pipeline, list[Conclusion]]:
    pipeline = open_pipeline(Directions(), EMBEDDER="lengths", **{**ON, **settings})
    pipeline.say("s", *[("alice", content) for content in contents])
    pipeline.work()
    return pipeline, pipeline.conclusions("alice")


def names(pipeline: Pipeline, rows: list[Conclusion], seed: str = "seed") -> list[str]:
    by_uid = {row.uid: row.content for row in rows}
    return [by_uid[uid] for uid in outliers(pipeline.rt, rows[0].workspace_key, rows, seed)]


def test_the_least_similar_come_first(open_pipeline: OpenPipeline) -> None:
    pipeline, rows = dreamed(open_pipeline, *COMMON[:5], ODD, *COMMON[5:])
    order = names(pipeline, rows)
    assert order[0] == ODD
    assert len(order) == 2


def test_outliers_are_searched_only_if_enabled(open_pipeline: OpenPipeline) -> None:
    pipeline, rows = dreamed(open_pipeline, *COMMON, ODD, DREAM_SURPRISAL__ENABLED="false")
    assert names(pipeline, rows) == []


def test_too_few_conclusions_have_no_outliers(open_pipeline: OpenPipeline) -> None:
    pipeline, rows = dreamed(open_pipeline, *COMMON[:2], ODD)
    assert names(pipeline, rows) == []


def test_only_the_sample_is_compared(open_pipeline: OpenPipeline) -> None:
    pipeline, rows = dreamed(open_pipeline, ODD, *COMMON, DREAM_SURPRISAL__SAMPLE_SIZE="5")
    assert ODD not in names(pipeline, rows)
    pipeline, rows = dreamed(
        open_pipeline,
        ODD,
        *COMMON,
        DREAM_SURPRISAL__SAMPLE_SIZE="5",
        DREAM_SURPRISAL__SAMPLING_STRATEGY="all",
        DB_CONNECTION_URI="memory://",
    )
    assert names(pipeline, rows)[0] == ODD


def test_a_random_sample_depends_on_its_seed(open_pipeline: OpenPipeline) -> None:
    pipeline, rows = dreamed(
        open_pipeline,
        ODD,
        *COMMON,
        DREAM_SURPRISAL__SAMPLE_SIZE="6",
        DREAM_SURPRISAL__SAMPLING_STRATEGY="random",
    )
    by_seed = {seed: names(pipeline, rows, seed) for seed in map(str, range(20))}
    assert by_seed == {seed: names(pipeline, rows, seed) for seed in by_seed}
    assert len({tuple(sample) for sample in by_seed.values()}) > 1


@pytest.mark.slow
def test_only_configured_levels_are_compared(open_pipeline: OpenPipeline) -> None:
    pipeline, rows = dreamed(
        open_pipeline, *COMMON, ODD, DREAM_SURPRISAL__INCLUDE_LEVELS='["deductive"]'
    )
    assert names(pipeline, rows) == []


@pytest.mark.parametrize("kind", ["kdtree", "lsh", "prototype"])
def test_every_kind_of_tree_gives_the_same_result(open_pipeline: OpenPipeline, kind: str) -> None:
    pipeline, rows = dreamed(open_pipeline, *COMMON, ODD, DREAM_SURPRISAL__TREE_TYPE=kind)
    assert names(pipeline, rows)[0] == ODD


def test_outliers_are_found_in_an_outside_index_too(open_pipeline: OpenPipeline) -> None:
    reasoner, index = Dreamer(), ExternalIndex()
    pipeline = open_pipeline(
        Directions(),
        index,
        reasoner=reasoner,
        EMBEDDER="lengths",
        VECTOR_STORE_TYPE="outside",
        **ON,
    )
    pipeline.say("s", *[("alice", content) for content in (*COMMON, ODD)])
    pipeline.work()
    assert dreams.schedule(pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.OMNI))
    pipeline.work()
    (request,) = reasoner.dream_requests
    by_uid = {conclusion.uid: conclusion.content for conclusion in request.known}
    assert by_uid[request.surprising[0]] == ODD
