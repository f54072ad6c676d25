"""What a caller may learn: worked out from its key here, and nowhere else.

Search, chat with its evidence and its tools, representations and contexts start from `bounds_for` and only ever narrow what it gives:
`Bounds` cannot become wider. Background work in a peer's name starts from `of_observer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from memservice.domain.filters import FALSE, TRUE, Node, all_of, where
from memservice.domain.filters.ast import Any_, Compare, Not
from memservice.domain.records import EXPLICIT, SCOPE, NamedCollection, Peer, Workspace
from memservice.services import scopes
from memservice.services.auth.principal import Principal
from memservice.services.v1 import collections
from memservice.spi.index_filter import (
    EVERYTHING,
    Where,
    admits_nothing,
)
from memservice.spi.storage import View

MAX_SESSIONS = 1_000
"""Sessions that an index can be narrowed to; the condition holds for more."""

T = TypeVar("T", int, str)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What may be looked at in a workspace: messages, conclusions, cards. Made in this module only."""

    workspace: int
    subject: Peer | None = None
    """The peer that a question is about, where that is settled."""
    sessions: tuple[int, ...] | None = None
    """Sessions whose messages may be looked at; None: all of the workspace."""
    said: Node = TRUE
    """What else holds for the messages that may be looked at."""
    narrowed: Where = EVERYTHING
    """What an index knows of `condition`."""
    condition: Node = TRUE
    """What holds for the conclusions that may be looked at."""
    has_chains: bool = True
    """Whether it may be followed what rests on what; not where only certain sessions may speak."""
    has_cards: bool = True
    """Whether cards may be shown at all. A card is written from all that is known, whatever session it was said in."""

    @property
    def no_conclusions(self) -> bool:
        return admits_nothing(self.narrowed)

    def about(self, subject: Peer) -> Bounds:
        return replace(self, subject=subject)

    def among(self, sessions: Sequence[int]) -> Bounds:
        """The messages of these sessions only."""
        return replace(self, sessions=_both(self.sessions, tuple(sessions)))

    def saying(self, condition: Node) -> Bounds:
        """The messages for which this holds as well."""
        return replace(self, said=all_of(self.said, condition))

    def concluding(self, condition: Node, narrowed: Where = EVERYTHING) -> Bounds:
        """The conclusions for which this holds as well; `narrowed`: as much of it as an index knows."""
        return replace(self, condition=all_of(self.condition, condition), narrowed=_narrower(self.narrowed, narrowed))

    def stating_in(self, sessions: Sequence[int]) -> Bounds:
        """The conclusions that were stated in these sessions: one that was derived from several carries the stamp of one of them."""
        keys = tuple(sessions)
        stated = self.concluding(where(level=EXPLICIT, session_key=keys), Where(levels=(EXPLICIT,), sessions=keys[:MAX_SESSIONS]))
        return replace(stated, has_chains=False)


def _both(mine: tuple[T, ...] | None, given: tuple[T, ...] | None) -> tuple[T, ...] | None:
    if mine is None or given is None:
        return given if mine is None else mine
    kept = frozenset(mine)
    return tuple(value for value in given if value in kept)


def _narrower(mine: Where, given: Where) -> Where:
    return Where(
        sessions=_both(mine.sessions, given.sessions),
        authors=_both(mine.authors, given.authors),
        observers=_both(mine.observers, given.observers),
        observed=_both(mine.observed, given.observed),
        levels=_both(mine.levels, given.levels),
        since=given.since if mine.since is None else mine.since if given.since is None else max(mine.since, given.since),
        until=given.until if mine.until is None else mine.until if given.until is None else min(mine.until, given.until),
    )


def bounds_for(view: View, who: Principal, place: Workspace) -> Bounds:
    """What the caller may learn in the workspace, by the narrowest name of its key.

    - An admin's or the workspace's: everything.
    - A session's: what was said in the session and what was stated there, no cards.
    - A collection's: what the reserved collection holds, if it is that.
    - A peer's: what the peer itself holds, and what was said in its sessions until it left them.
    """
    if who.admin:
        return Bounds(place.key)
    if who.workspace != place.slug:
        return _nothing(place)
    if who.collection is not None:
        return _of_collection(view, place, who.collection)
    if who.session is not None:
        session = view.sessions.by_slug(place.key, who.session)
        keys = () if session is None else (session.key,)
        return Bounds(place.key, has_cards=False).among(keys).stating_in(keys)
    if who.peer is not None:
        peer = view.peers.by_slug(place.key, who.peer)
        return _nothing(place) if peer is None else of_observer(view, peer)
    return Bounds(place.key)


def _nothing(place: Workspace) -> Bounds:
    return Bounds(place.key, sessions=(), said=FALSE, narrowed=Where(sessions=()), condition=FALSE, has_chains=False, has_cards=False)


def _of_collection(view: View, place: Workspace, uid: str) -> Bounds:
    found = view.rows.get(NamedCollection, where(uid=uid, workspace_key=place.key))
    if found is None or not collections.is_derived(found):
        return _nothing(place)
    owner = found.owner_key
    pair = where(observer_key=owner, observed_key=owner)
    narrowed = Where(observers=(owner,), observed=(owner,))
    return Bounds(place.key, sessions=(), said=FALSE, narrowed=narrowed, condition=pair, has_cards=False)


def of_observer(view: View, observer: Peer) -> Bounds:
    """What a peer may draw on: its own memory, and its sessions until it left them. Its key learns no more, nor does a dream of it."""
    memberships = view.members.of_peer(observer.key, active=observer.kind == SCOPE)
    later = tuple(
        all_of(where(session_key=member.session_key), Compare("seq", "gt", member.left_seq))
        for member in memberships
        if member.left_seq is not None
    )
    return Bounds(
        observer.workspace_key,
        sessions=tuple(sorted({member.session_key for member in memberships})),
        said=Not(Any_(later)) if later else TRUE,
        narrowed=Where(observers=(observer.key,)),
        condition=where(observer_key=observer.key),
    )


def seen(view: View, observer: Peer, allowed: Sequence[int] | None = None) -> tuple[int, ...]:
    """Sessions that the observer is or was in, as far as they are allowed. A scope sees those that are in it now."""
    memberships = view.members.of_peer(observer.key, active=observer.kind == SCOPE)
    keys = {member.session_key for member in memberships}
    return tuple(sorted(keys if allowed is None else keys & set(allowed)))


def seen_by(view: View, peer: Peer) -> Node:
    """Messages of the peer's sessions, stored while it was a member. A scope sees its sessions whole.

    Their own times do not count: callers give those, and conversations of long ago are stored for members of today.
    """
    if peer.kind == SCOPE:
        return where(session_key=tuple(member.session_key for member in scopes.member_sessions(view, peer)))
    whole: list[int] = []
    spans: list[Node] = []
    for member in view.members.of_peer(peer.key):
        if member.joined_seq == 0 and member.left_seq is None:
            whole.append(member.session_key)
            continue
        span = all_of(where(session_key=member.session_key), Compare("seq", "gt", member.joined_seq))
        spans.append(span if member.left_seq is None else all_of(span, Compare("seq", "lte", member.left_seq)))
    return Any_((where(session_key=tuple(whole)), *spans))
