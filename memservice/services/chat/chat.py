"""Chat: questions about a peer, or about a whole workspace, answered by the configured reasoner
from what recall finds.

What belongs to the question is looked up first, in one view that is closed before the reasoner is
asked; so whatever is wrong with the question shows before the first word of the answer. A reasoner
that asks a model may look up more, within the same bounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memservice.domain.configuration import Resolved, resolve
from memservice.domain.errors import InvalidInput, NotFound, Problem
from memservice.domain.filters import equals, recall_allowlist
from memservice.domain.ids import new_uid
from memservice.domain.records import ARCHIVED, DELETING, SCOPE, Message, Peer, Session, Workspace
from memservice.domain.values import strip_nul
from memservice.reasoning import choice
from memservice.reasoning.limits import CallerGone
from memservice.runtime import Runtime
from memservice.services import scopes, sessions, validation, visibility
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

SPENT = "the workspace has spent its tokens of today: answered without a model"
ERROR = "error"
"""Of DIALECTIC_ON_FAILURE."""
SCOPE_ALONE = "scope cannot be combined with session_id or filters"


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """A question and how it is to be answered; None where nothing is said."""

    query: str
    target: str | None = None
    """Of a peer's chat: whom it is asked about, if not itself."""
    session: str | None = None
    filters: object = None
    """Of a peer's chat: the sessions that may be drawn on."""
    scope: str | Sequence[str] | None = None
    level: str = "low"
    response_format: Mapping[str, Any] | None = None
    stream: bool = False
    is_wanted: Callable[[], bool] = always
    """Whether the caller is still connected."""


