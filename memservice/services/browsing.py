"""Listings for interactive browsing: each page continues after a row, so the cost of a page does
not depend on the number of rows. There are no totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from memservice.domain.filters import all_of, equals
from memservice.domain.records import (
    ACTIVE,
    DELETING,
    LIVE,
    PEER,
    SUPERSEDED,
    Collection,
    Conclusion,
    Member,
    Message,
    Peer,
    Session,
    Summary,
    Workspace,
)
from memservice.runtime import Runtime
from memservice.services import cards, sessions, visibility, workspaces
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.indexing import CONCLUSION, MESSAGE
from memservice.services.paging import LISTING_SIZE, NEWEST_FIRST, Listing, page_after
from memservice.spi.index_filter import EVERYTHING
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction

MAX_RELATED = 200
"""Maximum number of related rows: members of a session, observers of a peer."""


class ListedWorkspace(Struct, frozen=True):
    workspace: Workspace
    messages: int
    """Messages in the text index: those whose session is being erased count until they are."""
    last_message_at: datetime | None
    """When the message that was stored last was sent."""


def list_workspaces(
    rt: Runtime, principal: Principal, after: str | None = None
) -> Listing[ListedWorkspace]:
    """Those that `policy.listable` names; for the key of a workspace, its own."""
    if principal.admin or principal.is_member:
        condition = all_of(policy.listable(principal), equals(state=ACTIVE))
        with rt.storage.read() as tx:
            listing = page_after(tx, Workspace, condition, after)
            return Listing(_listed(rt, tx, listing.items), listing.after)
    workspace_id = principal.workspace_id or ""
    policy.require_key_of(principal, workspace_id)
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
        return Listing([] if workspace is None else _listed(rt, tx, [workspace]))


def _listed(rt: Runtime, tx: Transaction, workspaces: Sequence[Workspace]) -> list[ListedWorkspace]:
    keys = [workspace.key for workspace in workspaces]
    sizes = rt.storage.text.sizes(tx, MESSAGE, keys)
    times = tx.workspaces.last_messages(keys)
    return [ListedWorkspace(row, sizes.get(row.key, 0), times.get(row.key)) for row in workspaces]


class WorkspaceOverview(Struct, frozen=True):
    workspace: Workspace
    peers: Listing[Peer]
    sessions: Listing[Session]
    messages: int
    """Number of messages in the text index, including those of sessions that are still being
    erased."""
    conclusions: int
    """Number of live conclusions in the text index."""
    last_message_at: datetime | None


def overview(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    peers_after: str | None = None,
    sessions_after: str | None = None,
) -> WorkspaceOverview:
    """A workspace with its newest peers and sessions. Raises `NotFound`."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        workspace = workspaces.require(tx, workspace_id)
        peers = page_after(tx, Peer, equals(workspace_key=workspace.key, kind=PEER), peers_after)
        of_workspace = page_after(
            tx, Session, equals(workspace_key=workspace.key, state=ACTIVE), sessions_after
        )
        newest = tx.rows.page(Message, equals(workspace_key=workspace.key), NEWEST_FIRST, 1)
        return WorkspaceOverview(
            workspace,
            peers,
            of_workspace,
            _count_indexed(rt, tx, MESSAGE, workspace),
            _count_indexed(rt, tx, CONCLUSION, workspace),
            newest[0].created_at if newest else None,
        )


def _count_indexed(rt: Runtime, tx: Transaction, kind: str, workspace: Workspace) -> int:
    return rt.storage.text.search(tx, kind, workspace.key, (), 1, EVERYTHING).documents


class PeerOverview(Struct, frozen=True):
    peer: Peer
    observers: Sequence[str]
    """Ids of the peers with conclusions about this one, itself first."""
    observer: str
    """The id of the observer of the card and the conclusions."""
    card: Sequence[str]
    conclusions: Listing[Conclusion]
    """Live and superseded ones."""
    sources: Mapping[int, Message]
    """Key → source message of the conclusions, if it exists."""
    successors: Mapping[int, Conclusion]
    """Key → successor of the superseded conclusions."""


def peer_overview(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    peer_id: str,
    observer_id: str | None = None,
    after: str | None = None,
) -> PeerOverview:
    """The card and conclusions of an observer (by default the peer itself) about a peer. Raises
    `NotFound`."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        workspace = workspaces.require(tx, workspace_id)
        observer_id = observer_id or peer_id
        pair = tx.peers.by_slugs(workspace.key, sorted({peer_id, observer_id}))
        for name in (peer_id, observer_id):
            if name not in pair:
                raise cards.no_observer(workspace_id, name)
        peer, observer = pair[peer_id], pair[observer_id]
        collections = tx.rows.page(
            Collection,
            equals(workspace_key=workspace.key, observed_key=peer.key),
            limit=MAX_RELATED,
        )
        others = sorted({row.observer for row in collections} - {peer_id})
        listing = page_after(
            tx,
            Conclusion,
            equals(
                workspace_key=workspace.key,
                observer_key=observer.key,
                observed_key=peer.key,
                state=(LIVE, SUPERSEDED),
            ),
            after,
        )
        keys = sorted({key for row in listing.items for key in row.message_keys})
        successors = sorted(
            {row.superseded_by for row in listing.items if row.superseded_by is not None}
        )
        # Messages of a session that is being erased are not shown.
        visible = visibility.visible(tx, workspace.key, include_archived=True)
        return PeerOverview(
            peer,
            [peer_id, *others],
            observer_id,
            cards.read_lines(tx, observer, peer_id) or [],
            listing,
            tx.messages.matching(workspace.key, keys, visible),
            {
                row.key: row
                for row in tx.rows.page(
                    Conclusion, equals(workspace_key=workspace.key, key=tuple(successors))
                )
            }
            if successors
            else {},
        )


class Transcript(Struct, frozen=True):
    session: Session
    messages: Sequence[Message]
    """One run of the session, oldest first."""
    members: Sequence[Member]
    """Peers that are or were members, in the order of joining."""
    summaries: Mapping[int, Sequence[Summary]]
    """Seq of the last covered message → summaries."""

    @property
    def earlier(self) -> int | None:
        """The `before` of the previous page; None: this is the first one."""
        first = self.messages[0].seq if self.messages else 1
        return first if first > 1 else None


def transcript(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    session_id: str,
    before: int | None = None,
) -> Transcript:
    """The last messages of a session, or the last ones before a seq. Raises `NotFound`."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        located = visibility.find(tx, workspace_id, session_id=session_id)
        session = located.session
        if session is None or session.state == DELETING:
            raise sessions.not_found(workspace_id, session_id)
        last = session.message_count if before is None else min(before - 1, session.message_count)
        members = tx.rows.page(
            Member,
            equals(session_key=session.key, kind=PEER),
            (Order("joined_at"), Order("key")),
            MAX_RELATED,
        )
        first = max(1, last - LISTING_SIZE + 1)
        rows: Sequence[Message] = tx.messages.run(session.key, first, last) if last > 0 else []
        if located.is_erasing:
            rows = visibility.without_erased(tx, session.workspace_key, rows)
        summaries: dict[int, list[Summary]] = {}
        of_session = tx.summaries.of_session(session.key)
        covered = tx.messages.by_keys(sorted({row.message_key for row in of_session.values()}))
        for summary in of_session.values():
            if summary.message_key in covered:
                summaries.setdefault(covered[summary.message_key].seq, []).append(summary)
        return Transcript(
            session,
            rows,
            members,
            summaries,
        )
