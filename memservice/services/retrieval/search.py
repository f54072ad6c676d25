"""Finding the right memory: candidates from text and vectors, boosted and fused into one order.

Each list is made good by itself before they are fused (`memservice.domain.ranking`): in the text list a hit shares its score with its
neighbours in the session, in both lists the one peer and the day that the query names weigh more. Filters that an index cannot
express are applied last, fetching more until there is enough or nothing is left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memservice.domain import ranking
from memservice.domain.errors import InvalidInput
from memservice.domain.filters import FALSE, TRUE, Node, all_of, parse_filters, resources, texts_named, where
from memservice.domain.records import ACTIVE, DELETING, Conclusion, Message, Peer, Space, Workspace
from memservice.domain.text.analysis import analyse
from memservice.domain.text.dates import (
    NamedDate,
    dates_named,
)
from memservice.domain.text.names import (
    candidate_name_tokens,
    without_names,
)
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import (
    scopes,
    visibility,
)
from memservice.services.auth import policy
from memservice.services.auth.bounds import (
    MAX_SESSIONS,
    Bounds,
    bounds_for,
    seen_by,
)
from memservice.services.auth.principal import Principal
from memservice.services.indexing import CONCLUSION, MESSAGE
from memservice.services.peers import spoken_name
from memservice.services.retrieval import query_embedding
from memservice.services.retrieval.query_embedding import (
    NOT_ASKED,
    Remote,
)
from memservice.services.retrieval.vector_query import nearest
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import (
    EVERYTHING,
    Where,
)
from memservice.spi.repositories import Position
from memservice.spi.repositories.base import NEWEST
from memservice.spi.rows import Order
from memservice.spi.storage import View
from memservice.telemetry.context import Reason, embedding_for

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

MAX_TERMS = 64
"""Distinct terms of a query that count; further ones are too many to tell anything."""

POOL = 8
"""Text candidates that are scored for each one that goes into fusion."""

LENDERS = 4
"""Of those, how many for each one share their score with their neighbours."""

_NOTHING: frozenset[str] = frozenset()

NEWEST_STORED = (Order("key", descending=True),)

FEW = 1_000
"""Rows that match a filter that no index knows and are ranked one by one, where looking further down the list would take longer."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query, taken apart once for all the lists that it is asked of."""

    text: str
    terms: tuple[str, ...]
    named: Peer | None
    """The one peer that the query names."""
    dates: Sequence[NamedDate]
    names: Mapping[int, frozenset[str]]
    """For each peer that it names (by key), the terms of that peer's name."""
    unnamed: str
    """The query without the names of the workspace's peers: a short message that says a name is by the other speaker."""


def understand(view: View, workspace: int, query: str) -> Question:
    text: str = strip_nul(query)
    terms = tuple(dict.fromkeys(analyse(text)))[:MAX_TERMS]
    found = view.peers.named(workspace, candidate_name_tokens(text))
    peers = {peer.key: peer for several in found.values() for peer in several}
    named = next(iter(peers.values())) if len(peers) == 1 else None
    names = {peer.key: frozenset(analyse(spoken_name(peer))) for peer in peers.values()}
    return Question(text, terms, named, dates_named(text), names, without_names(text, found))


def remote_vectors(rt: Runtime, workspace: str, query: str, purpose: str = "search_messages") -> Remote:
    """The query's vectors by those embedders of a workspace's spaces that are not inline; asked with no view open. `purpose`: as
    `ModelCall` lists them."""
    if not rt.has_remote_embedder:
        return NOT_ASKED
    with rt.storage.read() as view:
        place = view.workspaces.by_slug(workspace)
        embedders = active_embedders(view, place)
        if place is None or not embedders:
            return NOT_ASKED
        question = understand(view, place.key, query)
    with embedding_for(Reason(purpose, place.key, place.slug)):
        return query_embedding.remote_vectors(rt, embedders, question.unnamed)


def active_embedders(view: View, workspace: Workspace | None) -> set[str]:
    """Ids of the embedders by whose vectors a workspace is answered."""
    spaces = [] if workspace is None else view.spaces.of_workspace(workspace.key)
    return {space.embedder for space in spaces if space.state == ACTIVE}


