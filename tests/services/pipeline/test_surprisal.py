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
from services.pipeline.test_dream import Dreamer
from support.pipeline.fakes import Lengths, Outside
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

Start = Callable[..., Place]
ON = {
    "DREAM_SURPRISAL__ENABLED": "true",
    "DREAM_SURPRISAL__TREE_K": "2",
    "PEER_CARD_REFRESH": "false",
    "DREAM_SURPRISAL__TOP_PERCENT_SURPRISAL": "0.2",
}
COMMON = tuple(f"Tea number {n}." for n in range(9))
ODD = "Zebras scare me."


class Directions(Lengths):
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


def told(start: Start, *contents: str, **settings: str) -> tuple[Place, list[Conclusion]]:
    place = start(Directions(), EMBEDDER="lengths", **{**ON, **settings})
    place.say("s", *[("alice", content) for content in contents])
    place.work()
    return place, place.conclusions("alice")


def names(place: Place, rows: list[Conclusion], seed: str = "seed") -> list[str]:
    by_uid = {row.uid: row.content for row in rows}
    return [by_uid[uid] for uid in outliers(place.rt, rows[0].workspace_key, rows, seed)]


def test_the_least_similar_come_first(start: Start) -> None:
    place, rows = told(start, *COMMON[:5], ODD, *COMMON[5:])
    found = names(place, rows)
    assert found[0] == ODD
    assert len(found) == 2


def test_outliers_are_searched_only_if_enabled(start: Start) -> None:
    place, rows = told(start, *COMMON, ODD, DREAM_SURPRISAL__ENABLED="false")
    assert names(place, rows) == []


def test_too_few_conclusions_have_no_outliers(start: Start) -> None:
    place, rows = told(start, *COMMON[:2], ODD)
    assert names(place, rows) == []


def test_only_the_sample_is_compared(start: Start) -> None:
    place, rows = told(start, ODD, *COMMON, DREAM_SURPRISAL__SAMPLE_SIZE="5")
    assert ODD not in names(place, rows)
    place, rows = told(
        start,
        ODD,
        *COMMON,
        DREAM_SURPRISAL__SAMPLE_SIZE="5",
        DREAM_SURPRISAL__SAMPLING_STRATEGY="all",
        DB_CONNECTION_URI="memory://",
    )
    assert names(place, rows)[0] == ODD


def test_a_random_sample_depends_on_its_seed(start: Start) -> None:
    place, rows = told(
        start,
        ODD,
        *COMMON,
        DREAM_SURPRISAL__SAMPLE_SIZE="6",
        DREAM_SURPRISAL__SAMPLING_STRATEGY="random",
    )
    by_seed = {seed: names(place, rows, seed) for seed in map(str, range(20))}
    assert by_seed == {seed: names(place, rows, seed) for seed in by_seed}
    assert len({tuple(found) for found in by_seed.values()}) > 1


def test_only_configured_levels_are_compared(start: Start) -> None:
    place, rows = told(start, *COMMON, ODD, DREAM_SURPRISAL__INCLUDE_LEVELS='["deductive"]')
    assert names(place, rows) == []


@pytest.mark.parametrize("kind", ["kdtree", "lsh", "prototype"])
def test_every_kind_of_tree_gives_the_same_result(start: Start, kind: str) -> None:
    place, rows = told(start, *COMMON, ODD, DREAM_SURPRISAL__TREE_TYPE=kind)
    assert names(place, rows)[0] == ODD


def test_outliers_are_found_in_an_outside_index_too(start: Start) -> None:
    reasoner, index = Dreamer(), Outside()
    place = start(
        Directions(),
        index,
        reasoner=reasoner,
        EMBEDDER="lengths",
        VECTOR_STORE_TYPE="outside",
        **ON,
    )
    place.say("s", *[("alice", content) for content in (*COMMON, ODD)])
    place.work()
    assert dreams.schedule(place.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", dreams.OMNI))
    place.work()
    (asked,) = reasoner.asked
    by_uid = {known.uid: known.content for known in asked.known}
    assert by_uid[asked.surprising[0]] == ODD
