"""What a caller may read, derived from its key. Only this module does that.

Search, chat with its evidence and its tools, representations and contexts start from `bounds_for`
and only narrow the result: `Bounds` cannot become wider. Background work for a peer starts from
`of_observer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from memservice.domain.filters import FALSE, TRUE, Condition, all_of, equals
from memservice.domain.filters.ast import Any_, Compare, Not
from memservice.domain.records import EXPLICIT, SCOPE, NamedCollection, Peer, Workspace
from memservice.services import moments, scopes, visibility
from memservice.services.auth.principal import Principal
from memservice.services.v1 import collections
from memservice.spi.index_filter import EVERYTHING, IndexFilter, matches_nothing
from memservice.spi.repositories.conclusions import LIVE_ROWS
from memservice.spi.storage import Transaction

MAX_SESSIONS = 1_000
"""Maximum number of sessions that an index is narrowed to; the condition covers more."""

T = TypeVar("T", int, str)


class Bounds(Struct, frozen=True):
    """The readable messages, conclusions and cards of a workspace. Created only in this module."""

    workspace: int
    subject: Peer | None = None
    """The peer that a question is about, if that is decided."""
    sessions: tuple[int, ...] | None = None
    """Keys of the sessions whose messages are readable; None: all of the workspace."""
    message_condition: Condition = TRUE
    """Further condition on readable messages."""
    last_seq: Mapping[int, int] = field(default_factory=dict)
    """Session key → the last readable position in it, if the peer has left. `message_condition`
    includes it; ranking needs it, because a message shares its words with its neighbours."""
    narrowed: IndexFilter = EVERYTHING
    """The part of `condition` that an index can apply."""
    condition: Condition = TRUE
    """Condition on readable conclusions, live and superseded."""
    standing: Condition = LIVE_ROWS
    """Which of them stand: the live ones, or those that stood at `moment`."""
    moment: datetime | None = None
    """Only what was known at this time is readable; None: now."""
    has_chains: bool = True
    """Whether the provenance of conclusions is readable; False if only some sessions are."""
    has_cards: bool = True
    """Whether cards are readable. A card is written from all conclusions, regardless of their
    session."""
    is_whole: bool = False
    """Whether the key opens the whole workspace. Only then may its statistics be told: how many
    rows contain a word, and how many a filter excluded."""
    erased: tuple[int, ...] = ()
    """Keys of the peers that are being erased; `message_condition` and `condition` exclude them."""

    @property
    def no_conclusions(self) -> bool:
        return matches_nothing(self.narrowed)

    def may_read(self, session_key: int, seq: int) -> bool:
        """Whether the position is readable: False after the peer has left the session."""
        last = self.last_seq.get(session_key)
        return last is None or seq <= last

    def about(self, subject: Peer) -> Bounds:
        return replace(self, subject=subject)

    def in_sessions(self, session_keys: Sequence[int]) -> Bounds:
        """The same bounds with the messages of these sessions only."""
        return replace(self, sessions=_both(self.sessions, tuple(session_keys)))

    def with_messages(self, condition: Condition) -> Bounds:
        """The same bounds with the messages that also match `condition`."""
        return replace(self, message_condition=all_of(self.message_condition, condition))

    def with_conclusions(
        self, condition: Condition, index_filter: IndexFilter = EVERYTHING
    ) -> Bounds:
        """The same bounds with the conclusions that also match `condition`; `index_filter`: the
        part of it that an index can apply."""
        return replace(
            self,
            condition=all_of(self.condition, condition),
            narrowed=_narrower(self.narrowed, index_filter),
        )

    def as_of(self, tx: Transaction, moment: datetime | None) -> Bounds:
        """The same bounds with what was known at a time (None: now), without cards: of a card only
        the newest state is stored. Conclusions that were superseded later stand again."""
        if moment is None:
            return self
        recorded = self.with_messages(moments.messages(moment)).with_conclusions(
            moments.recorded(moment), IndexFilter(until=moment)
        )
        standing = moments.standing(tx, self.workspace, moment)
        return replace(recorded, standing=standing, moment=moment, has_cards=False)

    def stated_in(self, session_keys: Sequence[int]) -> Bounds:
        """The same bounds with the conclusions that were stated in these sessions. A conclusion
        derived from several sessions has the key of only one of them, so it is left out."""
        keys = tuple(session_keys)
        stated = self.with_conclusions(
            equals(level=EXPLICIT, session_key=keys),
            IndexFilter(levels=(EXPLICIT,), sessions=keys[:MAX_SESSIONS]),
        )
        return replace(stated, has_chains=False)


def _both(first: tuple[T, ...] | None, second: tuple[T, ...] | None) -> tuple[T, ...] | None:
    if first is None or second is None:
        return second if first is None else first
    common = frozenset(first)
    return tuple(value for value in second if value in common)


def _narrower(bounds: IndexFilter, index_filter: IndexFilter) -> IndexFilter:
    return IndexFilter(
        sessions=_both(bounds.sessions, index_filter.sessions),
        authors=_both(bounds.authors, index_filter.authors),
        observers=_both(bounds.observers, index_filter.observers),
        observed=_both(bounds.observed, index_filter.observed),
        levels=_both(bounds.levels, index_filter.levels),
        since=index_filter.since
        if bounds.since is None
        else bounds.since
        if index_filter.since is None
        else max(bounds.since, index_filter.since),
        until=index_filter.until
        if bounds.until is None
        else bounds.until
        if index_filter.until is None
        else min(bounds.until, index_filter.until),
    )


def bounds_for(
    tx: Transaction, principal: Principal, workspace: Workspace, *, is_erasing: bool = True
) -> Bounds:
    """What the caller may read in the workspace, by the narrowest name of its key.

    - Admin, the workspace, or a console member with access to it: everything.
    - A session: the messages of the session and the conclusions stated there, no cards.
    - A collection: the conclusions of the reserved collection, if it is that one.
    - A peer: its own conclusions, and the messages of its sessions until it left them.

    Messages of peers that are being erased, and conclusions by and about them, are not readable.
    Such peers are read unless `is_erasing` is False: `Located` tells at no cost that none is.
    """
    bounds = _of_key(tx, principal, workspace)
    erased = visibility.erased_peers(tx, workspace.key) if is_erasing else ()
    if not erased:
        return bounds
    messages = visibility.not_of(erased, "author_key")
    conclusions = visibility.not_of(erased, "observer_key", "observed_key")
    return replace(bounds.with_messages(messages).with_conclusions(conclusions), erased=erased)


def _of_key(tx: Transaction, principal: Principal, workspace: Workspace) -> Bounds:
    if principal.admin or principal.opens_whole(workspace.slug):
        return Bounds(workspace.key, is_whole=True)
    if principal.workspace_id != workspace.slug:
        return _nothing(workspace)
    if principal.collection is not None:
        return _of_collection(tx, workspace, principal.collection)
    if principal.session_id is not None:
        session = tx.sessions.by_slug(workspace.key, principal.session_id)
        keys = () if session is None else (session.key,)
        return Bounds(workspace.key, has_cards=False).in_sessions(keys).stated_in(keys)
    if principal.peer_id is not None:
        peer = tx.peers.by_slug(workspace.key, principal.peer_id)
        return _nothing(workspace) if peer is None else of_observer(tx, peer)
    return Bounds(workspace.key, is_whole=True)


def _nothing(workspace: Workspace) -> Bounds:
    return Bounds(
        workspace.key,
        sessions=(),
        message_condition=FALSE,
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
        message_condition=FALSE,
        narrowed=index_filter,
        condition=pair,
        has_cards=False,
    )


def of_observer(tx: Transaction, observer: Peer) -> Bounds:
    """What a peer may read: its own conclusions, and the messages of its sessions until it left
    them. The bounds of its key and of its dreams are no wider."""
    memberships = tx.members.of_peer(observer.key, active=observer.kind == SCOPE)
    later = tuple(
        all_of(equals(session_key=member.session_key), Compare("seq", "gt", member.left_seq))
        for member in memberships
        if member.left_seq is not None
    )
    return Bounds(
        observer.workspace_key,
        sessions=tuple(sorted({member.session_key for member in memberships})),
        message_condition=Not(Any_(later)) if later else TRUE,
        last_seq={
            member.session_key: member.left_seq
            for member in memberships
            if member.left_seq is not None
        },
        narrowed=IndexFilter(observers=(observer.key,)),
        condition=equals(observer_key=observer.key),
    )


def sessions_of(
    tx: Transaction, observer: Peer, allowed: Sequence[int] | None = None
) -> tuple[int, ...]:
    """Keys of the sessions that the observer is or was in, limited to `allowed`. For a scope: the
    sessions that are in it now."""
    memberships = tx.members.of_peer(observer.key, active=observer.kind == SCOPE)
    keys = {member.session_key for member in memberships}
    return tuple(sorted(keys if allowed is None else keys & set(allowed)))


def visible_to(tx: Transaction, peer: Peer) -> Condition:
    """Messages of the peer's sessions, stored while it was a member; for a scope, all messages of
    its sessions.

    The time of storage counts, not the time of the message: callers choose the latter, and import
    old conversations for present members.
    """
    if peer.kind == SCOPE:
        return equals(
            session_key=tuple(member.session_key for member in scopes.member_sessions(tx, peer))
        )
    full_sessions: list[int] = []
    spans: list[Condition] = []
    for member in tx.members.of_peer(peer.key):
        if member.joined_seq == 0 and member.left_seq is None:
            full_sessions.append(member.session_key)
            continue
        span = all_of(
            equals(session_key=member.session_key), Compare("seq", "gt", member.joined_seq)
        )
        spans.append(
            span
            if member.left_seq is None
            else all_of(span, Compare("seq", "lte", member.left_seq))
        )
    return Any_((equals(session_key=tuple(full_sessions)), *spans))
