"""Contexts: the input for a model that is about to reply in a session, or about a peer, within a
budget of tokens."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from memservice.domain import tokens
from memservice.domain.errors import InvalidInput, Problem
from memservice.domain.records import LONG, SHORT, Message, Peer, Session, Summary, Workspace
from memservice.domain.values import name_problem
from memservice.runtime import Runtime
from memservice.services import cards, moments, remembered_pages, scopes, validation, visibility
from memservice.services.auth import policy
from memservice.services.auth.bounds import MAX_SESSIONS, bounds_for
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.retrieval import representation
from memservice.services.retrieval.representation import RepresentationOptions
from memservice.services.retrieval.representation_text import Selection, markdown, plain
from memservice.services.retrieval.search import Search
from memservice.spi.repositories.workspaces import Located
from memservice.spi.storage import Transaction
from memservice.telemetry.events import ContextRetrieved

SUMMARY_SHARE = 0.4
"""The share of the budget that a summary may take."""
SEARCH_PURPOSE = "session_context_search"
"""Purpose of the search for the query of a context (see `ModelCall`)."""


class PeerContext(Struct, frozen=True):
    peer: str
    target: str
    selection: Selection
    card: list[str] | None

    @property
    def representation(self) -> str:
        """The selection as Markdown."""
        return markdown(self.selection)


class SessionContextOptions(Struct, frozen=True):
    tokens: int | None = None
    summary: bool = True
    search_query: str | None = None
    peer_target: str | None = None
    peer_perspective: str | None = None
    scope: str | None = None
    sessions: Sequence[str] | None = None
    limit_to_session: bool = False
    search_top_k: int | None = None
    search_max_distance: float | None = None
    include_most_frequent: bool = False
    max_conclusions: int = 100
    as_of: str | None = None
    """A time as the caller wrote it: only what was known then, and no card."""


class SessionContext(Struct, frozen=True):
    session: str
    messages: Sequence[Message]
    """One contiguous tail of the session, oldest first."""
    summary: Summary | None
    selection: Selection | None
    """For the target; None without a target."""
    card: list[str] | None

    @property
    def representation(self) -> str | None:
        """The representation of the target as Markdown."""
        return None if self.selection is None else markdown(self.selection)


def of_peer(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    peer_id: str,
    options: RepresentationOptions,
) -> PeerContext:
    """Representation and card of the target from the peer's perspective. NotFound for a peer that
    does not exist."""
    policy.require(principal, workspace_id, peer_id=peer_id, needs=Permission.VIEW)
    began = time.perf_counter()
    moment = moments.parse(rt, options.as_of)
    text = options.search_query or ""
    search = Search.begin(rt, workspace_id, text, SEARCH_PURPOSE, "search_query")
    with rt.storage.read() as tx:
        # First, since it refuses scopes.
        pair = representation.pair_for(tx, principal, workspace_id, peer_id, options, moment)
        # Also raises NotFound for an unknown peer.
        card = cards.of(tx, workspace_id, peer_id, options.target)
        selection = Selection()
        if pair is not None:
            budget = rt.settings.representation.max_tokens
            selection = representation.select(tx, pair, options, budget, search)
    card = card if moment is None else None
    context = PeerContext(peer_id, options.target or peer_id, selection, card)
    if rt.hears_events:
        rt.emit(_peer_event(workspace_id, options, context, began))
    return context


def of_session(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    session_id: str,
    options: SessionContextOptions,
) -> SessionContext:
    """Summary, newest messages and, with a target, representation and card, within a budget of
    tokens.

    Representation and card are added first; a summary may take 40 % of the rest, and messages get
    the remainder.
    """
    began = time.perf_counter()
    context = _of_session(rt, principal, workspace_id, session_id, options)
    if rt.hears_events:
        rt.emit(_session_event(workspace_id, options, context, began))
    return context


def _of_session(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    session_id: str,
    options: SessionContextOptions,
) -> SessionContext:
    policy.require(
        principal, workspace_id, session_id=session_id, member=True, needs=Permission.VIEW
    )
    observer = options.peer_perspective or options.peer_target
    if observer:
        policy.require_own_peer(principal, observer)
    if options.scope is not None:
        policy.refuse_narrow(principal)
    _check(session_id, options)
    policy.require_sessions(principal, options.sessions or ())
    limit = rt.settings.app.get_context_max_tokens
    budget = limit if options.tokens is None else options.tokens
    if budget > limit:
        raise InvalidInput(
            Problem(
                ("tokens",),
                f"Input should be less than or equal to {limit}",
                "less_than_equal",
            )
        )
    moment = moments.parse(rt, options.as_of)
    query = options.search_query if options.peer_target else None
    search = Search.begin(rt, workspace_id, query or "", SEARCH_PURPOSE, "search_query")
    request = _Request(rt, principal, workspace_id, options, search, moment)
    # Without a target, the reads need not agree: messages up to a number that is read first, and a
    # summary, which covers some of them or newer ones, too.
    needs_snapshot = options.peer_target is not None or moment is not None
    with rt.storage.read() if needs_snapshot else rt.storage.read_committed() as tx:
        policy.require_memberships(tx, principal, options.sessions or ())
        located = visibility.find(tx, workspace_id, session_id=session_id)
        selection: Selection | None = None
        card: list[str] | None = None
        if options.peer_target:
            selection, card, spent = request.about_target(tx, located, budget)
            budget -= spent
        session = located.session
        if session is None or budget <= 0:
            return SessionContext(session_id, [], None, selection, card)
        # A summary may have words of a peer that is being erased.
        summarised = options.summary and not (
            located.is_erasing and visibility.has_erased(tx, session)
        )
        summary = _summary(tx, session, budget, moment) if summarised else None
        left = budget - (summary.tokens if summary else 0)
        messages = _tail(rt, tx, session, left, summary, moment)
        if located.is_erasing:
            messages = visibility.without_erased(tx, session.workspace_key, messages)
        return SessionContext(session_id, messages, summary, selection, card)


def _check(session_id: str, options: SessionContextOptions) -> None:
    target = options.peer_target or None
    if options.peer_perspective and not target:
        raise _refused(
            "peer_perspective", "peer_target must be provided if peer_perspective is provided"
        )
    if options.scope is not None:
        if options.peer_perspective:
            raise _refused("scope", "scope cannot be combined with peer_perspective")
        if not target:
            raise _refused("scope", "peer_target must be provided if scope is provided")
    if options.sessions is None:
        return
    if options.scope is not None:
        raise _refused("sessions", "sessions cannot be combined with scope")
    if options.limit_to_session:
        raise _refused("sessions", "sessions cannot be combined with limit_to_session")
    if not target:
        raise _refused("sessions", "peer_target must be provided if sessions is provided")
    if len(options.sessions) > MAX_SESSIONS:
        raise _refused(
            "sessions",
            f"At most {MAX_SESSIONS} sessions can be listed, got {len(options.sessions)}",
        )
    for index, name in enumerate(options.sessions):
        problem = name_problem(name)
        if problem:
            raise InvalidInput.at("sessions", index, message=problem)
    if session_id not in options.sessions:
        raise _refused("sessions", "sessions must contain the session of the path")


def _refused(field: str, message: str) -> InvalidInput:
    return InvalidInput.at(field, message=message)


class _Request(Struct, frozen=True):
    """One request for the context of a session."""

    rt: Runtime
    principal: Principal
    workspace_id: str
    options: SessionContextOptions
    search: Search
    moment: datetime | None
    """Only what was known at this time; None: now."""

    def about_target(
        self, tx: Transaction, located: Located, budget: int
    ) -> tuple[Selection, list[str] | None, int]:
        """The representation of the target, its card, and the tokens of both."""
        workspace, target = located.workspace, self.options.peer_target or ""
        peers = {} if workspace is None else self._peers(tx, workspace)
        observer = self._observer(tx, workspace, peers)
        allowed = self._allowed_sessions(tx, workspace, located.session)
        caller = (
            None
            if workspace is None
            else bounds_for(tx, self.principal, workspace, is_erasing=located.is_erasing).as_of(
                tx, self.moment
            )
        )
        card: list[str] | None = None
        if allowed is None and (caller is None or caller.has_cards):
            # A card cannot be split by session, so it is left out if only some sessions are
            # allowed.
            if observer is None:
                raise cards.no_observer(self.workspace_id, self.options.peer_perspective or target)
            card = cards.read_lines(tx, observer, target)
        observed = peers.get(target)
        selection = Selection()
        if caller is not None and observer is not None and observed is not None:
            # At most half of a small budget, so that some of it is left for the session's messages.
            limit = self.rt.settings.representation.max_tokens
            share = min(limit, max(budget // 2, 0))
            pair = representation.pair_of(caller, observer, observed, allowed)
            options = self._representation_options()
            selection = representation.select(tx, pair, options, share, self.search)
        spent = tokens.count(plain(selection)) + (tokens.count("\n".join(card)) if card else 0)
        return selection, card, spent

    def _peers(self, tx: Transaction, workspace: Workspace) -> Mapping[str, Peer]:
        """The target and the peer of the perspective, by id. Refuses scopes."""
        target, perspective = self.options.peer_target or "", self.options.peer_perspective
        peers = tx.peers.by_slugs(workspace.key, [name for name in (target, perspective) if name])
        validation.refuse_scope(target, peers.get(target), ("peer_target",))
        if perspective:
            validation.refuse_scope(
                perspective,
                peers.get(perspective),
                ("peer_perspective",),
                unknown_too=False,
            )
        return peers

    def _observer(
        self, tx: Transaction, workspace: Workspace | None, peers: Mapping[str, Peer]
    ) -> Peer | None:
        if self.options.scope is None:
            return peers.get(self.options.peer_perspective or self.options.peer_target or "")
        if workspace is None:
            raise scopes.missing(self.options.scope, self.workspace_id)
        return scopes.find(tx, workspace, self.options.scope)

    def _allowed_sessions(
        self, tx: Transaction, workspace: Workspace | None, session: Session | None
    ) -> tuple[int, ...] | None:
        """Keys of the only sessions that are allowed; None if all are."""
        options = self.options
        if workspace is None:
            narrowed = options.limit_to_session or options.sessions is not None
            return () if narrowed or self.principal.is_session else None
        if options.limit_to_session:
            return () if session is None else (session.key,)
        if options.sessions is not None:
            return representation.session_keys(tx, workspace, options.sessions)
        return None

    def _representation_options(self) -> RepresentationOptions:
        return RepresentationOptions(
            search_query=self.options.search_query,
            search_top_k=self.options.search_top_k,
            search_max_distance=self.options.search_max_distance,
            include_most_frequent=self.options.include_most_frequent,
            max_conclusions=self.options.max_conclusions,
        )


def _summary(
    tx: Transaction, session: Session, budget: int, moment: datetime | None
) -> Summary | None:
    """The longer of the summaries that fit into the share of the budget, and that existed at a time
    (None: now)."""
    summaries = {
        kind: summary
        for kind, summary in tx.summaries.of_session(session.key).items()
        if moment is None or summary.created_at <= moment
    }
    cap = int(budget * SUMMARY_SHARE)
    short, long = summaries.get(SHORT), summaries.get(LONG)
    if long is not None and long.tokens <= cap and long.tokens > (short.tokens if short else 0):
        return long
    if short is not None and 0 < short.tokens <= cap:
        return short
    return None


def _tail(
    rt: Runtime,
    tx: Transaction,
    session: Session,
    budget: int,
    summary: Summary | None,
    moment: datetime | None,
) -> Sequence[Message]:
    """The newest messages whose tokens fit the budget, oldest first, back to the last one that the
    summary covers: now (`moment` is None), or of those that were stored at a time."""
    last, total = moments.extent(tx, session, moment)
    if budget < 0 or last == 0:
        return []
    first = 1
    before_first = 0
    if summary is not None:
        for covered in tx.messages.by_keys([summary.message_key]).values():
            first, before_first = covered.seq, covered.tokens_through - covered.tokens
    if total - before_first > budget:
        # The first message that fits is the one after the first message whose successors are all
        # within the budget.
        before = tx.messages.seq_reaching(session.key, total - budget)
        first = max(first, last + 1 if before is None else before + 1)
    if moment is None:
        return remembered_pages.page(rt, tx, session, first, last)
    return moments.only_stored(tx.messages.run(session.key, first, last), moment)


def _session_event(
    workspace_id: str, options: SessionContextOptions, context: SessionContext, began: float
) -> ContextRetrieved:
    return ContextRetrieved(
        workspace_name=workspace_id,
        context_scope="session",
        session_name=context.session,
        peer_name=options.peer_perspective or None,
        target_name=options.peer_target or None,
        tokens_requested=options.tokens,
        message_count=len(context.messages),
        has_summary=context.summary is not None,
        include_summary=options.summary,
        limit_to_session=options.limit_to_session,
        peer_perspective_provided=bool(options.peer_perspective),
        **_shared_fields(options, context, began),
    )


def _peer_event(
    workspace_id: str, options: RepresentationOptions, context: PeerContext, began: float
) -> ContextRetrieved:
    return ContextRetrieved(
        workspace_name=workspace_id,
        context_scope="peer",
        peer_name=context.peer,
        target_name=options.target or None,
        message_count=0,
        has_summary=False,
        limit_to_session=False,
        peer_perspective_provided=False,
        **_shared_fields(options, context, began),
    )


def _shared_fields(
    options: SessionContextOptions | RepresentationOptions,
    context: SessionContext | PeerContext,
    began: float,
) -> dict[str, Any]:
    """The common fields of both events. `began` is a `time.perf_counter`."""
    return {
        "has_representation": bool(context.representation),
        "has_peer_card": bool(context.card),
        "search_query_provided": bool(options.search_query),
        "search_top_k": options.search_top_k,
        "search_max_distance": options.search_max_distance,
        "include_most_frequent": options.include_most_frequent,
        "max_conclusions": options.max_conclusions,
        "total_duration_ms": round((time.perf_counter() - began) * 1000, 3),
    }
