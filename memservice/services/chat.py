"""Chat: questions about a peer, or about a whole workspace, answered by the configured reasoner from what recall finds.

Everything is read first, in one view that is closed before the reasoner is asked; so whatever is wrong with the question shows before
the first word of the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memservice.domain.configuration import Resolved, resolve
from memservice.domain.errors import InvalidInput, NotFound, Problem
from memservice.domain.filters import TRUE, Node, all_of, recall_allowlist, where
from memservice.domain.filters.ast import Not
from memservice.domain.records import DELETING, EXPLICIT, SCOPE, Message, Peer, Session, Workspace
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import access, evidence, naming, recall, representation, response_format, scopes, sessions
from memservice.services.evidence import Bounds, Collated
from memservice.services.principal import Principal
from memservice.spi.reasoner import AnswerRequest, Utterance
from memservice.spi.storage import View
from memservice.spi.where import Where

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

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


class Answer:
    """An answer that is about to be given. Everything that it rests on has been read."""

    def __init__(self, rt: Runtime, request: AnswerRequest, collated: Collated) -> None:
        self._rt = rt
        self.request = request
        self.evidence = collated

    def pieces(self) -> Iterator[str]:
        """The answer as it comes, without empty pieces; nothing at all where nothing is to be said.

        Raises what the reasoner raises, and UnfitAnswer at the end of an answer that is not of the form that was asked for.
        """
        said: list[str] = []
        for piece in self._rt.reasoner.answer(self.request):
            if piece:
                said.append(piece)
                yield piece
        whole = "".join(said)
        if self.request.response_format is not None and whole.strip():
            response_format.check_answer(self.request.response_format, whole)

    def content(self) -> str | None:
        """The whole answer; None where nothing is to be said. Raises as `pieces` does."""
        return "".join(self.pieces()).strip() or None


def ask_peer(rt: Runtime, who: Principal, workspace: str, peer: str, options: ChatOptions) -> Answer:
    """A question to a peer, about itself or a target. Nothing is created: what does not exist is NotFound."""
    access.require(who, workspace, peer=peer)
    if options.scope is not None:
        access.refuse_narrow(who)
        if options.filters or options.session:
            raise InvalidInput.at("body", "scope", message=SCOPE_ALONE)
    query = _checked(options)
    allowed = recall_allowlist(options.filters, options.session)
    remote = recall.remote_vector(rt, workspace, query)
    with rt.storage.read() as view:
        place, session, asked = _located(view, workspace, options.session, peer)
        named = [*([options.session] if options.session else []), *(allowed or ())]
        access.require_memberships(view, who, named)
        observed = _target(view, place, asked, options.target)
        observer, sessions_allowed = asked, None if allowed is None else representation.session_keys(view, place, allowed)
        if isinstance(options.scope, str):
            observer = scopes.find(view, place, options.scope)
        elif options.scope is not None:
            sessions_allowed = representation.scoped_sessions(view, place, options.scope)
        pair = representation.Bounds(observer, observed, sessions_allowed)
        bounds = Bounds(
            place.key,
            subject=observed,
            narrowed=pair.narrowed(),
            condition=pair.condition(),
            no_conclusions=sessions_allowed == (),
            sessions=(session.key,) if session is not None else _seen(view, observer, sessions_allowed),
        )
        config = resolve(rt.defaults, session.configuration if session else None, place.configuration)
        cards = _cards(view, asked, observer, observed) if config.card_use else {}
        return _answer(rt, view, bounds, query, options, session, config, cards, remote)


def ask_workspace(rt: Runtime, who: Principal, workspace: str, options: ChatOptions) -> Answer:
    """A question over everything that a workspace knows. A session narrows messages only; a scope narrows both."""
    access.require(who, workspace)
    if options.scope is not None and options.session:
        raise InvalidInput.at("body", "scope", message="scope cannot be combined with session_id")
    query = _checked(options)
    remote = recall.remote_vector(rt, workspace, query)
    with rt.storage.read() as view:
        place, session = _located_workspace(view, workspace, options.session)
        bounds = _workspace_bounds(view, place, session, options.scope)
        config = resolve(rt.defaults, session.configuration if session else None, place.configuration)
        return _answer(rt, view, bounds, query, options, session, config, {}, remote)


def _checked(options: ChatOptions) -> str:
    """The question as it is asked. Raises InvalidInput for one without text, and for a bad response format."""
    response_format.check(options.response_format)
    query: str = strip_nul(options.query)
    if not query:
        raise InvalidInput(Problem(("body", "query"), "String should have at least 1 character", "string_too_short"))
    return query


def _located_workspace(view: View, workspace: str, session: str | None) -> tuple[Workspace, Session | None]:
    located = view.workspaces.locate(workspace, session=session or None)
    if located.workspace is None:
        raise NotFound(f"Workspace {workspace} not found")
    return located.workspace, _readable(workspace, session, located.session)


def _located(view: View, workspace: str, session: str | None, peer: str) -> tuple[Workspace, Session | None, Peer]:
    located = view.workspaces.locate(workspace, session=session or None, peer=peer)
    if located.workspace is None:
        raise NotFound(f"Workspace {workspace} not found")
    naming.refuse_scope(peer, located.peer, ("path", "peer_id"))
    if located.peer is None:
        raise _no_peer(workspace, peer)
    return located.workspace, _readable(workspace, session, located.session), located.peer


def _readable(workspace: str, name: str | None, found: Session | None) -> Session | None:
    if name and (found is None or found.state == DELETING):
        raise sessions.not_found(workspace, name)
    return found


def _no_peer(workspace: str, peer: str) -> NotFound:
    return NotFound(f"Peer {peer} not found in workspace {workspace}")


def _target(view: View, place: Workspace, asked: Peer, target: str | None) -> Peer:
    if not target:
        return asked
    found = view.peers.by_slug(place.key, target)
    naming.refuse_scope(target, found, ("body", "target"))
    if found is None:
        raise _no_peer(place.slug, target)
    return found


def _seen(view: View, observer: Peer, allowed: tuple[int, ...] | None) -> tuple[int, ...]:
    """Sessions that the observer is or was in, as far as they are allowed. A scope sees those that are in it now."""
    memberships = view.members.of_peer(observer.key, active=observer.kind == SCOPE)
    keys = {member.session_key for member in memberships}
    return tuple(sorted(keys if allowed is None else keys & set(allowed)))


def _cards(view: View, asked: Peer, observer: Peer, observed: Peer) -> dict[str, list[str]]:
    """What is kept about the observed peer and, where it is another, what the asked one keeps about itself."""
    found = {}
    for holder, target in ((observer, observed), (asked, asked)):
        card = None if target.slug in found else view.cards.one(holder.key, target.slug)
        if card is not None and card.lines:
            found[target.slug] = list(card.lines)
    return found


def _workspace_bounds(view: View, place: Workspace, session: Session | None, scope: str | Sequence[str] | None) -> Bounds:
    if isinstance(scope, str):
        holder = scopes.find(view, place, scope)
        return Bounds(
            place.key,
            narrowed=Where(observers=(holder.key,)),
            condition=where(observer_key=holder.key),
            sessions=_seen(view, holder, None),
        )
    # Scopes hold copies of what others hold.
    ordinary = _not_by_scopes(view, place)
    if scope is None:
        return Bounds(place.key, condition=ordinary, sessions=None if session is None else (session.key,))
    keys = representation.scoped_sessions(view, place, scope)
    return Bounds(
        place.key,
        narrowed=Where(levels=(EXPLICIT,), sessions=keys[: representation.MAX_SESSIONS]),
        condition=all_of(ordinary, where(level=EXPLICIT, session_key=keys)),
        no_conclusions=not keys,
        sessions=keys,
    )


def _not_by_scopes(view: View, place: Workspace) -> Node:
    keys = tuple(peer.key for peer in view.rows.page(Peer, where(workspace_key=place.key, kind=SCOPE)))
    return Not(where(observer_key=keys)) if keys else TRUE


def _answer(
    rt: Runtime,
    view: View,
    bounds: Bounds,
    query: str,
    options: ChatOptions,
    session: Session | None,
    config: Resolved,
    cards: dict[str, list[str]],
    remote: Vector | None,
) -> Answer:
    recent = [] if session is None else evidence.tail(view, session, rt.settings.dialectic.session_history_max_tokens)
    found = evidence.gather(rt, view, bounds, query, options.level, recent, remote)
    request = AnswerRequest(
        question=query,
        subject=bounds.subject.slug if bounds.subject is not None else None,
        evidence=found.ranked(),
        cards=cards,
        recent=[_utterance(message) for message in recent],
        level=options.level,
        response_format=None if options.response_format is None else dict(options.response_format),
        instructions=config.instructions.get("dialectic"),
    )
    return Answer(rt, request, found.collated())


def _utterance(message: Message) -> Utterance:
    return Utterance(message.key, message.uid, message.author, message.content, message.created_at, new=False)
