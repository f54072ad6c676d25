"""Conclusions that stood at an earlier time and are superseded now, as candidates of a ranking.

Superseded conclusions are in no index, so they are read and ranked one by one: by their words, and
by their vectors if the embedder is inline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memservice.domain.filters import all_of, equals
from memservice.domain.ranking import TextHit, TextMatches
from memservice.domain.records import SUPERSEDED, Conclusion, Space
from memservice.runtime import Runtime
from memservice.services.auth.bounds import Bounds
from memservice.services.indexing import derived_terms
from memservice.services.retrieval.query import Query
from memservice.spi.capabilities import Capability
from memservice.spi.repositories.base import NEWEST
from memservice.spi.storage import Transaction

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

MAX_CANDIDATES = 1_000
"""Maximum number of superseded conclusions that a search considers, the newest first."""


class SupersededCandidates(Struct, frozen=True):
    """What a ranking adds to the results of the indexes."""

    hits: Sequence[TextHit] = ()
    similarities: Mapping[int, float] = field(default_factory=dict)
    """By key; of all candidates, if the embedder is inline."""

    def with_hits(self, matches: TextMatches) -> TextMatches:
        return replace(matches, hits=[*matches.hits, *self.hits]) if self.hits else matches

    def with_nearest(self, similarities: dict[int, float], k: int) -> dict[int, float]:
        """The `k` nearest of both, the nearest first."""
        if not self.similarities:
            return similarities
        both = {**similarities, **self.similarities}
        return dict(sorted(both.items(), key=lambda item: -item[1])[:k])

    def similarities_of(self, keys: Iterable[int]) -> dict[int, float]:
        return {key: self.similarities[key] for key in keys if key in self.similarities}


NO_CANDIDATES = SupersededCandidates()


def candidates(
    rt: Runtime,
    tx: Transaction,
    bounds: Bounds,
    query: Query,
    space: Space | None,
    vector: Vector | None,
) -> SupersededCandidates:
    """The superseded conclusions that stood at the moment of the bounds; none without a moment.
    `vector`: the query's, by the embedder of the space."""
    if bounds.moment is None or bounds.no_conclusions:
        return NO_CANDIDATES
    stood = all_of(
        equals(workspace_key=bounds.workspace, state=SUPERSEDED), bounds.standing, bounds.condition
    )
    rows = tx.rows.page(Conclusion, stood, NEWEST, MAX_CANDIDATES)
    return SupersededCandidates(_hits(rows, query), _similarities(rt, rows, space, vector))


def _hits(rows: Sequence[Conclusion], query: Query) -> list[TextHit]:
    query_terms = frozenset(term for word in query.all_words for term in (word.term, *word.stems))
    hits: list[TextHit] = []
    for row in rows:
        text = derived_terms(row.content)
        counts = Counter(term for term in (*text.terms, *text.related) if term in query_terms)
        if counts:
            hits.append(TextHit(row.key, counts, len(text.terms)))
    return hits


def _similarities(
    rt: Runtime, rows: Sequence[Conclusion], space: Space | None, vector: Vector | None
) -> dict[int, float]:
    embedder = None if space is None else rt.embedder_of(space.embedder)
    if not rows or vector is None or embedder is None:
        return {}
    if Capability.INLINE not in embedder.capabilities:
        return {}
    vectors = embedder.embed([row.content for row in rows])
    return {
        row.key: float(own @ vector) for row, own in zip(rows, vectors, strict=True) if own.any()
    }
