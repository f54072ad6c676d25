"""The parts of each score in a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one result's score; None if a list does not contain the row."""

    own: float | None
    """BM25 of the row's own words."""
    text: float | None
    """BM25 plus the share of neighbouring messages."""
    text_rank: int | None
    """Rank in the list by text, from 1, after the boosts for a named peer and day."""
    similarity: float | None
    """Cosine similarity to the query."""
    vector_rank: int | None
    fused: float
    """The final score: the sum of 1 / (k + rank) over both lists."""


@dataclass(slots=True)
class Trace:
    """Filled by the ranking that gets it; the last pass counts."""

    own: Mapping[int, float] = field(default_factory=dict)
    text: Mapping[int, float] = field(default_factory=dict)
    similarities: Mapping[int, float] = field(default_factory=dict)
    ranks: Sequence[Mapping[int, int]] = ()

    def note(
        self,
        own: Mapping[int, float],
        text: Mapping[int, float],
        similarities: Mapping[int, float],
        lists: Sequence[Sequence[int]],
    ) -> None:
        """`lists`: keys by text and, with vectors, by similarity, best first."""
        self.own, self.text, self.similarities = own, text, similarities
        self.ranks = [{key: rank for rank, key in enumerate(keys, 1)} for keys in lists]

    def parts(self, key: int, k: int) -> Parts:
        """The parts of the score of the row with this key; `k` as in `domain.ranking.fuse`."""
        text_rank, vector_rank = ([ranks.get(key) for ranks in self.ranks] + [None, None])[:2]
        return Parts(
            self.own.get(key),
            self.text.get(key),
            text_rank,
            self.similarities.get(key),
            vector_rank,
            sum(1.0 / (k + rank) for rank in (text_rank, vector_rank) if rank is not None),
        )
