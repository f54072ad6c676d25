"""Chat: questions about a peer, or about a whole workspace, answered by the configured reasoner
from the results of retrieval.

The context of the question is read first, in one transaction that is closed before the reasoner is
called. So errors in the question are raised before the first piece of the answer. A reasoner with a
model may look up more, within the same bounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memservice.domain.configuration import Resolved, resolve
from memservice.domain.errors import InvalidInput, NotFound, Problem
from memservice.domain.filters import equals, recall_allowlist
from memservice.domain.ids import new_uid
from memservice.domain.records import ARCHIVED, DELETING, SCOPE, Message, Peer, Session, Workspace
from memservice.domain.sizes import MAX_QUERY
from memservice.domain.values import strip_nul
from memservice.reasoning import choice
from memservice.reasoning.limits import ClientDisconnected
from memservice.runtime import Runtime
from memservice.services import moments, scopes, sessions, validation, visibility
from memservice.services.auth import policy
from memservice.services.auth.bounds import Bounds, bounds_for, sessions_of
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.chat import events as chat_events
from memservice.services.chat import evidence, failures, response_format
from memservice.services.chat.evidence import Collated, Gathered, ToolCall
from memservice.services.chat.tools import Tools
from memservice.services.peers import shown_names
from memservice.services.retrieval import representation
from memservice.services.retrieval.search import Search
from memservice.services.usage import budget
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import IndexFilter
from memservice.spi.llm import ModelFailure, Refusal
from memservice.spi.reasoner import (
    Answered,
    AnswerRequest,
    Origin,
    Reasoner,
    Utterance,
    always,
)
from memservice.spi.storage import Transaction

SPENT = "the token budget of today is spent: answered without a model"
ERROR = "error"
"""A value of DIALECTIC_ON_FAILURE."""
SCOPE_ALONE = "scope cannot be combined with session_id or filters"


class ChatOptions(Struct, frozen=True):
    """A question and its options; None: not set."""

    query: str
    target: str | None = None
    """In a peer's chat: the peer that the question is about, if not itself."""
    session: str | None = None
    filters: object = None
    """In a peer's chat: the sessions that may be used."""
    scope: str | Sequence[str] | None = None
    level: str = "low"
    response_format: Mapping[str, Any] | None = None
    stream: bool = False
    is_wanted: Callable[[], bool] = always
    """Whether the caller is still connected."""
    max_length: int = MAX_QUERY
    """Characters that the query may have."""
    as_of: str | None = None
    """A time as the caller wrote it: the answer uses only what was known then, and no card."""


