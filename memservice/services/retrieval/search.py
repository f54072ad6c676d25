"""Finding the right memory: candidates from text and vectors, boosted and fused into one order.

Each list is made good by itself before they are fused (`memservice.domain.ranking`): in the text
list a hit shares its score with its neighbours in the session, in both lists the one peer and the
day that the query names weigh more. Filters that an index cannot express are applied last, fetching
more until there is enough or nothing is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memservice.domain import ranking
from memservice.domain.errors import InvalidInput
from memservice.domain.filters import (
    FALSE,
    TRUE,
    Condition,
    all_of,
    equals,
    parse_filters,
    resources,
    texts_named,
)
from memservice.domain.records import ACTIVE, DELETING, Conclusion, Message, Peer, Space, Workspace
from memservice.domain.text.analysis import analyse
from memservice.domain.text.dates import NamedDate, dates_named
from memservice.domain.text.names import candidate_name_tokens, without_names
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import scopes, visibility
from memservice.services.auth import policy
from memservice.services.auth.bounds import MAX_SESSIONS, Bounds, bounds_for, seen_by
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.indexing import CONCLUSION, MESSAGE
from memservice.services.peers import spoken_name
from memservice.services.retrieval import query_embedding
from memservice.services.retrieval.query_embedding import NOT_ASKED, Remote
from memservice.services.retrieval.vector_query import query
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.repositories import Position
from memservice.spi.repositories.base import NEWEST
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction
from memservice.telemetry.context import Reason, embedding_for

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

MAX_TERMS = 64
"""Distinct terms of a query that count; further ones are too many to tell anything."""

CANDIDATES_PER_HIT = 8
"""Text candidates that are scored for each one that goes into fusion."""

NEIGHBOUR_HITS = 4
"""Of those, how many for each one share their score with their neighbours."""

_NOTHING: frozenset[str] = frozenset()

NEWEST_STORED = (Order("key", descending=True),)

EXACT_RANKING_MAX = 1_000
"""Rows that match a filter that no index knows and are ranked one by one, where looking further
down the list would take longer."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query, taken apart once for all the lists that it is asked of."""

    text: str
    terms: tuple[str, ...]
    named: Peer | None
    """The one peer that the query names."""
    dates: Sequence[NamedDate]
    names: Mapping[int, frozenset[str]]
    """For each peer that it names (by key), the terms of that peer's name."""
    unnamed: str
    """The query without the names of the workspace's peers: a short message that says a name is by
    the other speaker."""


def analyse_query(tx: Transaction, workspace_key: int, query: str) -> Query:
    text: str = strip_nul(query)
    terms = tuple(dict.fromkeys(analyse(text)))[:MAX_TERMS]
    found = tx.peers.named(workspace_key, candidate_name_tokens(text))
    peers = {peer.key: peer for several in found.values() for peer in several}
    named = next(iter(peers.values())) if len(peers) == 1 else None
    names = {peer.key: frozenset(analyse(spoken_name(peer))) for peer in peers.values()}
    return Query(text, terms, named, dates_named(text), names, without_names(text, found))


def remote_vectors(
    rt: Runtime, workspace_id: str, query: str, purpose: str = "search_messages"
) -> Remote:
    """The query's vectors by those embedders of a workspace's spaces that are not inline; asked
    with no view open. `purpose`: as `ModelCall` lists them."""
    if not rt.has_remote_embedder:
        return NOT_ASKED
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
        embedders = active_embedders(tx, workspace)
        if workspace is None or not embedders:
            return NOT_ASKED
        question = analyse_query(tx, workspace.key, query)
    with embedding_for(Reason(purpose, workspace.key, workspace.slug)):
        return query_embedding.remote_vectors(rt, embedders, question.unnamed)


def active_embedders(tx: Transaction, workspace: Workspace | None) -> set[str]:
    """Ids of the embedders by whose vectors a workspace is answered."""
    spaces = [] if workspace is None else tx.spaces.of_workspace(workspace.key)
    return {space.embedder for space in spaces if space.state == ACTIVE}


