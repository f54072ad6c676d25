"""Representations: what one peer knows about another, selected for a purpose and within a budget.

Without a query the newest conclusions are selected and, as an option, the most often derived ones.
With a query, conclusions and verbatim messages are ranked together and taken best first; the newest
conclusions fill the rest of the budget.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from memservice.domain import ranking
from memservice.domain.errors import InvalidInput
from memservice.domain.filters import Condition, all_of, equals, recall_allowlist
from memservice.domain.records import EXPLICIT, Conclusion, Message, Peer, Workspace
from memservice.runtime import Runtime
from memservice.services import moments, scopes, validation, visibility
from memservice.services.auth import policy
from memservice.services.auth.bounds import MAX_SESSIONS, Bounds, bounds_for, visible_to
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.peers import shown_names
from memservice.services.retrieval.conclusion_ranking import ConclusionHit
from memservice.services.retrieval.representation_draft import Draft, is_part, says_most
from memservice.services.retrieval.representation_text import Selection, markdown
from memservice.services.retrieval.search import Search
from memservice.spi.index_filter import IndexFilter
from memservice.spi.repositories.base import NEWEST
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction

FREQUENT = (
    Order("times_derived", descending=True),
    Order("created_at", descending=True),
    Order("key"),
)


class RepresentationOptions(Struct, frozen=True):
    """Options of a representation; None: not set."""

    target: str | None = None
    session: str | None = None
    filters: object = None
    scope: str | Sequence[str] | None = None
    search_query: str | None = None
    search_top_k: int | None = None
    search_max_distance: float | None = None
    include_most_frequent: bool = False
    max_conclusions: int = 100
    as_of: str | None = None
    """A time as the caller wrote it: only what was known then."""


class Pair(Struct, frozen=True):
    """An observer, an observed peer, and the readable part of that memory."""

    observer: Peer
    observed: Peer
    bounds: Bounds


def pair_of(
    caller: Bounds, observer: Peer, observed: Peer, session_keys: tuple[int, ...] | None = None
) -> Pair:
    """The memory of a pair within the caller's bounds. With a list of sessions: only from those,
    and only explicit conclusions, because a conclusion derived from several sessions has the key of
    only one."""
    condition = equals(observer_key=observer.key, observed_key=observed.key)
    bounds = caller.with_conclusions(
        condition, IndexFilter(observers=(observer.key,), observed=(observed.key,))
    )
    return Pair(
        observer,
        observed,
        bounds
        if session_keys is None
        else bounds.in_sessions(session_keys).stated_in(session_keys),
    )


def of_peer(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    peer_id: str,
    options: RepresentationOptions,
) -> str:
    """The representation as Markdown; empty for unknown peers and sessions."""
    return markdown(selection_for_peer(rt, principal, workspace_id, peer_id, options))


def selection_for_peer(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    peer_id: str,
    options: RepresentationOptions,
) -> Selection:
    """The conclusions and messages of the representation; empty for unknown peers and sessions."""
    policy.require(principal, workspace_id, peer_id=peer_id, needs=Permission.VIEW)
    if options.scope is not None:
        policy.refuse_narrow(principal)
    moment = moments.parse(rt, options.as_of)
    allowed = allowed_sessions(options)
    text = options.search_query or ""
    search = Search.begin(rt, workspace_id, text, "search_memory", "search_query")
    # Without a query, no read depends on another.
    with rt.storage.read() if text else rt.storage.read_committed() as tx:
        policy.require_memberships(tx, principal, allowed or ())
        pair = pair_for(tx, principal, workspace_id, peer_id, options, moment)
        if pair is None:
            return Selection()
        return select(tx, pair, options, rt.settings.representation.max_tokens, search)


def allowed_sessions(options: RepresentationOptions) -> list[str] | None:
    """The ids of the only sessions that are allowed; None if all are."""
    allowed = recall_allowlist(options.filters, options.session)
    return [options.session] if allowed is None and options.session is not None else allowed


def pair_for(
    tx: Transaction,
    principal: Principal,
    workspace_id: str,
    peer_id: str,
    options: RepresentationOptions,
    moment: datetime | None = None,
) -> Pair | None:
    """The pair of the request, within the caller's bounds and as it was known at a time (None:
    now); None if a peer does not exist. An unknown scope is NotFound."""
    if options.scope is not None and (options.filters or options.session):
        raise InvalidInput.at(
            "scope", message="scope cannot be combined with session_id or filters"
        )
    allowed = allowed_sessions(options)
    located = tx.workspaces.locate(workspace_id, peer_id=peer_id)
    workspace = located.workspace
    if workspace is None:
        if options.scope is not None:
            raise scopes.missing(
                options.scope if isinstance(options.scope, str) else options.scope[0], workspace_id
            )
        return None
    validation.refuse_scope(peer_id, located.peer, ("peer_id",))
    observed = located.peer
    if options.target:
        observed = tx.peers.by_slug(workspace.key, options.target)
        validation.refuse_scope(options.target, observed, ("target",))
    observer = located.peer
    sessions = None if allowed is None else session_keys(tx, workspace, allowed)
    if isinstance(options.scope, str):
        observer = scopes.find(tx, workspace, options.scope)
    elif options.scope is not None:
        sessions = scoped_sessions(tx, workspace, options.scope)
    if observer is None or observed is None:
        return None
    caller = bounds_for(tx, principal, workspace, is_erasing=located.is_erasing)
    return pair_of(caller.as_of(tx, moment), observer, observed, sessions)


def session_keys(tx: Transaction, workspace: Workspace, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(session.key for session in tx.sessions.by_slugs(workspace.key, names))


def scoped_sessions(tx: Transaction, workspace: Workspace, names: Sequence[str]) -> tuple[int, ...]:
    """The union of several scopes' sessions."""
    keys = {
        member.session_key
        for name in names
        for member in scopes.member_sessions(tx, scopes.find(tx, workspace, name))
    }
    if len(keys) > MAX_SESSIONS:
        raise InvalidInput.at(
            "scope",
            message=(
                f"These scopes have {len(keys)} sessions; at most {MAX_SESSIONS} can be searched"
            ),
        )
    return tuple(sorted(keys))