class Answer:
    """An answer that is about to be generated. Its context has been read; a reasoner may look up
    more.

    If a language model does not answer, the reasoner without a model does, or an error is raised,
    depending on `DIALECTIC_ON_FAILURE`; `notice` gives the reason. A question that a model refuses
    has no answer.
    """

    def __init__(
        self,
        rt: Runtime,
        reasoner: Reasoner,
        request: AnswerRequest,
        session_id: str | None,
        gathered: Gathered,
        tools: Tools,
        notice: str | None = None,
    ) -> None:
        self.request = request
        self.notice = notice
        """How the answer was generated, if not as configured. Final from the first piece on."""
        self._rt = rt
        self._reasoner = reasoner
        self._session = session_id
        self._gathered = gathered
        self._tools = tools
        self._answered = Answered()

    @property
    def evidence(self) -> Collated:
        """Everything that was read, without duplicates, in order. Complete once the answer is."""
        first = self._gathered.collated()
        conclusions = {
            row.key: row for row in (*first.conclusions, *self._tools.conclusions_read.values())
        }
        messages = {row.key: row for row in (*first.messages, *self._tools.messages_read.values())}
        return Collated(
            [replace(row, source_ids=row.source_ids or []) for row in conclusions.values()],
            list(messages.values()),
            [
                ToolCall(use.name, dict(use.input))
                for step in self._answered.steps
                for use in step.uses
                if use.error is None
            ],
            self._answered.run_id,
        )

    def pieces(self) -> Iterator[str]:
        """The answer in pieces, without empty ones; no piece for an empty answer.

        Raises `AnswerFailed` for a language model that did not answer, `ModelFailure` for one that
        failed after its first piece, any other error of the reasoner, and InvalidAnswer at the end
        of an answer that does not match the requested format.
        """
        texts: list[str] = []
        began = time.monotonic()
        pieces = self._degrading()
        try:
            for piece in pieces:
                texts.append(piece)
                yield piece
            answer_text = "".join(texts)
            if self.request.response_format is not None and answer_text.strip():
                response_format.check_answer(self.request.response_format, answer_text)
        finally:
            # Closing this iterator ends the work.
            pieces.close()
            if self._rt.hears_events:
                for event in chat_events.rounds(self.request, self._answered):
                    self._rt.emit(event)
        if self._rt.hears_events:
            seconds = time.monotonic() - began
            self._rt.emit(
                chat_events.completed(
                    self.request, self._gathered, self._answered, self._session, seconds
                )
            )

    def _degrading(self) -> Generator[str, None, None]:
        """The pieces of the reasoner, or of its replacement."""
        has_begun = False
        try:
            for piece in self._pieces_of(self._reasoner, self.request):
                yield piece
                has_begun = True
            return
        except ModelFailure as error:
            if has_begun:
                raise
            failure = error
        failures.note(failure)
        if isinstance(failure, ClientDisconnected):
            return
        if isinstance(failure, Refusal):
            self.notice = failures.notice(failure)
            return
        if self._rt.settings.dialectic.on_failure == ERROR:
            raise failures.as_error(failure)
        self.notice = failures.notice(failure)
        answered = self._answered
        request = replace(self.request, model_failed=True, seconds=None)
        yield from self._pieces_of(self._rt.reasoner(choice.WITHOUT_MODEL), request)
        self._answered = answered

    def _pieces_of(self, reasoner: Reasoner, request: AnswerRequest) -> Generator[str, None, None]:
        """The pieces that are not empty. Notes the usage of the call."""
        pieces = reasoner.answer(request)
        try:
            for piece in pieces:
                if isinstance(piece, Answered):
                    self._answered = piece
                elif piece:
                    yield piece
        finally:
            # An iterator other than a generator may have no `close`.
            getattr(pieces, "close", lambda: None)()

    def content(self) -> str | None:
        """The whole answer; None if it is empty. Raises like `pieces`."""
        return "".join(self.pieces()).strip() or None


def ask_peer(
    rt: Runtime, principal: Principal, workspace_id: str, peer_id: str, options: ChatOptions
) -> Answer:
    """Ask a peer about itself or a target. Creates nothing: NotFound for a resource that does not
    exist."""
    policy.require(principal, workspace_id, peer_id=peer_id, needs=Permission.VIEW)
    return _ask_peer(rt, principal, workspace_id, peer_id, options)


def ask_in_session(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    peer_id: str,
    session_id: str | None,
    options: ChatOptions,
) -> Answer:
    """Like `ask_peer`, in a session that may be archived. The session's own key is accepted too;
    the answer then uses that session only. The caller has checked that the session belongs to the
    peer."""
    policy.require(
        principal, workspace_id, peer_id=peer_id, session_id=session_id, needs=Permission.VIEW
    )
    return _ask_peer(
        rt,
        principal,
        workspace_id,
        peer_id,
        replace(options, session=session_id),
        include_archived=True,
    )


def _ask_peer(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    peer_id: str,
    options: ChatOptions,
    *,
    include_archived: bool = False,
) -> Answer:
    if options.scope is not None:
        policy.refuse_narrow(principal)
        if options.filters or options.session:
            raise InvalidInput.at("scope", message=SCOPE_ALONE)
    query = _validated_query(options)
    moment = moments.parse(rt, options.as_of)
    allowed = recall_allowlist(options.filters, options.session)
    lookup = Search.begin(rt, workspace_id, query, "dialectic_prefetch", None)
    with rt.storage.read() as tx:
        workspace, session_row, peer, is_erasing = _locate(tx, workspace_id, options, peer_id)
        named = [*([options.session] if options.session else []), *(allowed or ())]
        # Check memberships first: a peer's key must not discover which other sessions exist.
        policy.require_memberships(tx, principal, named)
        session = _readable(workspace_id, options.session, session_row, include_archived)
        observed = _target(tx, workspace, peer, options.target)
        observer, sessions_allowed = (
            peer,
            None if allowed is None else representation.session_keys(tx, workspace, allowed),
        )
        if isinstance(options.scope, str):
            observer = scopes.find(tx, workspace, options.scope)
        elif options.scope is not None:
            sessions_allowed = representation.scoped_sessions(tx, workspace, options.scope)
        session_keys = (
            (session.key,) if session is not None else sessions_of(tx, observer, sessions_allowed)
        )
        caller = bounds_for(tx, principal, workspace, is_erasing=is_erasing).as_of(tx, moment)
        pair = representation.pair_of(caller, observer, observed, sessions_allowed)
        bounds = (
            pair.bounds.in_sessions(session_keys)
            .with_messages(visibility.visible(tx, workspace.key, include_archived=include_archived))
            .about(observed)
        )
        config = resolve(
            rt.defaults, session.configuration if session else None, workspace.configuration
        )
        cards = _cards(tx, peer, observer, observed) if config.card_use and bounds.has_cards else {}
        question = _Question(workspace, session, bounds, lookup, options, config, cards, peer)
        return _answer(rt, tx, question)