def search(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    query: str,
    limit: int = 10,
    filters: object = None,
    session_id: str | None = None,
    peer_id: str | None = None,
    scope: str | None = None,
) -> list[Message]:
    """Messages of a workspace, a session, a peer (by it) or a scope's sessions, best first. Unknown
    containers hold nothing."""
    policy.require(
        principal,
        workspace_id,
        peer_id=peer_id,
        session_id=session_id,
        member=session_id is not None,
        needs=Permission.VIEW,
    )
    given, perspective = _without_fixed(filters, session_id, peer_id, scope)
    condition = parse_filters(given, resources.MESSAGE, workspace_id=workspace_id)
    remote = remote_vectors(rt, workspace_id, query)
    with rt.storage.read() as tx:
        located = visibility.find(tx, workspace_id, session_id=session_id, peer_id=peer_id)
        workspace = located.workspace
        if workspace is None:
            if scope is not None:
                raise scopes.missing(scope, workspace_id)
            return []
        if session_id is not None and (
            located.session is None or located.session.state == DELETING
        ):
            return []
        if peer_id is not None and located.peer is None:
            return []
        session_keys = _sessions_of(
            tx, workspace, located.session.key if located.session else None, scope
        )
        session_keys = (
            sessions_named(tx, workspace, condition) if session_keys is None else session_keys
        )
        if perspective is not None:
            condition = all_of(condition, perspective_of(tx, workspace, perspective))
        if located.peer is not None:
            condition = all_of(condition, equals(author_key=located.peer.key))
        if session_id is None:
            condition = all_of(condition, visibility.visible(tx, workspace.key))
        within = bounds_for(tx, principal, workspace).saying(condition)
        return find_messages(
            rt,
            tx,
            within if session_keys is None else within.among(session_keys),
            query,
            limit,
            remote,
        )


def _without_fixed(
    filters: object, session_id: str | None, peer_id: str | None, scope: str | None
) -> tuple[object, str | None]:
    """The caller's filter without what the route fixes anyway, and its `peer_perspective`."""
    if not isinstance(filters, Mapping):
        return filters, None
    fixed = {"workspace_id"}
    fixed |= {"session_id"} if session_id is not None else set()
    fixed |= {"peer_id"} if peer_id is not None else set()
    if scope is not None and "session_id" in filters:
        raise InvalidInput.at(
            "body", "scope", message="scope cannot be combined with a session_id filter"
        )
    perspective = filters.get("peer_perspective")
    if perspective is not None and not isinstance(perspective, str):
        raise InvalidInput.at(
            "body",
            "filters",
            "peer_perspective",
            message="peer_perspective must be the id of a peer",
        )
    rest = {
        name: value
        for name, value in filters.items()
        if name not in fixed and name != "peer_perspective"
    }
    return rest, strip_nul(perspective)


def _sessions_of(
    tx: Transaction, workspace: Workspace, session_key: int | None, scope: str | None
) -> tuple[int, ...] | None:
    if session_key is not None:
        return (session_key,)
    if scope is None:
        return None
    return tuple(
        member.session_key
        for member in scopes.member_sessions(tx, scopes.find(tx, workspace, scope))
    )


def sessions_named(
    tx: Transaction, workspace: Workspace, condition: Condition
) -> tuple[int, ...] | None:
    """The only sessions in which a condition can hold, so that an index need not look elsewhere;
    None: any."""
    names = texts_named(condition, "session")
    if names is None or len(names) > MAX_SESSIONS:
        return None
    return tuple(session.key for session in tx.sessions.by_slugs(workspace.key, names))


def perspective_of(tx: Transaction, workspace: Workspace, peer_id: str) -> Condition:
    """What the peer of that name can have seen; nothing if there is none."""
    peer = tx.peers.by_slug(workspace.key, peer_id)
    return FALSE if peer is None else seen_by(tx, peer)


