"""Recall: the conclusions about a peer and the messages of its sessions that match a query best."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from memservice.domain.filters import TRUE, Condition, all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import DELETING, Conclusion, Message, Peer
from memservice.runtime import Runtime
from memservice.services import moments, validation, visibility
from memservice.services.auth import policy
from memservice.services.auth.bounds import Bounds, bounds_for, visible_to
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.retrieval.search import Search
from memservice.spi.index_filter import IndexFilter
from memservice.spi.repositories.workspaces import Located
from memservice.spi.storage import Transaction


class RecallOptions(Struct, frozen=True):
    query: str
    limit: int = 10
    """Maximum number of conclusions, and of messages."""
    since: datetime | None = None
    """Only what was said at this time or later."""
    as_of: str | None = None
    """A time as the caller wrote it: only what was known then."""


class RecallResult(Struct, frozen=True):
    """Each kind best first."""

    conclusions: Sequence[Conclusion] = ()
    messages: Sequence[Message] = ()


def recall(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    peer_id: str,
    options: RecallOptions,
    session_id: str | None = None,
) -> RecallResult:
    """Conclusions of the peer about itself, and messages that it could read; with a session, only
    what was said there. Empty for an unknown workspace or session. An unknown peer has no
    conclusions, and without a session no messages."""
    policy.require(
        principal,
        workspace_id,
        peer_id=peer_id,
        session_id=session_id,
        needs=Permission.VIEW,
    )
    moment = moments.parse(rt, options.as_of)
    search = Search.begin(rt, workspace_id, options.query, "search_memory")
    with rt.storage.read() as tx:
        located = visibility.find(tx, workspace_id, session_id=session_id, peer_id=peer_id)
        validation.refuse_scope(peer_id, located.peer, ("peer_id",), unknown_too=False)
        bounds = _bounds(tx, principal, located, options, session_id, moment)
        if bounds is None:
            return RecallResult()
        conclusions: list[Conclusion] = []
        if located.peer is not None:
            of_pair = _about(bounds, located.peer, _since("said_at", options.since))
            hits = search.conclusions(tx, of_pair, options.limit)
            conclusions = [hit.conclusion for hit in hits]
        return RecallResult(conclusions, search.messages(tx, bounds, options.limit))


def _bounds(
    tx: Transaction,
    principal: Principal,
    located: Located,
    options: RecallOptions,
    session_id: str | None,
    moment: datetime | None,
) -> Bounds | None:
    """What is searched; None if there is nothing."""
    workspace, session, peer = located.workspace, located.session, located.peer
    if workspace is None:
        return None
    caller = bounds_for(tx, principal, workspace, is_erasing=located.is_erasing)
    bounds = caller.as_of(tx, moment).with_messages(_since("created_at", options.since))
    if session_id is not None:
        if session is None or session.state == DELETING:
            return None
        return bounds.in_sessions((session.key,)).stated_in((session.key,))
    if peer is None:
        return None
    return bounds.with_messages(all_of(visible_to(tx, peer), visibility.visible(tx, workspace.key)))


def _about(bounds: Bounds, peer: Peer, condition: Condition) -> Bounds:
    """With the conclusions of the peer about itself only."""
    pair = equals(observer_key=peer.key, observed_key=peer.key)
    return bounds.with_conclusions(
        all_of(pair, condition), IndexFilter(observers=(peer.key,), observed=(peer.key,))
    )


def _since(name: str, time: datetime | None) -> Condition:
    return TRUE if time is None else Compare(name, "gte", time)