def ask_workspace(
    rt: Runtime, principal: Principal, workspace_id: str, options: ChatOptions
) -> Answer:
    """Ask about a whole workspace. A session limits only the messages; a scope limits messages and
    conclusions."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    if options.scope is not None and options.session:
        raise InvalidInput.at("scope", message="scope cannot be combined with session_id")
    query = _validated_query(options)
    moment = moments.parse(rt, options.as_of)
    lookup = Search.begin(rt, workspace_id, query, "dialectic_prefetch", None)
    with rt.storage.read() as tx:
        workspace, session, is_erasing = _locate_workspace(tx, workspace_id, options.session)
        caller = (
            bounds_for(tx, principal, workspace, is_erasing=is_erasing)
            .as_of(tx, moment)
            .with_messages(visibility.visible(tx, workspace.key))
        )
        bounds = _workspace_bounds(tx, workspace, caller, session, options.scope)
        config = resolve(
            rt.defaults, session.configuration if session else None, workspace.configuration
        )
        question = _Question(workspace, session, bounds, lookup, options, config)
        return _answer(rt, tx, question)


def _validated_query(options: ChatOptions) -> str:
    """The text of the question. Raises InvalidInput for one that is empty or too long, and for an
    invalid response format."""
    response_format.check(options.response_format)
    query: str = strip_nul(options.query)
    if not query:
        raise InvalidInput(
            Problem(("query",), "String should have at least 1 character", "string_too_short")
        )
    validation.require_length(query, options.max_length, ("query",))
    return query


def _locate_workspace(
    tx: Transaction, workspace_id: str, session_id: str | None
) -> tuple[Workspace, Session | None, bool]:
    """With whether a peer of the workspace is being erased."""
    located = tx.workspaces.locate(workspace_id, session_id=session_id or None)
    if located.workspace is None:
        raise NotFound(f"Workspace {workspace_id} not found")
    session = _readable(workspace_id, session_id, located.session)
    return located.workspace, session, located.is_erasing


def _locate(
    tx: Transaction, workspace_id: str, options: ChatOptions, peer_id: str
) -> tuple[Workspace, Session | None, Peer, bool]:
    """With whether a peer of the workspace is being erased."""
    located = tx.workspaces.locate(
        workspace_id, session_id=options.session or None, peer_id=peer_id
    )
    if located.workspace is None:
        raise NotFound(f"Workspace {workspace_id} not found")
    validation.refuse_scope(peer_id, located.peer, ("peer_id",))
    if located.peer is None:
        raise _no_peer(workspace_id, peer_id)
    return located.workspace, located.session, located.peer, located.is_erasing


def _readable(
    workspace_id: str, name: str | None, session: Session | None, include_archived: bool = False
) -> Session | None:
    if name and (
        session is None
        or session.state == DELETING
        or (session.state == ARCHIVED and not include_archived)
    ):
        raise sessions.not_found(workspace_id, name)
    return session


def _no_peer(workspace_id: str, peer_id: str) -> NotFound:
    return NotFound(f"Peer {peer_id} not found in workspace {workspace_id}")


def _target(tx: Transaction, workspace: Workspace, peer: Peer, target: str | None) -> Peer:
    if not target:
        return peer
    target_peer = tx.peers.by_slug(workspace.key, target)
    validation.refuse_scope(target, target_peer, ("target",))
    if target_peer is None:
        raise _no_peer(workspace.slug, target)
    return target_peer


def _cards(tx: Transaction, peer: Peer, observer: Peer, observed: Peer) -> dict[str, list[str]]:
    """The observer's card of the observed peer and, if the observer is another peer, the peer's
    card of itself, by slug.

    For a scope only its own card: other cards are written from all conclusions, regardless of their
    session.
    """
    cards = {}
    of_itself = () if observer.kind == SCOPE else ((peer, peer),)
    for holder, target in ((observer, observed), *of_itself):
        card = None if target.slug in cards else tx.cards.one(holder.key, target.slug)
        if card is not None and card.lines:
            cards[target.slug] = list(card.lines)
    return cards


def _workspace_bounds(
    tx: Transaction,
    workspace: Workspace,
    caller: Bounds,
    session: Session | None,
    scope: str | Sequence[str] | None,
) -> Bounds:
    if isinstance(scope, str):
        scope_peer = scopes.find(tx, workspace, scope)
        bounds = caller.with_conclusions(
            equals(observer_key=scope_peer.key), IndexFilter(observers=(scope_peer.key,))
        )
        return bounds.in_sessions(sessions_of(tx, scope_peer))
    # Scopes have copies of other peers' conclusions.
    originals = caller.with_conclusions(scopes.not_of_scopes(tx, workspace))
    if scope is None:
        return originals if session is None else originals.in_sessions((session.key,))
    keys = representation.scoped_sessions(tx, workspace, scope)
    return originals.in_sessions(keys).stated_in(keys)


class _Question(Struct, frozen=True):
    """A question, and the data that may be used for its answer."""

    workspace: Workspace
    session: Session | None
    bounds: Bounds
    lookup: Search
    options: ChatOptions
    config: Resolved
    cards: dict[str, list[str]] = field(default_factory=dict)
    peer: Peer | None = None
    """The peer that is asked; None for a question about the whole workspace."""


def _answer(rt: Runtime, tx: Transaction, question: _Question) -> Answer:
    workspace, session, bounds = question.workspace, question.session, question.bounds
    options, peer = question.options, question.peer
    reasoner, notice = _reasoner(rt, tx, workspace, options.level)
    limit = rt.settings.dialectic.session_history_max_tokens
    recent = [] if session is None else evidence.tail(tx, session, limit, bounds)
    gathered = evidence.gather(rt, reasoner, tx, bounds, question.lookup, options.level, recent)
    # The request of a peer's chat contains the cards. A whole workspace has too many, so a tool
    # reads single ones. Not within a scope: a card is written from all conclusions about its peer,
    # regardless of their session.
    tools = Tools(
        rt,
        workspace.slug,
        bounds,
        has_cards=peer is None and options.scope is None and question.config.card_use,
    )
    request = AnswerRequest(
        question=question.lookup.text,
        subject=bounds.subject.slug if bounds.subject is not None else None,
        evidence=gathered.ranked(),
        cards=question.cards,
        recent=[_utterance(message) for message in recent],
        level=options.level,
        response_format=None if options.response_format is None else dict(options.response_format),
        instructions=question.config.instructions.get("dialectic"),
        asker=None if peer is None else peer.slug,
        asked_at=bounds.moment or rt.clock(),
        names=_names(tx, workspace, bounds.subject, peer, recent),
        tools=tools,
        stream=options.stream,
        model_is_spent=notice is SPENT,
        seconds=rt.settings.dialectic.deadline_seconds,
        is_wanted=options.is_wanted,
        origin=Origin(workspace.key, workspace.slug, new_uid()),
    )
    return Answer(rt, reasoner, request, session.slug if session else None, gathered, tools, notice)


def _names(
    tx: Transaction,
    workspace: Workspace,
    subject: Peer | None,
    peer: Peer | None,
    recent: Sequence[Message],
) -> dict[str, str]:
    """Slug → displayed name, of the subject, the asking peer and the authors of the recent
    messages."""
    peers = {peer.slug: peer for peer in (subject, peer) if peer is not None}
    others = sorted({message.author for message in recent} - peers.keys())
    peers |= tx.peers.by_slugs(workspace.key, others) if others else {}
    return shown_names(tx, workspace.key, peers.values())


def _reasoner(
    rt: Runtime, tx: Transaction, workspace: Workspace, level: str
) -> tuple[Reasoner, str | None]:
    """The reasoner, and a notice if it is not the configured one."""
    task = choice.answer(level)
    if not rt.reasoner_can(task, Capability.COSTLY) or budget.may_spend(rt, tx, workspace):
        return rt.reasoner_for(task), None
    return rt.reasoner(choice.WITHOUT_MODEL), SPENT


def _utterance(message: Message) -> Utterance:
    return Utterance(
        message.key, message.uid, message.author, message.content, message.created_at, new=False
    )