def search(
    rt: Runtime,
    who: Principal,
    workspace: str,
    query: str,
    limit: int = 10,
    filters: object = None,
    session: str | None = None,
    peer: str | None = None,
    scope: str | None = None,
) -> list[Message]:
    """Messages of a workspace, a session, a peer (by it) or a scope's sessions, best first. Unknown containers hold nothing."""
    policy.require(who, workspace, peer=peer, session=session, member=session is not None)
    given, perspective = _without_fixed(filters, session, peer, scope)
    condition = parse_filters(given, resources.MESSAGE, workspace=workspace)
    remote = remote_vectors(rt, workspace, query)
    with rt.storage.read() as view:
        located = visibility.locate(view, workspace, session=session, peer=peer)
        place = located.workspace
        if place is None:
            if scope is not None:
                raise scopes.missing(scope, workspace)
            return []
        if session is not None and (located.session is None or located.session.state == DELETING):
            return []
        if peer is not None and located.peer is None:
            return []
        sessions = _sessions_of(view, place, located.session.key if located.session else None, scope)
        sessions = sessions_named(view, place, condition) if sessions is None else sessions
        if perspective is not None:
            condition = all_of(condition, perspective_of(view, place, perspective))
        if located.peer is not None:
            condition = all_of(condition, where(author_key=located.peer.key))
        if session is None:
            condition = all_of(condition, visibility.going_on(view, place.key))
        within = bounds_for(view, who, place).saying(condition)
        return find_messages(rt, view, within if sessions is None else within.among(sessions), query, limit, remote)


def _without_fixed(filters: object, session: str | None, peer: str | None, scope: str | None) -> tuple[object, str | None]:
    """The caller's filter without what the route fixes anyway, and its `peer_perspective`."""
    if not isinstance(filters, Mapping):
        return filters, None
    fixed = {"workspace_id"}
    fixed |= {"session_id"} if session is not None else set()
    fixed |= {"peer_id"} if peer is not None else set()
    if scope is not None and "session_id" in filters:
        raise InvalidInput.at("body", "scope", message="scope cannot be combined with a session_id filter")
    perspective = filters.get("peer_perspective")
    if perspective is not None and not isinstance(perspective, str):
        raise InvalidInput.at("body", "filters", "peer_perspective", message="peer_perspective must be the id of a peer")
    rest = {name: value for name, value in filters.items() if name not in fixed and name != "peer_perspective"}
    return rest, strip_nul(perspective)


def _sessions_of(view: View, workspace: Workspace, session: int | None, scope: str | None) -> tuple[int, ...] | None:
    if session is not None:
        return (session,)
    if scope is None:
        return None
    return tuple(member.session_key for member in scopes.member_sessions(view, scopes.find(view, workspace, scope)))


def sessions_named(view: View, workspace: Workspace, condition: Node) -> tuple[int, ...] | None:
    """The only sessions in which a condition can hold, so that an index need not look elsewhere; None: any."""
    names = texts_named(condition, "session")
    if names is None or len(names) > MAX_SESSIONS:
        return None
    return tuple(session.key for session in view.sessions.by_slugs(workspace.key, names))


def perspective_of(view: View, workspace: Workspace, peer: str) -> Node:
    """What the peer of that name can have seen; nothing if there is none."""
    found = view.peers.by_slug(workspace.key, peer)
    return FALSE if found is None else seen_by(view, found)


def find_messages(
    rt: Runtime,
    view: View,
    bounds: Bounds,
    query: str,
    limit: int,
    remote: Remote = NOT_ASKED,
) -> list[Message]:
    """The best `limit` messages within the bounds for a query, best first."""
    workspace, condition, sessions = bounds.workspace, bounds.said, bounds.sessions
    if sessions is not None and len(sessions) > MAX_SESSIONS:
        condition, sessions = all_of(condition, where(session_key=sessions)), None
    narrowed = EVERYTHING if sessions is None else Where(sessions=sessions)
    if sessions is not None:
        condition = all_of(condition, where(session_key=sessions))
    question = understand(view, workspace, query)
    space = view.spaces.active(workspace, MESSAGE) if question.terms or remote else None
    vector = query_embedding.vector_in(rt, space, question.unnamed, remote)
    if not question.terms and vector is None:
        # Nothing to look for: the newest come first.
        return view.rows.page(Message, all_of(where(workspace_key=workspace), condition), NEWEST_STORED, limit)
    first = depth = max(rt.settings.search.depth, limit)
    while True:
        listed, exhausted = _ranked_messages(rt, view, workspace, question, depth, narrowed, space, vector)
        kept = _first_matching(view, workspace, listed, condition, limit)
        if len(kept) >= limit or exhausted:
            return kept
        if depth == first:
            few = view.rows.page(Message, all_of(where(workspace_key=workspace), condition), NEWEST_STORED, FEW + 1)
            if len(few) <= FEW:
                return _ranked_among(rt, view, workspace, question, few, space, vector)[:limit]
        depth *= 4


def _first_matching(view: View, workspace: int, listed: Sequence[int], condition: Node, limit: int) -> list[Message]:
    """The first `limit` of the listed messages that match, in the list's order; no more are read than it takes."""
    kept: list[Message] = []
    start, size = 0, limit if condition == TRUE else 4 * limit
    while start < len(listed) and len(kept) < limit:
        keys = listed[start : start + size]
        found = view.messages.matching(workspace, keys, condition)
        kept += [found[key] for key in keys if key in found]
        start, size = start + size, 2 * size
    return kept[:limit]


