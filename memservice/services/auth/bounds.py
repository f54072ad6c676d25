"""What a caller may learn: worked out from its key here, and nowhere else.

Search, chat with its evidence and its tools, representations and contexts start from `bounds_for`
and only ever narrow what it gives: `Bounds` cannot become wider. Background work in a peer's name
starts from `of_observer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from memservice.domain.filters import FALSE, TRUE, Condition, all_of, equals
from memservice.domain.filters.ast import Any_, Compare, Not
from memservice.domain.records import EXPLICIT, SCOPE, NamedCollection, Peer, Workspace
from memservice.services import scopes
from memservice.services.auth.principal import Principal
from memservice.services.v1 import collections
from memservice.spi.index_filter import EVERYTHING, IndexFilter, matches_nothing
from memservice.spi.storage import Transaction

MAX_SESSIONS = 1_000
"""Sessions that an index can be narrowed to; the condition holds for more."""

T = TypeVar("T", int, str)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What may be looked at in a workspace: messages, conclusions, cards. Made in this module
    only."""

    workspace: int
    subject: Peer | None = None
    """The peer that a question is about, where that is settled."""
    sessions: tuple[int, ...] | None = None
    """Sessions whose messages may be looked at; None: all of the workspace."""
    said: Condition = TRUE
    """What else holds for the messages that may be looked at."""
    last_seq: Mapping[int, int] = field(default_factory=dict)
    """Session key → the last position that may be read there, where a peer has left. `said` holds
    it too; ranking needs it, since a message lends its words to its neighbours."""
    narrowed: IndexFilter = EVERYTHING
    """What an index knows of `condition`."""
    condition: Condition = TRUE
    """What holds for the conclusions that may be looked at."""
    has_chains: bool = True
    """Whether it may be followed what rests on what; not where only certain sessions may speak."""
    has_cards: bool = True
    """Whether cards may be shown at all. A card is written from all that is known, whatever session
    it was said in."""

    @property
    def no_conclusions(self) -> bool:
        return matches_nothing(self.narrowed)

    def may_read(self, session_key: int, seq: int) -> bool:
        """Whether a position is one that the caller may read, as far as its session was left."""
        last = self.last_seq.get(session_key)
        return last is None or seq <= last

    def about(self, subject: Peer) -> Bounds:
        return replace(self, subject=subject)

    def among(self, session_keys: Sequence[int]) -> Bounds:
        """The messages of these sessions only."""
        return replace(self, sessions=_both(self.sessions, tuple(session_keys)))

    def saying(self, condition: Condition) -> Bounds:
        """The messages for which this holds as well."""
        return replace(self, said=all_of(self.said, condition))

    def concluding(self, condition: Condition, index_filter: IndexFilter = EVERYTHING) -> Bounds:
        """The conclusions for which this holds as well; `index_filter`: as much of it as an index
        knows."""
        return replace(
            self,
            condition=all_of(self.condition, condition),
            narrowed=_narrower(self.narrowed, index_filter),
        )

    def stating_in(self, session_keys: Sequence[int]) -> Bounds:
        """The conclusions that were stated in these sessions: one that was derived from several
        carries the stamp of one of them."""
        keys = tuple(session_keys)
        stated = self.concluding(
            equals(level=EXPLICIT, session_key=keys),
            IndexFilter(levels=(EXPLICIT,), sessions=keys[:MAX_SESSIONS]),
        )
        return replace(stated, has_chains=False)


def _both(mine: tuple[T, ...] | None, given: tuple[T, ...] | None) -> tuple[T, ...] | None:
    if mine is None or given is None:
        return given if mine is None else mine
    kept = frozenset(mine)
    return tuple(value for value in given if value in kept)


def _narrower(mine: IndexFilter, index_filter: IndexFilter) -> IndexFilter:
    return IndexFilter(
        sessions=_both(mine.sessions, index_filter.sessions),
        authors=_both(mine.authors, index_filter.authors),
        observers=_both(mine.observers, index_filter.observers),
        observed=_both(mine.observed, index_filter.observed),
        levels=_both(mine.levels, index_filter.levels),
        since=index_filter.since
        if mine.since is None
        else mine.since
        if index_filter.since is None
        else max(mine.since, index_filter.since),
        until=index_filter.until
        if mine.until is None
        else mine.until
        if index_filter.until is None
        else min(mine.until, index_filter.until),
    )