class Answer:
    """An answer that is about to be given. What is looked up for it has been read; a reasoner may
    look up more.

    If a language model does not answer, the reasoner without a model does, or an error is raised,
    as `DIALECTIC_ON_FAILURE` says; `notice` tells why. A question that a model refuses to answer
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
        """How it was answered, if not as configured. Complete with the first piece."""
        self._rt = rt
        self._reasoner = reasoner
        self._session = session_id
        self._gathered = gathered
        self._tools = tools
        self._answered = Answered()

    @property
    def evidence(self) -> Collated:
        """All that was read, each thing once, in the order in which it was; whole once the answer
        is."""
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
        """The answer as it comes, without empty pieces; nothing at all where nothing is to be said.

        Raises `AnswerFailed` for a language model that did not answer, `ModelFailure` for one that
        failed after its first piece, whatever else the reasoner raises, and UnfitAnswer at the end
        of an answer that is not of the requested form.
        """
        said: list[str] = []
        began = time.monotonic()
        pieces = self._degrading()
        try:
            for piece in pieces:
                said.append(piece)
                yield piece
            whole = "".join(said)
            if self.request.response_format is not None and whole.strip():
                response_format.check_answer(self.request.response_format, whole)
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
        """The pieces of the reasoner, or of the one that answers in its place."""
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
        if isinstance(failure, CallerGone):
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
        """The pieces that are not empty; what they took is noted."""
        pieces = reasoner.answer(request)
        try:
            for piece in pieces:
                if isinstance(piece, Answered):
                    self._answered = piece
                elif piece:
                    yield piece
        finally:
            # An iterator that is no generator may have nothing to end.
            getattr(pieces, "close", lambda: None)()

    def content(self) -> str | None:
        """The whole answer; None where nothing is to be said. Raises as `pieces` does."""
        return "".join(self.pieces()).strip() or None


def ask_peer(
    rt: Runtime, principal: Principal, workspace_id: str, peer_id: str, options: ChatOptions
) -> Answer:
    """A question to a peer, about itself or a target. Nothing is created: what does not exist is
    NotFound."""
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
    """As `ask_peer`, in a session that may be archived. The session's own key is admitted too, and
    the answer then draws on the session alone. The caller has checked that the session is the
    peer's."""
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
    query = _checked(options)
    allowed = recall_allowlist(options.filters, options.session)
    lookup = Search.begin(rt, workspace_id, query, "dialectic_prefetch")
    with rt.storage.read() as tx:
        workspace, room, peer = _located(tx, workspace_id, options, peer_id)
        named = [*([options.session] if options.session else []), *(allowed or ())]
        # First, so that a peer's key does not learn which of the sessions that it is not in exist.
        policy.require_memberships(tx, principal, named)
        session = _readable(workspace_id, options.session, room, include_archived)
        observed = _target(tx, workspace, peer, options.target)
        observer, sessions_allowed = (
            peer,
            None if allowed is None else representation.session_keys(tx, workspace, allowed),
        )
        if isinstance(options.scope, str):
            observer = scopes.find(tx, workspace, options.scope)
        elif options.scope is not None:
            sessions_allowed = representation.scoped_sessions(tx, workspace, options.scope)
        mine = (
            (session.key,) if session is not None else sessions_of(tx, observer, sessions_allowed)
        )
        pair = representation.pair_of(
            bounds_for(tx, principal, workspace), observer, observed, sessions_allowed
        )
        bounds = (
            pair.bounds.in_sessions(mine)
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
    """A question over everything that a workspace knows. A session narrows messages only; a scope
    narrows both."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    if options.scope is not None and options.session:
        raise InvalidInput.at("scope", message="scope cannot be combined with session_id")
    query = _checked(options)
    lookup = Search.begin(rt, workspace_id, query, "dialectic_prefetch")
    with rt.storage.read() as tx:
        workspace, session = _located_workspace(tx, workspace_id, options.session)
        caller = bounds_for(tx, principal, workspace).with_messages(
            visibility.visible(tx, workspace.key)
        )
        bounds = _workspace_bounds(tx, workspace, caller, session, options.scope)
        config = resolve(
            rt.defaults, session.configuration if session else None, workspace.configuration
        )
        question = _Question(workspace, session, bounds, lookup, options, config)
        return _answer(rt, tx, question)


def _checked(options: ChatOptions) -> str:
    """The question as it is asked. Raises InvalidInput for one without text, and for a bad response
    format."""
    response_format.check(options.response_format)
    query: str = strip_nul(options.query)
    if not query:
        raise InvalidInput(
            Problem(("query",), "String should have at least 1 character", "string_too_short")
        )
    return query


def _located_workspace(
    tx: Transaction, workspace_id: str, session_id: str | None
) -> tuple[Workspace, Session | None]:
    located = tx.workspaces.locate(workspace_id, session_id=session_id or None)
    if located.workspace is None:
        raise NotFound(f"Workspace {workspace_id} not found")
    return located.workspace, _readable(workspace_id, session_id, located.session)


def _located(
    tx: Transaction, workspace_id: str, options: ChatOptions, peer_id: str
) -> tuple[Workspace, Session | None, Peer]:
    located = tx.workspaces.locate(
        workspace_id, session_id=options.session or None, peer_id=peer_id
    )
    if located.workspace is None:
        raise NotFound(f"Workspace {workspace_id} not found")
    validation.refuse_scope(peer_id, located.peer, ("peer_id",))
    if located.peer is None:
        raise _no_peer(workspace_id, peer_id)
    return located.workspace, located.session, located.peer


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


def _target(tx: Transaction, workspace: Workspace, asked: Peer, target: str | None) -> Peer:
    if not target:
        return asked
    peer = tx.peers.by_slug(workspace.key, target)
    validation.refuse_scope(target, peer, ("target",))
    if peer is None:
        raise _no_peer(workspace.slug, target)
    return peer


def _cards(tx: Transaction, peer: Peer, observer: Peer, observed: Peer) -> dict[str, list[str]]:
    """What is kept about the observed peer and, where it is another, what the asked one keeps about
    itself.

    Of a scope only what it keeps itself: other cards are written from all that is known, whatever
    session it was said in.
    """
    found = {}
    of_itself = () if observer.kind == SCOPE else ((peer, peer),)
    for holder, target in ((observer, observed), *of_itself):
        card = None if target.slug in found else tx.cards.one(holder.key, target.slug)
        if card is not None and card.lines:
            found[target.slug] = list(card.lines)
    return found


def _workspace_bounds(
    tx: Transaction,
    workspace: Workspace,
    caller: Bounds,
    session: Session | None,
    scope: str | Sequence[str] | None,
) -> Bounds:
    if isinstance(scope, str):
        holder = scopes.find(tx, workspace, scope)
        bounds = caller.with_conclusions(
            equals(observer_key=holder.key), IndexFilter(observers=(holder.key,))
        )
        return bounds.in_sessions(sessions_of(tx, holder))
    # Scopes hold copies of what others hold.
    ordinary = caller.with_conclusions(scopes.held_by_others(tx, workspace))
    if scope is None:
        return ordinary if session is None else ordinary.in_sessions((session.key,))
    keys = representation.scoped_sessions(tx, workspace, scope)
    return ordinary.in_sessions(keys).stated_in(keys)


@dataclass(frozen=True, slots=True)
class _Question:
    """A question, and what may be used to answer it."""

    workspace: Workspace
    session: Session | None
    bounds: Bounds
    lookup: Search
    options: ChatOptions
    config: Resolved
    cards: dict[str, list[str]] = field(default_factory=dict)
    peer: Peer | None = None
    """The peer that asks; None for a question over the whole workspace."""


def _answer(rt: Runtime, tx: Transaction, question: _Question) -> Answer:
    workspace, session, bounds = question.workspace, question.session, question.bounds
    options, peer = question.options, question.peer
    reasoner, notice = _reasoner(rt, tx, workspace, options.level)
    recent = (
        []
        if session is None
        else evidence.tail(tx, session, rt.settings.dialectic.session_history_max_tokens)
    )
    gathered = evidence.gather(rt, reasoner, tx, bounds, question.lookup, options.level, recent)
    # The cards of a peer's chat are given along; over a whole workspace there are too many, so each
    # is looked up by itself. Not within a scope: a card is written from all that is known of its
    # peer, whatever session it was said in.
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
        asked_at=rt.clock(),
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
    """What those are called by whom and among whom it is asked."""
    known = {peer.slug: peer for peer in (subject, peer) if peer is not None}
    others = sorted({message.author for message in recent} - known.keys())
    known |= tx.peers.by_slugs(workspace.key, others) if others else {}
    return shown_names(tx, workspace.key, known.values())


def _reasoner(
    rt: Runtime, tx: Transaction, workspace: Workspace, level: str
) -> tuple[Reasoner, str | None]:
    """Who answers, and why it is another than is configured."""
    task = choice.answer(level)
    if not rt.reasoner_can(task, Capability.COSTLY) or budget.may_spend(rt, tx, workspace):
        return rt.reasoner_for(task), None
    return rt.reasoner(choice.WITHOUT_MODEL), SPENT


def _utterance(message: Message) -> Utterance:
    return Utterance(
        message.key, message.uid, message.author, message.content, message.created_at, new=False
    )
