"""The parts of each score in a search."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from memservice.services.retrieval.bridges import Source, Sources


class TextPart(Struct, frozen=True):
    """A row in the list by text."""

    rank: int
    """From 1, after the boosts, and with replies behind their questions."""
    share: float
    """What the list adds to the final score: 1 / (k + rank)."""
    score: float | None
    """BM25 with the share of neighbouring messages. None if the caller may not know it."""
    own_score: float | None
    """BM25 of the row's own words; None as above, and for a row that has none of the query's."""


class VectorPart(Struct, frozen=True):
    """A row in the list by vectors, or outside of it with a known similarity."""

    rank: int | None
    share: float
    """0 outside of the list."""
    similarity: float | None
    """Cosine similarity to the query. None for the reply to a question that is in the list."""


class SourcePart(Struct, frozen=True):
    """A message that a derived conclusion rests on."""

    rank: int
    share: float
    """`covered` / (k + rank), or 1 / (k + rank) if the conclusion is similar."""
    covered: float | None
    """The share of the query's words that the conclusion has."""
    similarity: float | None
    """Cosine similarity of the conclusion to the query, if it counts for that. One of both is
    None."""


class Boosts(Struct, frozen=True):
    """What is added in each list to a score that is 1 for the best row."""

    name: float = 0.0
    """The query names the author."""
    date: float = 0.0
    """The query names the day, or one that the message mentions."""
    asker: float = 0.0
    """The query is about its asker, who may be the author."""


NO_BOOSTS = Boosts()


class Parts(Struct, frozen=True):
    """The parts of one result's score."""

    score: float
    """The final score: the sum of the shares; 0 for a row of neither list."""
    text: TextPart | None
    """None if the list by text does not contain the row."""
    vector: VectorPart | None
    """None without a similarity."""
    boosts: Boosts = NO_BOOSTS
    source: SourcePart | None = None
    """None if none of the best derived conclusions rests on the row."""

    def without_weights(self) -> Parts:
        """Without the scores by BM25. They reveal how many texts of the whole workspace contain a
        word, also those that the caller may not read."""
        if self.text is None:
            return self
        return replace(self, text=replace(self.text, score=None, own_score=None))


class Trace(Struct):
    """Filled by the ranking that gets it. The scores are those of its last pass, the candidates
    those of all."""

    own: Mapping[int, float] = field(default_factory=dict)
    text: Mapping[int, float] = field(default_factory=dict)
    similarities: Mapping[int, float] = field(default_factory=dict)
    boosts: Mapping[int, Boosts] = field(default_factory=dict)
    ranks: Sequence[Mapping[int, int]] = ()
    """Of each list: key → rank."""
    sources: Mapping[int, tuple[int, Source]] = field(default_factory=dict)
    """By key, with the rank."""
    candidates: set[int] = field(default_factory=set)
    """The keys in a list of any pass."""
    too_distant: set[int] = field(default_factory=set)
    """Those that the maximum distance excluded."""

    def note(
        self,
        own: Mapping[int, float],
        text: Mapping[int, float],
        similarities: Mapping[int, float],
        lists: Sequence[Sequence[int]],
        boosts: Mapping[int, Boosts] | None = None,
        sources: Sources | None = None,
    ) -> None:
        """`lists`: keys by text and, with vectors, by similarity, best first."""
        self.own, self.text, self.similarities = own, text, similarities
        self.boosts = boosts or {}
        self.ranks = [{key: rank for rank, key in enumerate(keys, 1)} for keys in lists]
        self.sources = {
            key: (rank, source) for rank, (key, source) in enumerate((sources or {}).items(), 1)
        }
        self.candidates.update(*lists, self.sources)

    def note_distant(self, keys: Collection[int], within: Collection[int]) -> None:
        """`within`: those of the keys that are not too distant."""
        self.too_distant = set(keys).difference(within)

    @property
    def lists(self) -> list[str]:
        """The names of the lists that were fused."""
        return [*["text", "vector"][: len(self.ranks)], *(["source"] if self.sources else [])]

    def parts(self, key: int, k: int) -> Parts:
        """The parts of the score of the row with this key; `k` as in `domain.ranking.fuse`."""
        text_rank, vector_rank = ([ranks.get(key) for ranks in self.ranks] + [None, None])[:2]
        text = vector = None
        if text_rank is not None:
            share = 1.0 / (k + text_rank)
            text = TextPart(text_rank, share, self.text.get(key), self.own.get(key))
        if key in self.similarities or vector_rank is not None:
            share = 0.0 if vector_rank is None else 1.0 / (k + vector_rank)
            vector = VectorPart(vector_rank, share, self.similarities.get(key))
        source = None
        if key in self.sources:
            rank, match = self.sources[key]
            share = match.weight / (k + rank)
            source = SourcePart(rank, share, match.covered, match.similarity)
        score = sum(part.share for part in (text, vector, source) if part is not None)
        return Parts(score, text, vector, self.boosts.get(key, NO_BOOSTS), source)