def _ranked_messages(
    rt: Runtime,
    view: View,
    workspace: int,
    question: Question,
    depth: int,
    narrowed: Where,
    space: Space | None,
    vector: Vector | None,
) -> tuple[list[int], bool]:
    """Keys of messages, best first, and whether there are no others to be had by asking for more."""
    search = rt.settings.search
    pool = depth * POOL
    matches = rt.storage.text.search(view, MESSAGE, workspace, question.terms, pool, narrowed)
    best = frozenset(ranking.ranked(ranking.bm25(matches), depth * LENDERS))
    exhausted = len(matches.hits) < pool and len(best) == len(matches.hits)
    matches = replace(matches, hits=[hit for hit in matches.hits if hit.key in best])
    places = {position.key: position for position in view.messages.positions(sorted(best))}
    near = view.messages.around([(place.session_key, place.seq) for place in places.values()], ranking.REACH)
    places |= {position.key: position for position in near}
    scores = ranking.lend(matches, places, _heads(question, best, places), share=search.neighbour_weight)
    told = _boosted(rt, question, scores, places)
    exhausted = exhausted and len(told) <= depth
    lists = [told[:depth]]
    if space is not None and vector is not None:
        hits = nearest(rt, view, space, vector, depth, narrowed) or []
        dense = {hit.key: hit.score for hit in hits}
        missing = [key for key in dense if key not in places]
        places |= {position.key: position for position in view.messages.positions(missing)}
        lists.append(_boosted(rt, question, dense, places))
        exhausted = exhausted and len(hits) < depth
    return ranking.fuse(lists, search.fusion_k), exhausted


def _ranked_among(
    rt: Runtime, view: View, workspace: int, question: Question, few: Sequence[Message], space: Space | None, vector: Vector | None
) -> list[Message]:
    """Those of a few messages that the query hits, best first. Their neighbours lend to them as ever, whether they match or not."""
    wanted = {message.key: message for message in few}
    places = {position.key: position for position in view.messages.positions(sorted(wanted))}
    near = view.messages.around([(place.session_key, place.seq) for place in places.values()], ranking.REACH)
    places |= {position.key: position for position in near}
    matches = rt.storage.text.search(view, MESSAGE, workspace, question.terms, len(places), EVERYTHING, sorted(places))
    heads = _heads(question, [hit.key for hit in matches.hits], places)
    scores = ranking.lend(matches, places, heads, share=rt.settings.search.neighbour_weight)
    lists = [_boosted(rt, question, {key: score for key, score in scores.items() if key in wanted}, places)]
    if space is not None and vector is not None:
        hits = nearest(rt, view, space, vector, len(wanted), EVERYTHING, sorted(wanted)) or []
        lists.append(_boosted(rt, question, {hit.key: hit.score for hit in hits}, places))
    return [wanted[key] for key in ranking.fuse(lists, rt.settings.search.fusion_k)]


def _heads(question: Question, hits: Collection[int], places: Mapping[int, Position]) -> dict[int, frozenset[str]]:
    """The question's terms that a hit has only because of who said it and when: they are not its neighbours' as well."""
    heads: dict[int, frozenset[str]] = {}
    for key in hits:
        place = places.get(key)
        if place is None:
            continue
        terms = question.names.get(place.author_key, _NOTHING)
        if any(date.matches(place.created_at) for date in question.dates):
            terms |= frozenset(analyse(f"{place.created_at.day} {place.created_at:%B %Y}"))
        if terms:
            heads[key] = terms
    return heads


def _boosted(rt: Runtime, question: Question, scores: Mapping[int, float], places: Mapping[int, Position]) -> list[int]:
    """A list in order, its scores as shares of the best, raised for the peer and the day that the question names."""
    search = rt.settings.search
    boosted = {key: score for key, score in ranking.normalise(scores).items() if key in places}
    if question.named is not None:
        for key in boosted:
            boosted[key] += search.name_boost if places[key].author_key == question.named.key else 0.0
    if question.dates:
        for key in boosted:
            boosted[key] += search.date_boost if any(date.matches(places[key].created_at) for date in question.dates) else 0.0
    return ranking.ranked(boosted)


@dataclass(frozen=True, slots=True)
class Found:
    """A conclusion that was found, and its cosine similarity to the query where one is known."""

    conclusion: Conclusion
    similarity: float | None