def bounds_for(tx: Transaction, principal: Principal, workspace: Workspace) -> Bounds:
    """What the caller may learn in the workspace, by the narrowest name of its key.

    - An admin's, the workspace's, or a member's who may open it: everything.
    - A session's: what was said in the session and what was stated there, no cards.
    - A collection's: what the reserved collection holds, if it is that.
    - A peer's: what the peer itself holds, and what was said in its sessions until it left them.
    """
    if principal.admin or principal.opens_whole(workspace.slug):
        return Bounds(workspace.key)
    if principal.workspace_id != workspace.slug:
        return _nothing(workspace)
    if principal.collection is not None:
        return _of_collection(tx, workspace, principal.collection)
    if principal.session_id is not None:
        session = tx.sessions.by_slug(workspace.key, principal.session_id)
        keys = () if session is None else (session.key,)
        return Bounds(workspace.key, has_cards=False).among(keys).stating_in(keys)
    if principal.peer_id is not None:
        peer = tx.peers.by_slug(workspace.key, principal.peer_id)
        return _nothing(workspace) if peer is None else of_observer(tx, peer)
    return Bounds(workspace.key)


def _nothing(workspace: Workspace) -> Bounds:
    return Bounds(
        workspace.key,
        sessions=(),
        said=FALSE,
        narrowed=IndexFilter(sessions=()),
        condition=FALSE,
        has_chains=False,
        has_cards=False,
    )


def _of_collection(tx: Transaction, workspace: Workspace, uid: str) -> Bounds:
    collection = tx.rows.get(NamedCollection, equals(uid=uid, workspace_key=workspace.key))
    if collection is None or not collections.is_derived(collection):
        return _nothing(workspace)
    owner_key = collection.owner_key
    pair = equals(observer_key=owner_key, observed_key=owner_key)
    index_filter = IndexFilter(observers=(owner_key,), observed=(owner_key,))
    return Bounds(
        workspace.key,
        sessions=(),
        said=FALSE,
        narrowed=index_filter,
        condition=pair,
        has_cards=False,
    )


def of_observer(tx: Transaction, observer: Peer) -> Bounds:
    """What a peer may draw on: its own memory, and its sessions until it left them. Its key learns
    no more, nor does a dream of it."""
    memberships = tx.members.of_peer(observer.key, active=observer.kind == SCOPE)
    later = tuple(
        all_of(equals(session_key=member.session_key), Compare("seq", "gt", member.left_seq))
        for member in memberships
        if member.left_seq is not None
    )
    return Bounds(
        observer.workspace_key,
        sessions=tuple(sorted({member.session_key for member in memberships})),
        said=Not(Any_(later)) if later else TRUE,
        last_seq={
            member.session_key: member.left_seq
            for member in memberships
            if member.left_seq is not None
        },
        narrowed=IndexFilter(observers=(observer.key,)),
        condition=equals(observer_key=observer.key),
    )


def seen(tx: Transaction, observer: Peer, allowed: Sequence[int] | None = None) -> tuple[int, ...]:
    """Sessions that the observer is or was in, as far as they are allowed. A scope sees those that
    are in it now."""
    memberships = tx.members.of_peer(observer.key, active=observer.kind == SCOPE)
    keys = {member.session_key for member in memberships}
    return tuple(sorted(keys if allowed is None else keys & set(allowed)))


def seen_by(tx: Transaction, peer: Peer) -> Condition:
    """Messages of the peer's sessions, stored while it was a member. A scope sees its sessions
    whole.

    Their own times do not count: callers give those, and conversations of long ago are stored for
    members of today.
    """
    if peer.kind == SCOPE:
        return equals(
            session_key=tuple(member.session_key for member in scopes.member_sessions(tx, peer))
        )
    whole: list[int] = []
    spans: list[Condition] = []
    for member in tx.members.of_peer(peer.key):
        if member.joined_seq == 0 and member.left_seq is None:
            whole.append(member.session_key)
            continue
        span = all_of(
            equals(session_key=member.session_key), Compare("seq", "gt", member.joined_seq)
        )
        spans.append(
            span
            if member.left_seq is None
            else all_of(span, Compare("seq", "lte", member.left_seq))
        )
    return Any_((equals(session_key=tuple(whole)), *spans))