def find_messages(
    rt: Runtime,
    tx: Transaction,
    bounds: Bounds,
    query: str,
    limit: int,
    remote: Remote = NOT_ASKED,
) -> list[Message]:
    """The best `limit` messages within the bounds for a query, best first."""
    workspace_key, condition, session_keys = bounds.workspace, bounds.said, bounds.sessions
    if session_keys is not None and len(session_keys) > MAX_SESSIONS:
        condition, session_keys = all_of(condition, equals(session_key=session_keys)), None
    index_filter = EVERYTHING if session_keys is None else IndexFilter(sessions=session_keys)
    if session_keys is not None:
        condition = all_of(condition, equals(session_key=session_keys))
    question = analyse_query(tx, workspace_key, query)
    space = tx.spaces.active(workspace_key, MESSAGE) if question.terms or remote else None
    vector = query_embedding.vector_in(rt, space, question.unnamed, remote)
    if not question.terms and vector is None:
        # Nothing to look for: the newest come first.
        return tx.rows.page(
            Message, all_of(equals(workspace_key=workspace_key), condition), NEWEST_STORED, limit
        )
    first = depth = max(rt.settings.search.depth, limit)
    while True:
        listed, exhausted = _ranked_messages(
            rt, tx, bounds, question, depth, index_filter, space, vector
        )
        messages = _first_matching(tx, workspace_key, listed, condition, limit)
        if len(messages) >= limit or exhausted:
            return messages
        if depth == first:
            few = tx.rows.page(
                Message,
                all_of(equals(workspace_key=workspace_key), condition),
                NEWEST_STORED,
                EXACT_RANKING_MAX + 1,
            )
            if len(few) <= EXACT_RANKING_MAX:
                return _ranked_among(rt, tx, bounds, question, few, space, vector)[:limit]
        depth *= 4


def _first_matching(
    tx: Transaction, workspace_key: int, listed: Sequence[int], condition: Condition, limit: int
) -> list[Message]:
    """The first `limit` of the listed messages that match, in the list's order; no more are read
    than it takes."""
    messages: list[Message] = []
    start, size = 0, limit if condition == TRUE else 4 * limit
    while start < len(listed) and len(messages) < limit:
        keys = listed[start : start + size]
        found = tx.messages.matching(workspace_key, keys, condition)
        messages += [found[key] for key in keys if key in found]
        start, size = start + size, 2 * size
    return messages[:limit]


def _ranked_messages(
    rt: Runtime,
    tx: Transaction,
    bounds: Bounds,
    question: Query,
    depth: int,
    index_filter: IndexFilter,
    space: Space | None,
    vector: Vector | None,
) -> tuple[list[int], bool]:
    """Keys of messages, best first, and whether there are no others to be had by asking for
    more."""
    search = rt.settings.search
    pool = depth * CANDIDATES_PER_HIT
    matches = rt.storage.text.search(
        tx, MESSAGE, bounds.workspace, question.terms, pool, index_filter
    )
    best = frozenset(ranking.ranked(ranking.bm25(matches), depth * NEIGHBOUR_HITS))
    exhausted = len(matches.hits) < pool and len(best) == len(matches.hits)
    positions = _readable(bounds, tx.messages.positions(sorted(best)))
    # What the caller may not read must not lend its words to what it may.
    matches = replace(matches, hits=[hit for hit in matches.hits if hit.key in positions])
    near = tx.messages.around(
        [(position.session_key, position.seq) for position in positions.values()], ranking.WINDOW
    )
    positions |= _readable(bounds, near)
    scores = ranking.bm25_with_neighbours(
        matches, positions, _header_terms(question, best, positions), share=search.neighbour_weight
    )
    told = _boosted(rt, question, scores, positions)
    exhausted = exhausted and len(told) <= depth
    lists = [told[:depth]]
    if space is not None and vector is not None:
        hits = query(rt, tx, space, vector, depth, index_filter) or []
        dense = {hit.key: hit.score for hit in hits}
        missing = [key for key in dense if key not in positions]
        positions |= _readable(bounds, tx.messages.positions(missing))
        lists.append(_boosted(rt, question, dense, positions))
        exhausted = exhausted and len(hits) < depth
    return ranking.fuse(lists, search.fusion_k), exhausted


