"""The best conclusions for a query, from text and vectors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from memservice.domain import ranking
from memservice.domain.filters import Condition, all_of, equals
from memservice.domain.records import Conclusion, Space
from memservice.runtime import Runtime
from memservice.services.auth.bounds import Bounds
from memservice.services.indexing import CONCLUSION
from memservice.services.retrieval import query_embedding, vector_query
from memservice.services.retrieval.message_ranking import EXACT_RANKING_MAX
from memservice.services.retrieval.query import Query
from memservice.services.retrieval.superseded_candidates import (
    NO_CANDIDATES,
    SupersededCandidates,
)
from memservice.services.retrieval.text_matches import TextSearch
from memservice.services.retrieval.trace import Trace
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import IndexFilter
from memservice.spi.repositories.base import NEWEST
from memservice.spi.storage import Transaction

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

CANDIDATES_PER_HIT = 8
"""Number of text candidates that are scored for each result of the fusion."""


class ConclusionHit(Struct, frozen=True):
    """A conclusion, and its cosine similarity to the query if there is one."""

    conclusion: Conclusion
    similarity: float | None


class _Ranked(Struct, frozen=True):
    keys: Sequence[int]
    """Best first."""
    similarities: dict[int, float]
    """By key, for rows with a vector."""
    exhausted: bool
    """Whether a greater depth returns no further rows."""


class ConclusionRanking(Struct, frozen=True):
    """One query over the live conclusions within bounds, in one transaction."""

    rt: Runtime
    tx: Transaction
    bounds: Bounds
    query: Query
    space: Space | None
    vector: Vector | None
    """The query's vector, by the embedder of the space."""
    max_distance: float | None = None
    """Maximum cosine distance. Distances of an embedder without paraphrases are meaningless for a
    row that shares words with the query, so there the maximum applies only to rows that share none.
    """
    trace: Trace | None = None
    superseded: SupersededCandidates = NO_CANDIDATES
    """Conclusions that are in no index, for bounds of an earlier time."""

    def best(self, limit: int) -> list[ConclusionHit]:
        """The best `limit` conclusions, best first."""
        if not self.query.terms and self.vector is None:
            # An empty query: the newest come first. None of them has a distance.
            newest = [] if self.max_distance is not None else self._newest(limit)
            return [ConclusionHit(conclusion, None) for conclusion in newest]
        first = depth = max(self.rt.settings.search.depth, limit)
        ids: list[int] | None = None
        condition = all_of(equals(workspace_key=self.bounds.workspace), self.bounds.condition)
        while True:
            ranked = self._rank(depth, ids)
            rows = self._first_matching(ranked.keys, condition, limit)
            if len(rows) >= limit or ranked.exhausted or ids is not None:
                break
            if depth == first:
                matching = self._newest(EXACT_RANKING_MAX + 1)
                if len(matching) <= EXACT_RANKING_MAX:
                    ids = [conclusion.key for conclusion in matching]
            depth = 4 * depth if ids is None else max(depth, len(ids))
        conclusions = [
            ConclusionHit(rows[key], ranked.similarities.get(key))
            for key in ranked.keys
            if key in rows
        ][:limit]
        missing = limit - len(conclusions)
        if missing and self.max_distance is None and not self.rt.vectors_transactional:
            conclusions += self._not_in_index(rows, missing)
        return conclusions

    def _first_matching(
        self, ranked: Sequence[int], condition: Condition, limit: int
    ) -> dict[int, Conclusion]:
        """At least the first `limit` of the ranked conclusions that match, by key. Reads few more
        rows than necessary."""
        rows: dict[int, Conclusion] = {}
        start, size = 0, limit
        while start < len(ranked) and len(rows) < limit:
            keys = ranked[start : start + size]
            rows |= self.tx.conclusions.by_keys(keys, condition, self.bounds.standing)
            start, size = start + size, 2 * size
        return rows

    def _newest(self, limit: int) -> Sequence[Conclusion]:
        fitting = all_of(_fitting(self.bounds.narrowed), self.bounds.condition)
        return self.tx.conclusions.page(
            self.bounds.workspace, fitting, NEWEST, limit, standing=self.bounds.standing
        )

    def _not_in_index(self, returned: Collection[int], limit: int) -> list[ConclusionHit]:
        """Conclusions that an index outside the storage did not return, nearest first: it may be
        slow or unavailable, lack new rows, or still contain deleted ones. Without an inline
        embedder, newest first. Only the newest `EXACT_RANKING_MAX` are considered."""
        newest = self._newest(EXACT_RANKING_MAX)
        missing = [conclusion for conclusion in newest if conclusion.key not in returned]
        space, vector = self.space, self.vector
        embedder = None if space is None else self.rt.embedder_of(space.embedder)
        if vector is None or embedder is None or Capability.INLINE not in embedder.capabilities:
            return [ConclusionHit(conclusion, None) for conclusion in missing[:limit]]
        vectors = embedder.embed([conclusion.content for conclusion in missing])
        near = [
            ConclusionHit(conclusion, float(row @ vector))
            for conclusion, row in zip(missing, vectors, strict=True)
        ]
        return sorted(near, key=lambda item: -(item.similarity or 0.0))[:limit]

    def _rank(self, depth: int, ids: Sequence[int] | None) -> _Ranked:
        """Ranked by text and vectors; only the rows `ids`, if they are set."""
        pool = depth * CANDIDATES_PER_HIT
        index_filter = self.bounds.narrowed
        text = TextSearch(
            self.rt, self.tx, CONCLUSION, self.bounds.workspace, self.query.all_words
        ).exact(pool, index_filter, ids)
        scores = ranking.bm25(self.superseded.with_hits(text.matches), text.words)
        lists = [ranking.ranked(scores, depth)]
        exhausted = len(scores) <= depth
        similarities: dict[int, float] = {}
        if self.vector is not None and self.space is not None:
            similarities = self.superseded.with_nearest(self._nearest(depth, ids), depth)
            lists.append(list(similarities))
            exhausted = exhausted and len(similarities) < depth
            if self.max_distance is not None:
                unknown = [key for key in lists[0] if key not in similarities]
                similarities |= self._nearest(len(unknown), unknown)
                similarities |= self.superseded.similarities_of(unknown)
        if self.trace is not None:
            self.trace.note(scores, scores, similarities, lists)
        keys = ranking.fuse(lists, self.rt.settings.search.fusion_k)
        if self.max_distance is not None:
            within = self._within_distance(keys, scores, similarities, self.max_distance)
            if self.trace is not None:
                self.trace.note_distant(keys, within)
            keys = within
        return _Ranked(keys, similarities, exhausted)

    def _nearest(self, k: int, ids: Sequence[int] | None) -> dict[int, float]:
        """Similarities of the nearest conclusions by key, the nearest first."""
        if self.space is None or self.vector is None:
            return {}
        hits = vector_query.query(
            self.rt, self.tx, self.space, self.vector, k, self.bounds.narrowed, ids
        )
        return {hit.key: hit.score for hit in hits or []}

    def _within_distance(
        self,
        keys: Sequence[int],
        scores: Collection[int],
        similarities: dict[int, float],
        max_distance: float,
    ) -> list[int]:
        """The keys of rows within the distance. A row without a vector, or any row if the query has
        none, is included if it shares a word with the query."""
        understands = self.space is not None and query_embedding.understands(self.rt, self.space)
        close = {key for key, value in similarities.items() if 1.0 - value <= max_distance}
        return [
            key
            for key in keys
            if key in close or (key in scores and not (understands and key in similarities))
        ]


def _fitting(index_filter: IndexFilter) -> Condition:
    """The condition that is equivalent to the index filter, for conclusions."""
    columns = {
        "session_key": index_filter.sessions,
        "observer_key": index_filter.observers,
        "observed_key": index_filter.observed,
        "level": index_filter.levels,
    }
    return equals(**{name: values for name, values in columns.items() if values is not None})
