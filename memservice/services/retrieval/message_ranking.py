"""The best messages for a query: each list is adjusted separately before both are fused
(`memservice.domain.ranking`). In the text list a hit shares its score with its neighbours in the
session, in the vector list a short one with the short ones beside it. In both lists, messages by
the one peer and of the day that the query names get a boost, and those by the asker of a question
in the first person; short replies stand behind their questions (`replies`). Messages that derived
conclusions rest on are a third list (`bridges`).

A filter that an index cannot apply is applied last, to more and more rows, until there are enough
or no more. Of the rows, those that repeat one of their author come last (`distinct`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain import ranking
from memservice.domain.filters import TRUE, Condition, all_of, equals, values_named
from memservice.domain.positions import Position, PositionTable
from memservice.domain.ranking import TextMatches
from memservice.domain.records import Message, Space
from memservice.domain.text.analysis import analyse
from memservice.runtime import Runtime
from memservice.services.auth.bounds import MAX_SESSIONS, Bounds
from memservice.services.indexing import MESSAGE
from memservice.services.retrieval import boosts, vector_query
from memservice.services.retrieval.boosts import Boosting
from memservice.services.retrieval.bridges import Bridges
from memservice.services.retrieval.distinct import Distinct
from memservice.services.retrieval.query import Query
from memservice.services.retrieval.query_embedding import NO_VECTORS, Remote
from memservice.services.retrieval.replies import replies, with_replies
from memservice.services.retrieval.text_matches import TextCandidates, TextSearch
from memservice.services.retrieval.trace import Trace
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

CANDIDATES_PER_HIT = 4
"""Number of text candidates that are scored for each result of the fusion. All of them share their
score with their neighbours. With 8, results in short conversations are the same, and in
conversations of 10,000 messages worse (benchmarks/recall/README.md)."""

MANY_MESSAGES = 30_000
"""Maximum messages of a workspace, or of the session that is searched, of which all candidates are
scored with their neighbours. Of more, these are the best by their own scores: as many as a list
has, and as the caller asked for. The others would share their scores with messages that only have
common words, too (benchmarks/recall/README.md), and nearly every candidate and its neighbours are
on another page."""
VERY_MANY_MESSAGES = 100_000
"""As `MANY_MESSAGES`, for `CANDIDATES_PER_HIT`."""
CANDIDATES_AMONG_VERY_MANY = 2
"""Number of candidates for each result among more messages: reading one takes longer there than
scoring it."""

EXACT_RANKING_MAX = 1_000
"""Maximum number of rows, matching a filter that no index can apply, that are ranked one by one
instead of reading further down the list."""

NEWEST_STORED = (Order("key", descending=True),)

_NOTHING: frozenset[str] = frozenset()


class MessageRanking(Struct, frozen=True):
    """One query over the messages within bounds, in one transaction."""

    rt: Runtime
    tx: Transaction
    bounds: Bounds
    query: Query
    space: Space | None
    vector: Vector | None
    """The query's vector, by the embedder of the space."""
    vectors: Remote = NO_VECTORS
    """Those by each embedder that is not inline."""
    trace: Trace | None = None
    messages_of_sessions: int | None = None
    """The number of messages of the bounds' sessions, if it is known."""

    def best(self, limit: int) -> list[Message]:
        """The best `limit` messages, best first."""
        condition, index_filter = self._narrowing()
        fitting = all_of(equals(workspace_key=self.bounds.workspace), condition)
        if not self.query.terms and self.vector is None:
            # An empty query: the newest come first.
            return self.tx.rows.page(Message, fitting, NEWEST_STORED, limit)
        # With a condition, deeper at once: the condition of a peer or a time leaves about half.
        enough = limit if condition == TRUE else 2 * limit
        first = depth = max(self.rt.settings.search.depth, enough)
        bridges = Bridges(self.rt, self.tx, self.bounds, self.query, condition, self.vectors)
        while True:
            keys, exhausted = self._rank(depth, limit, index_filter, bridges)
            messages = self._first_matching(keys, condition, limit)
            if len(messages) >= limit or exhausted:
                return messages
            if depth == first:
                matching = self.tx.rows.page(Message, fitting, NEWEST_STORED, EXACT_RANKING_MAX + 1)
                if len(matching) <= EXACT_RANKING_MAX:
                    return Distinct(self._rank_among(matching, bridges)).messages[:limit]
            depth *= 4

    def _narrowing(self) -> tuple[Condition, IndexFilter]:
        """The condition on rows, and the part of it that an index can apply."""
        condition, session_keys = self.bounds.message_condition, self.bounds.sessions
        if session_keys is None:
            return condition, EVERYTHING
        condition = all_of(condition, equals(session_key=session_keys))
        if len(session_keys) > MAX_SESSIONS:
            return condition, EVERYTHING
        return condition, IndexFilter(sessions=session_keys)

    def _first_matching(
        self, ranked: Sequence[int], condition: Condition, limit: int
    ) -> list[Message]:
        """The first `limit` of the ranked messages that match, in order; those that repeat a
        message of their author come last. Reads no more rows than necessary."""
        distinct = Distinct()
        # Of a condition on the author, only messages that fulfil it are among the ranked ones.
        most_match = condition == TRUE or values_named(condition, "author_key") is not None
        start, size = 0, limit if most_match else 4 * limit
        while start < len(ranked) and distinct.number < limit:
            keys = ranked[start : start + size]
            rows = self.tx.messages.matching(self.bounds.workspace, keys, condition)
            distinct.add(rows[key] for key in keys if key in rows)
            start, size = start + size, 2 * size
        return distinct.messages[:limit]

    def _rank(
        self, depth: int, limit: int, index_filter: IndexFilter, bridges: Bridges
    ) -> tuple[Sequence[int], bool]:
        """Keys of messages, best first, and whether a greater depth returns no further rows."""
        search = self.rt.settings.search
        candidates = self._candidates(depth, limit, index_filter)
        matches = candidates.matches
        exhausted = candidates.is_complete
        positions = self._around(sorted(ranking.keys_of(matches.hits)))
        matches = replace(matches, hits=ranking.hits_among(matches.hits, positions.keys()))
        scores = ranking.bm25_with_neighbours(
            matches,
            positions,
            _header_terms(self.query, ranking.keys_of(matches.hits), positions),
            candidates.words,
            share=search.neighbour_weight,
        )
        boosting = self._boosting(scores, matches, positions)
        by_text = boosting.ranked(scores, positions)
        exhausted = exhausted and len(by_text) <= depth
        lists = [by_text[:depth]]
        hits: dict[int, float] = {}
        if self.space is not None and self.vector is not None:
            hits = self._nearest(depth, index_filter)
            exhausted = exhausted and len(hits) < depth
            hits |= self._similarities_of_day(by_text[:depth], positions, hits)
            positions = self._with_positions(positions, hits)
            shared = ranking.share_similarities(hits, positions)
            lists.append(boosting.ranked(shared, positions))
        reply_to = self._replies(lists, positions, boosting)
        lists = [with_replies(keys, reply_to) for keys in lists]
        sources = bridges.sources(matches, candidates.words)
        if self.trace is not None:
            own = replace(candidates, matches=matches).bm25()
            self.trace.note(own, scores, hits, lists, boosting.by_key(positions), sources)
        weights = {key: source.weight for key, source in sources.items()}
        keys = ranking.fuse(lists, search.fusion_k, weighted=weights)
        return self._by_readable_authors(keys, positions), exhausted

    def _by_readable_authors(
        self, keys: Sequence[int], positions: Mapping[int, Position]
    ) -> Sequence[int]:
        """Without the messages that the condition excludes by their author: they need not be
        read."""
        author_keys = values_named(self.bounds.message_condition, "author_key")
        if author_keys is None:
            return keys
        if isinstance(positions, PositionTable):
            others = positions.by_others({key for key in author_keys if isinstance(key, int)})
        else:
            others = {key for key, each in positions.items() if each.author_key not in author_keys}
        return [key for key in keys if key not in others]

    def _candidates(self, depth: int, limit: int, index_filter: IndexFilter) -> TextCandidates:
        messages = self._messages_searched(index_filter)
        is_very_large = messages > VERY_MANY_MESSAGES
        pool = depth * (CANDIDATES_AMONG_VERY_MANY if is_very_large else CANDIDATES_PER_HIT)
        readable_keys = None if self.bounds.is_whole else self._readable_keys
        candidates = self._text_search().near(pool, index_filter, readable=readable_keys)
        return candidates.best(depth + limit) if messages > MANY_MESSAGES else candidates

    def _messages_searched(self, index_filter: IndexFilter) -> int:
        """The number of messages of the workspace, or of the bounds' sessions (0 if unknown)."""
        if index_filter.sessions is not None:
            return self.messages_of_sessions or 0
        workspace_key = self.bounds.workspace
        sizes = self.rt.storage.text.sizes(self.tx, MESSAGE, [workspace_key])
        return sizes.get(workspace_key, 0)

    def _rank_among(self, messages: Sequence[Message], bridges: Bridges) -> list[Message]:
        """Those of a few messages that match the query, best first. Their neighbours add to their
        scores whether they match or not."""
        by_key = {message.key: message for message in messages}
        positions = self._around(sorted(by_key))
        candidates = self._text_search().near(
            len(positions),
            EVERYTHING,
            sorted(positions),
            readable=None if self.bounds.is_whole else self._readable_keys,
        )
        matches = candidates.matches
        header_terms = _header_terms(self.query, ranking.keys_of(matches.hits), positions)
        search = self.rt.settings.search
        scores = ranking.bm25_with_neighbours(
            matches, positions, header_terms, candidates.words, share=search.neighbour_weight
        )
        own_scores = {key: score for key, score in scores.items() if key in by_key}
        boosting = self._boosting(own_scores, matches, positions)
        lists = [boosting.ranked(scores, positions)]
        hits: dict[int, float] = {}
        if self.space is not None and self.vector is not None:
            hits = self._similarities(list(by_key))
            shared = ranking.share_similarities(hits, positions)
            lists.append(boosting.ranked(shared, positions))
        reply_to = self._replies(lists, positions, boosting)
        lists = [[key for key in with_replies(keys, reply_to) if key in by_key] for keys in lists]
        sources = bridges.sources(matches, candidates.words)
        if self.trace is not None:
            own = candidates.bm25()
            self.trace.note(own, own_scores, hits, lists, boosting.by_key(positions), sources)
        weights = {key: source.weight for key, source in sources.items()}
        ranked = ranking.fuse(lists, search.fusion_k, weighted=weights)
        return [by_key[key] for key in ranked if key in by_key]

    def _text_search(self) -> TextSearch:
        return TextSearch(self.rt, self.tx, MESSAGE, self.bounds.workspace, self.query.words)

    def _nearest(
        self, k: int, index_filter: IndexFilter, ids: Sequence[int] | None = None
    ) -> dict[int, float]:
        """Similarities of the nearest messages, by key."""
        if self.space is None or self.vector is None:
            return {}
        hits = vector_query.query(self.rt, self.tx, self.space, self.vector, k, index_filter, ids)
        return {hit.key: hit.score for hit in hits or []}

    def _similarities(self, keys: Sequence[int]) -> dict[int, float]:
        """Those of these messages that have a vector, by key."""
        return self._nearest(len(keys), EVERYTHING, sorted(keys)) if keys else {}

    def _similarities_of_day(
        self, ranked: Sequence[int], positions: Mapping[int, Position], nearest: Collection[int]
    ) -> dict[int, float]:
        """Those of further messages of a day that the query names: what was said on it is seldom
        similar to a date."""
        if not self.query.dates:
            return {}
        return self._similarities(
            [
                key
                for key in ranked
                if key not in nearest and self.query.is_of_day(positions[key].created_at)
            ]
        )

    def _readable_keys(self, keys: Sequence[int]) -> set[int]:
        positions, session_keys = self._positions(keys), self.bounds.sessions
        if session_keys is None:
            return set(positions)
        allowed = frozenset(session_keys)
        return {key for key, position in positions.items() if position.session_key in allowed}

    def _positions(self, keys: Sequence[int]) -> dict[int, Position]:
        return self._readable(self.tx.messages.positions(keys, times=bool(self.query.dates)))

    def _around(self, keys: Sequence[int]) -> dict[int, Position] | PositionTable:
        """Positions of those of these messages that may be read, and of their neighbours."""
        if not self._may_read_all:
            # A message that the caller may not read must not change the score of one that it may.
            keys = sorted(self._positions(keys))
        if self.query.dates:
            return self._readable(self.tx.messages.around(keys, ranking.WINDOW))
        positions = self.tx.messages.neighbourhood(keys, ranking.WINDOW)
        return positions if self._may_read_all else positions.only(self._may_read)

    def _with_positions(
        self, positions: dict[int, Position] | PositionTable, keys: Collection[int]
    ) -> dict[int, Position] | PositionTable:
        """With those around messages that are not among them."""
        others = self._around(sorted(key for key in keys if key not in positions))
        if isinstance(positions, PositionTable):
            return positions | others
        return {**positions, **others}

    def _readable(self, positions: Iterable[Position]) -> dict[int, Position]:
        return {
            position.key: position
            for position in positions
            if self._may_read_all
            or self._may_read(position.session_key, position.author_key, position.seq)
        }

    @property
    def _may_read_all(self) -> bool:
        return not self.bounds.last_seq and not self.bounds.erased

    def _may_read(self, session_key: int, author_key: int, seq: int) -> bool:
        return self.bounds.may_read(session_key, seq) and author_key not in self.bounds.erased

    def _replies(
        self, lists: Sequence[Sequence[int]], positions: Mapping[int, Position], boosting: Boosting
    ) -> dict[int, int]:
        """Which replies are placed behind which questions: those of the peer that the query is
        about."""
        named = self.query.named
        authors = boosting.askers if named is None else {named.key}
        return replies(self.tx, self.bounds.workspace, lists, positions, authors)

    def _boosting(
        self,
        scores: Mapping[int, float],
        matches: TextMatches,
        positions: Mapping[int, Position],
    ) -> Boosting:
        askers = boosts.askers(self.tx, self.bounds, self.query, scores, positions)
        mentions = boosts.mentions(self.query, matches, positions)
        return Boosting(self.rt.settings.search, self.query, askers, mentions)


def _header_terms(
    query: Query, hits: Collection[int], positions: Mapping[int, Position]
) -> dict[int, frozenset[str]]:
    """The query's terms that a hit has only from its author and its day: it does not share them
    with its neighbours."""
    header_terms: dict[int, frozenset[str]] = {}
    if not query.names and not query.dates:
        return header_terms
    if isinstance(positions, PositionTable):  # without times: the query names no day
        authors = positions.authors()
        return {key: query.names[authors[key]] for key in hits if authors.get(key) in query.names}
    for key in hits:
        position = positions.get(key)
        if position is None:
            continue
        terms = query.names.get(position.author_key, _NOTHING)
        at = position.created_at
        if at is not None and query.is_of_day(at):
            terms |= frozenset(analyse(f"{at.day} {at:%B %Y}"))
        if terms:
            header_terms[key] = terms
    return header_terms