def _ranked_among(
    rt: Runtime,
    tx: Transaction,
    bounds: Bounds,
    question: Query,
    few: Sequence[Message],
    space: Space | None,
    vector: Vector | None,
) -> list[Message]:
    """Those of a few messages that the query hits, best first. Their neighbours lend to them as
    ever, whether they match or not."""
    wanted = {message.key: message for message in few}
    positions = _readable(bounds, tx.messages.positions(sorted(wanted)))
    near = tx.messages.around(
        [(position.session_key, position.seq) for position in positions.values()], ranking.WINDOW
    )
    positions |= _readable(bounds, near)
    matches = rt.storage.text.search(
        tx, MESSAGE, bounds.workspace, question.terms, len(positions), EVERYTHING, sorted(positions)
    )
    heads = _header_terms(question, [hit.key for hit in matches.hits], positions)
    scores = ranking.bm25_with_neighbours(
        matches, positions, heads, share=rt.settings.search.neighbour_weight
    )
    lists = [
        _boosted(
            rt, question, {key: score for key, score in scores.items() if key in wanted}, positions
        )
    ]
    if space is not None and vector is not None:
        hits = query(rt, tx, space, vector, len(wanted), EVERYTHING, sorted(wanted)) or []
        lists.append(_boosted(rt, question, {hit.key: hit.score for hit in hits}, positions))
    return [wanted[key] for key in ranking.fuse(lists, rt.settings.search.fusion_k)]


def _readable(bounds: Bounds, positions: Iterable[Position]) -> dict[int, Position]:
    return {
        position.key: position
        for position in positions
        if bounds.may_read(position.session_key, position.seq)
    }


def _header_terms(
    question: Query, hits: Collection[int], positions: Mapping[int, Position]
) -> dict[int, frozenset[str]]:
    """The question's terms that a hit has only because of who said it and when: they are not its
    neighbours' as well."""
    heads: dict[int, frozenset[str]] = {}
    for key in hits:
        position = positions.get(key)
        if position is None:
            continue
        terms = question.names.get(position.author_key, _NOTHING)
        if any(date.matches(position.created_at) for date in question.dates):
            terms |= frozenset(analyse(f"{position.created_at.day} {position.created_at:%B %Y}"))
        if terms:
            heads[key] = terms
    return heads


def _boosted(
    rt: Runtime, question: Query, scores: Mapping[int, float], positions: Mapping[int, Position]
) -> list[int]:
    """A list in order, its scores as shares of the best, raised for the peer and the day that the
    question names."""
    search = rt.settings.search
    boosted = {key: score for key, score in ranking.normalise(scores).items() if key in positions}
    if question.named is not None:
        for key in boosted:
            boosted[key] += (
                search.name_boost if positions[key].author_key == question.named.key else 0.0
            )
    if question.dates:
        for key in boosted:
            boosted[key] += (
                search.date_boost
                if any(date.matches(positions[key].created_at) for date in question.dates)
                else 0.0
            )
    return ranking.ranked(boosted)


@dataclass(frozen=True, slots=True)
class FoundConclusion:
    """A conclusion that was found, and its cosine similarity to the query where one is known."""

    conclusion: Conclusion
    similarity: float | None


def find_conclusions(
    rt: Runtime,
    tx: Transaction,
    bounds: Bounds,
    query: str,
    limit: int,
    max_distance: float | None = None,
    remote: Remote = NOT_ASKED,
) -> list[FoundConclusion]:
    """The best `limit` live conclusions within the bounds for a query, best first.

    `max_distance` bounds the cosine distance. Distances of an embedder that does not understand
    paraphrases say little about a row that shares the query's words, so there the bound applies
    only to rows that share none.
    """
    workspace_key, index_filter, condition = bounds.workspace, bounds.narrowed, bounds.condition
    question = analyse_query(tx, workspace_key, query)
    space = tx.spaces.active(workspace_key, CONCLUSION)
    vector = query_embedding.vector_in(rt, space, question.unnamed, remote)
    if not question.terms and vector is None:
        # Nothing to look for: the newest come first. None of them has a distance.
        newest = (
            tx.conclusions.page(
                workspace_key, all_of(_fitting(index_filter), condition), NEWEST, limit
            )
            if max_distance is None
            else []
        )
        return [FoundConclusion(conclusion, None) for conclusion in newest]
    first = depth = max(rt.settings.search.depth, limit)
    ids: list[int] | None = None
    while True:
        listed, similarity, exhausted = _ranked_conclusions(
            rt, tx, workspace_key, question, space, vector, depth, index_filter, max_distance, ids
        )
        kept = tx.conclusions.by_keys(
            listed, all_of(equals(workspace_key=workspace_key), condition)
        )
        if len(kept) >= limit or exhausted or ids is not None:
            found_conclusions = [
                FoundConclusion(kept[key], similarity.get(key)) for key in listed if key in kept
            ][:limit]
            if (
                len(found_conclusions) < limit
                and max_distance is None
                and not rt.vectors_transactional
            ):
                found_conclusions += _not_in_index(
                    rt, tx, bounds, space, vector, kept, limit - len(found_conclusions)
                )
            return found_conclusions
        if depth == first:
            few = tx.conclusions.page(
                workspace_key,
                all_of(_fitting(index_filter), condition),
                NEWEST,
                EXACT_RANKING_MAX + 1,
            )
            ids = [conclusion.key for conclusion in few] if len(few) <= EXACT_RANKING_MAX else None
        depth = 4 * depth if ids is None else max(depth, len(ids))


