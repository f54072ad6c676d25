"""The messages that derived conclusions rest on.

A question over several messages may share no word with them, but with what was concluded from them.
If no message has enough of its words either, the conclusion of the most similar meaning leads to
its messages. Explicit conclusions are left out: without a model they repeat their message, and a
search in talks with an assistant loses 5 points by them (benchmarks/recall/README.md, "Conclusions
as bridges").
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from msgspec import Struct

from memservice.domain import ranking
from memservice.domain.filters import Condition, all_of, equals
from memservice.domain.ranking import TextMatches, Word
from memservice.domain.records import EXPLICIT, LEVELS, LIVE, SUPERSEDED, Conclusion
from memservice.runtime import Runtime
from memservice.services.auth.bounds import Bounds
from memservice.services.indexing import CONCLUSION
from memservice.services.retrieval import query_embedding, vector_query
from memservice.services.retrieval.query import Query
from memservice.services.retrieval.query_embedding import Remote
from memservice.services.retrieval.text_matches import TextSearch
from memservice.spi.index_filter import IndexFilter
from memservice.spi.storage import Transaction

MAX_CONCLUSIONS = 3
"""The best conclusions by words, whose sources are added. See `MIN_COVERED`."""
MIN_COVERED = 0.6
"""The least share of the query's words. With 3 and 0.6, a search for what no single message says
finds 51 points more between people and 32 in talks with an assistant, and other searches no less;
with 0.5, other searches between people find 3 points less than with 0.6, and 1 conclusion finds as
much as 3 (benchmarks/recall/README.md, "Conclusions as bridges")."""
MAX_CANDIDATES = 40
"""Matching conclusions that are compared."""
WEAK_TEXT = 0.3
"""The share of the query's words, by their rarity, that a message has at least if no conclusion is
looked for by meaning. With 0.2, questions that general knowledge connects with messages between
people find 3.8 points less than with 0.3, and with 0.4 no more, but questions in other words 8.7
less (benchmarks/recall/README.md, "Bridges by meaning")."""
MAX_SIMILAR = 20
"""The most similar conclusions, of which the first one counts that still stands."""
DERIVED = tuple(level for level in LEVELS if level != EXPLICIT)


class Source(Struct, frozen=True):
    """Why a message is in the list: one of both is set."""

    covered: float | None = None
    """The share of the query's words that the conclusion has."""
    similarity: float | None = None
    """Of the conclusion to the query."""

    @property
    def weight(self) -> float:
        """Its factor in the fusion."""
        return 1.0 if self.covered is None else self.covered


Sources = dict[int, Source]
"""By the key of the message, in the order of the conclusions."""