def select(
    tx: Transaction,
    pair: Pair,
    options: RepresentationOptions,
    budget: int,
    search: Search,
) -> Selection:
    """Select within the bounds: at most `max_conclusions` items and, for a query, at most `budget`
    tokens of text."""
    if pair.bounds.no_conclusions:
        return Selection()
    draft = Draft(options.max_conclusions, budget if options.search_query else None)
    workspace_key, condition = pair.bounds.workspace, pair.bounds.condition
    standing = pair.bounds.standing
    if options.search_query:
        draft.speakers = shown_names(tx, workspace_key, [pair.observed])
        _take_best(tx, pair, options, draft, search)
    if options.include_most_frequent and not draft.full:
        share = options.max_conclusions // (3 if options.search_query else 2)
        for conclusion in (
            tx.conclusions.page(workspace_key, condition, FREQUENT, limit=share, standing=standing)
            if share
            else ()
        ):
            draft.take_conclusion(conclusion)
    if not draft.full:
        for conclusion in tx.conclusions.page(
            workspace_key, condition, NEWEST, limit=options.max_conclusions, standing=standing
        ):
            draft.take_conclusion(conclusion)
    return Selection(
        list(draft.conclusions.values()), list(draft.messages.values()), draft.speakers
    )


def _take_best(
    tx: Transaction,
    pair: Pair,
    options: RepresentationOptions,
    draft: Draft,
    search: Search,
) -> None:
    """Conclusions and messages by the observed peer, ranked together by reciprocal rank, best
    first.

    A conclusion that a message contains word for word brings in that message instead of itself,
    because a sentence alone lacks what it answers. It is taken alone if the message does not fit,
    and instead of the message if it says nearly all of it (`says_most`).
    """
    limit = min(options.search_top_k or options.max_conclusions, options.max_conclusions)
    hits = search.conclusions(tx, pair.bounds, limit, options.search_max_distance)
    messages: list[Message] = []
    quotable: dict[int, Message] = {}
    # Messages have no distance to compare with the caller's maximum.
    if options.search_max_distance is None:
        readable = pair.bounds.with_messages(_quotable(tx, pair))
        messages = search.messages(tx, readable, limit)
        quotable = {message.key: message for message in messages}
        quotable |= _sources(tx, readable, hits, quotable)
    conclusions = {hit.conclusion.key: hit.conclusion for hit in hits}
    # One list of both: messages by their keys, conclusions that bring in no message by their keys
    # below zero.
    parts: dict[int, Conclusion] = {}
    # Key of a message → position of the conclusion that is taken instead of it.
    instead: dict[int, int] = {}
    positions: list[int] = []
    for key, conclusion in conclusions.items():
        source = next(
            (key for key in conclusion.message_keys if is_part(conclusion, quotable.get(key))),
            None,
        )
        if source is not None and says_most(conclusion, quotable[source]):
            instead.setdefault(source, -key)
            source = None
        positions.append(-key if source is None else source)
        if source is not None:
            parts.setdefault(source, conclusion)
    quoted = [instead.get(message.key, message.key) for message in messages]
    for key in ranking.fuse([positions, quoted], search.rt.settings.search.fusion_k):
        if key < 0:
            draft.take_conclusion(conclusions[-key])
        elif not draft.take_message(quotable[key]) and key in parts:
            draft.take_conclusion(parts[key])


def _sources(
    tx: Transaction, readable: Bounds, hits: Sequence[ConclusionHit], excluded: Container[int]
) -> Mapping[int, Message]:
    """The messages that explicit conclusions come from, by key, without the excluded ones."""
    keys = {
        key
        for hit in hits
        if hit.conclusion.level == EXPLICIT
        for key in hit.conclusion.message_keys
        if key not in excluded
    }
    if not keys:
        return {}
    condition = readable.message_condition
    if readable.sessions is not None:
        condition = all_of(condition, equals(session_key=readable.sessions))
    return tx.messages.matching(readable.workspace, sorted(keys), condition)


def _quotable(tx: Transaction, pair: Pair) -> Condition:
    """Messages by the observed peer, in active sessions, that the observer could see."""
    own = all_of(
        equals(author_key=pair.observed.key), visibility.visible(tx, pair.bounds.workspace)
    )
    return (
        own
        if pair.observer.key == pair.observed.key
        else all_of(own, visible_to(tx, pair.observer))
    )