def _not_in_index(
    rt: Runtime,
    tx: Transaction,
    bounds: Bounds,
    space: Space | None,
    vector: Vector | None,
    known: Collection[int],
    limit: int,
) -> list[FoundConclusion]:
    """Conclusions that an index outside the storage did not return, nearest first: it may be slow
    or away, lack new rows, or still hold deleted ones. Without an embedder that can be called here,
    the newest come first. Looks at the newest `EXACT_RANKING_MAX` only."""
    fitting = all_of(_fitting(bounds.narrowed), bounds.condition)
    newest = tx.conclusions.page(bounds.workspace, fitting, NEWEST, EXACT_RANKING_MAX)
    missing = [conclusion for conclusion in newest if conclusion.key not in known]
    embedder = None if space is None else rt.embedder_of(space.embedder)
    if vector is None or embedder is None or Capability.INLINE not in embedder.capabilities:
        return [FoundConclusion(conclusion, None) for conclusion in missing[:limit]]
    vectors = embedder.embed([conclusion.content for conclusion in missing])
    near = [
        FoundConclusion(c, float(row @ vector)) for c, row in zip(missing, vectors, strict=True)
    ]
    return sorted(near, key=lambda found_conclusion: -(found_conclusion.similarity or 0.0))[:limit]


def _fitting(index_filter: IndexFilter) -> Condition:
    """The conclusions that an index would be narrowed to."""
    given = {
        "session_key": index_filter.sessions,
        "observer_key": index_filter.observers,
        "observed_key": index_filter.observed,
        "level": index_filter.levels,
    }
    return equals(**{name: values for name, values in given.items() if values is not None})


def _ranked_conclusions(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    question: Query,
    space: Space | None,
    vector: Vector | None,
    depth: int,
    index_filter: IndexFilter,
    max_distance: float | None,
    ids: Sequence[int] | None,
) -> tuple[list[int], dict[int, float], bool]:
    """Keys of conclusions (of `ids` only, if they are given), best first, similarities to the query
    as far as they are known, and whether there are no others to be had by asking for more."""
    matches = rt.storage.text.search(
        tx, CONCLUSION, workspace_key, question.terms, depth * CANDIDATES_PER_HIT, index_filter, ids
    )
    scores = ranking.bm25(matches)
    lists = [ranking.ranked(scores, depth)]
    exhausted = len(scores) <= depth
    similarity: dict[int, float] = {}
    if vector is not None and space is not None:
        hits = query(rt, tx, space, vector, depth, index_filter, ids) or []
        similarity = {hit.key: hit.score for hit in hits}
        lists.append([hit.key for hit in hits])
        exhausted = exhausted and len(hits) < depth
        if max_distance is not None:
            unknown = [key for key in lists[0] if key not in similarity]
            similarity |= {
                hit.key: hit.score
                for hit in query(rt, tx, space, vector, len(unknown), index_filter, unknown) or []
            }
    listed = ranking.fuse(lists, rt.settings.search.fusion_k)
    if max_distance is not None:
        understands = space is not None and query_embedding.understands(rt, space)
        # A row whose vector is not made yet, or any row while no vector of the query can be had, is
        # there for its words.
        close = {key for key, found in similarity.items() if 1.0 - found <= max_distance}
        listed = [
            key
            for key in listed
            if key in close or (key in scores and not (understands and key in similarity))
        ]
    return listed, similarity, exhausted