class Bridges:
    """The derived conclusions for a query over the messages within the bounds that match
    `condition`, in one transaction. `vectors`: of the query."""

    def __init__(
        self,
        rt: Runtime,
        tx: Transaction,
        bounds: Bounds,
        query: Query,
        condition: Condition,
        vectors: Remote,
    ) -> None:
        self._rt, self._tx, self._bounds, self._query = rt, tx, bounds, query
        self._condition, self._vectors = condition, vectors

    def sources(self, matches: TextMatches, words: Sequence[Word]) -> Sources:
        """By words, and by meaning if no message has enough words. `matches`: the messages with
        words of the query; `words`: see `TextCandidates`."""
        if not self._has_meaning or self._is_covered(matches, words):
            return self._by_words
        return self._by_words | {
            key: source for key, source in self._by_meaning.items() if key not in self._by_words
        }

    @property
    def _has_meaning(self) -> bool:
        """Whether there may be vectors that represent meaning."""
        return bool(self._vectors) or query_embedding.understands(self._rt, None)

    def _is_covered(self, matches: TextMatches, words: Sequence[Word]) -> bool:
        """Whether a message has enough of the query's words. Names of peers do not count: they
        tell little about a message."""
        names = frozenset[str]().union(*self._query.names.values())
        others = [word for word in words if word.keys().isdisjoint(names)]
        return ranking.best_coverage(matches, others) >= WEAK_TEXT

    @cached_property
    def _by_words(self) -> Sources:
        """Messages that conclusions with the words of the query rest on."""
        if not self._is_possible or not self._query.words:
            return {}
        return self._of((row, Source(covered=share)) for row, share in self._with_words())

    @cached_property
    def _by_meaning(self) -> Sources:
        """Messages that the most similar conclusion rests on: about the peer that the query names,
        if it names one."""
        if not self._is_possible:
            return {}
        return self._of((row, Source(similarity=value)) for row, value in self._most_similar())

    @property
    def _is_possible(self) -> bool:
        return self._bounds.has_chains and not self._bounds.no_conclusions

    def _of(self, conclusions: Iterable[tuple[Conclusion, Source]]) -> Sources:
        rows = list(conclusions)
        sources: Sources = {}
        premises = self._premises([row for row, _ in rows])
        for row, source in rows:
            for each in (row, *(premises[uid] for uid in row.source_ids or () if uid in premises)):
                for key in each.message_keys:
                    sources.setdefault(key, source)
        if not sources:
            return {}
        # What the caller cannot read must not take the place of what it can.
        readable = self._tx.messages.matching(
            self._bounds.workspace, list(sources), self._condition
        )
        return {key: source for key, source in sources.items() if key in readable}

    def _with_words(self) -> list[tuple[Conclusion, float]]:
        """The derived conclusions that have most of the query's words, with the share of the
        words."""
        derived = self._bounds.with_conclusions(equals(level=DERIVED), IndexFilter(levels=DERIVED))
        text = TextSearch(self._rt, self._tx, CONCLUSION, self._bounds.workspace, self._query.words)
        candidates = text.exact(MAX_CANDIDATES, derived.narrowed)
        covered = {
            hit.key: _covered(hit.terms, candidates.words) for hit in candidates.matches.hits
        }
        scores = candidates.bm25()
        keys = sorted(
            (key for key, share in covered.items() if share >= MIN_COVERED),
            key=lambda key: (-covered[key], -scores[key], key),
        )
        rows = self._distinct(keys, derived)
        return [(row, covered[row.key]) for row in rows[:MAX_CONCLUSIONS]]

    def _most_similar(self) -> list[tuple[Conclusion, float]]:
        """The derived conclusion that is most similar to the query, with its similarity. None
        without vectors that represent meaning."""
        rt, tx, bounds, named = self._rt, self._tx, self._bounds, self._query.named
        space = tx.spaces.active(bounds.workspace, CONCLUSION)
        vector = query_embedding.vector_in(rt, space, self._query.unnamed, self._vectors)
        if space is None or vector is None or not query_embedding.understands(rt, space):
            return []
        derived = bounds.with_conclusions(
            equals(level=DERIVED)
            if named is None
            else equals(level=DERIVED, observed_key=named.key),
            IndexFilter(levels=DERIVED, observed=None if named is None else (named.key,)),
        )
        hits = vector_query.query(rt, tx, space, vector, MAX_SIMILAR, derived.narrowed) or []
        similarities = {hit.key: hit.score for hit in hits}
        rows = self._distinct(list(similarities), derived)
        return [(row, similarities[row.key]) for row in rows[:1]]

    def _distinct(self, keys: Sequence[int], bounds: Bounds) -> list[Conclusion]:
        """The conclusions that stand within the bounds, in order. Several observers may have the
        same one."""
        condition = all_of(equals(workspace_key=bounds.workspace), bounds.condition)
        rows = self._tx.conclusions.by_keys(keys, condition, bounds.standing) if keys else {}
        distinct: dict[tuple[int, str], Conclusion] = {}
        for row in (rows[key] for key in keys if key in rows):
            distinct.setdefault((row.observed_key, row.fingerprint), row)
        return list(distinct.values())

    def _premises(self, rows: Sequence[Conclusion]) -> dict[str, Conclusion]:
        """The conclusions within the bounds that these rest on, by uid."""
        uids = tuple({uid for row in rows for uid in row.source_ids or ()})
        if not uids:
            return {}
        condition = equals(workspace_key=self._bounds.workspace, uid=uids, state=(LIVE, SUPERSEDED))
        page = self._tx.rows.page(Conclusion, all_of(condition, self._bounds.condition))
        return {row.uid: row for row in page}


def _covered(terms: Collection[str], words: Sequence[Word]) -> float:
    return sum(not word.keys().isdisjoint(terms) for word in words) / len(words)