def find_conclusions(
    rt: Runtime,
    view: View,
    bounds: Bounds,
    query: str,
    limit: int,
    max_distance: float | None = None,
    remote: Remote = NOT_ASKED,
) -> list[Found]:
    """The best `limit` live conclusions within the bounds for a query, best first.

    `max_distance` bounds the cosine distance. Distances of an embedder that does not understand paraphrases say little about a row
    that shares the query's words, so there the bound applies only to rows that share none.
    """
    workspace, narrowed, condition = bounds.workspace, bounds.narrowed, bounds.condition
    question = understand(view, workspace, query)
    space = view.spaces.active(workspace, CONCLUSION)
    vector = query_embedding.vector_in(rt, space, question.unnamed, remote)
    if not question.terms and vector is None:
        # Nothing to look for: the newest come first. None of them has a distance.
        newest = view.conclusions.page(workspace, all_of(_fitting(narrowed), condition), NEWEST, limit) if max_distance is None else []
        return [Found(conclusion, None) for conclusion in newest]
    first = depth = max(rt.settings.search.depth, limit)
    ids: list[int] | None = None
    while True:
        listed, similarity, exhausted = _ranked_conclusions(
            rt, view, workspace, question, space, vector, depth, narrowed, max_distance, ids
        )
        kept = view.conclusions.by_keys(listed, all_of(where(workspace_key=workspace), condition))
        if len(kept) >= limit or exhausted or ids is not None:
            found = [Found(kept[key], similarity.get(key)) for key in listed if key in kept][:limit]
            if len(found) < limit and max_distance is None and not rt.vectors_transactional:
                found += _not_in_index(rt, view, bounds, space, vector, kept, limit - len(found))
            return found
        if depth == first:
            few = view.conclusions.page(workspace, all_of(_fitting(narrowed), condition), NEWEST, FEW + 1)
            ids = [conclusion.key for conclusion in few] if len(few) <= FEW else None
        depth = 4 * depth if ids is None else max(depth, len(ids))


def _not_in_index(
    rt: Runtime,
    view: View,
    bounds: Bounds,
    space: Space | None,
    vector: Vector | None,
    known: Collection[int],
    limit: int,
) -> list[Found]:
    """Conclusions that an index outside the storage did not return, nearest first: it may be slow or away, lack new rows, or still
    hold deleted ones. Without an embedder that can be called here, the newest come first. Looks at the newest `FEW` only."""
    fitting = all_of(_fitting(bounds.narrowed), bounds.condition)
    newest = view.conclusions.page(bounds.workspace, fitting, NEWEST, FEW)
    missing = [conclusion for conclusion in newest if conclusion.key not in known]
    embedder = None if space is None else rt.embedder_of(space.embedder)
    if vector is None or embedder is None or Capability.INLINE not in embedder.capabilities:
        return [Found(conclusion, None) for conclusion in missing[:limit]]
    vectors = embedder.embed([conclusion.content for conclusion in missing])
    near = [Found(c, float(row @ vector)) for c, row in zip(missing, vectors, strict=True)]
    return sorted(near, key=lambda found: -(found.similarity or 0.0))[:limit]


def _fitting(narrowed: Where) -> Node:
    """The conclusions that an index would be narrowed to."""
    given = {
        "session_key": narrowed.sessions,
        "observer_key": narrowed.observers,
        "observed_key": narrowed.observed,
        "level": narrowed.levels,
    }
    return where(**{name: values for name, values in given.items() if values is not None})


def _ranked_conclusions(
    rt: Runtime,
    view: View,
    workspace: int,
    question: Question,
    space: Space | None,
    vector: Vector | None,
    depth: int,
    narrowed: Where,
    max_distance: float | None,
    ids: Sequence[int] | None,
) -> tuple[list[int], dict[int, float], bool]:
    """Keys of conclusions (of `ids` only, if they are given), best first, similarities to the query as far as they are known, and
    whether there are no others to be had by asking for more."""
    matches = rt.storage.text.search(view, CONCLUSION, workspace, question.terms, depth * POOL, narrowed, ids)
    scores = ranking.bm25(matches)
    lists = [ranking.ranked(scores, depth)]
    exhausted = len(scores) <= depth
    similarity: dict[int, float] = {}
    if vector is not None and space is not None:
        hits = nearest(rt, view, space, vector, depth, narrowed, ids) or []
        similarity = {hit.key: hit.score for hit in hits}
        lists.append([hit.key for hit in hits])
        exhausted = exhausted and len(hits) < depth
        if max_distance is not None:
            unknown = [key for key in lists[0] if key not in similarity]
            similarity |= {hit.key: hit.score for hit in nearest(rt, view, space, vector, len(unknown), narrowed, unknown) or []}
    listed = ranking.fuse(lists, rt.settings.search.fusion_k)
    if max_distance is not None:
        understands = space is not None and query_embedding.understands(rt, space)
        # A row whose vector is not made yet, or any row while no vector of the query can be had, is there for its words.
        close = {key for key, found in similarity.items() if 1.0 - found <= max_distance}
        listed = [key for key in listed if key in close or (key in scores and not (understands and key in similarity))]
    return listed, similarity, exhausted
