"""Messages outside any conversation, which the first clients of generation 2 store: each peer has
its own session for them."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.errors import InvalidInput, Problem
from memservice.domain.filters import all_of, equals, parse_filters, resources
from memservice.domain.records import Message, Peer
from memservice.runtime import Runtime
from memservice.services import messages, peers, visibility
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.messages import Draft
from memservice.services.paging import Page, Paging


def session_of(peer: Peer) -> str:
    """The name of that session. It contains the peer's uid, since it could be too long with the
    peer's name."""
    return f"{policy.PEER_SESSION_PREFIX}{peer.uid}"


def create(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    peer_id: str,
    drafts: Sequence[Draft],
    idempotency_key: str | None = None,
) -> list[Message]:
    """Store messages of the peer, all or none. Creates the workspace, the peer and the session if
    they are missing. Idempotency keys are separate for each peer."""
    policy.require(principal, workspace_id, peer_id=peer_id)
    problems = [
        Problem(
            ("messages", index, "peer_id"),
            f"peer_id must be {peer_id!r}, the peer of the path",
        )
        for index, draft in enumerate(drafts)
        if draft.author != peer_id
    ]
    if problems:
        raise InvalidInput(*problems)
    peer, _ = peers.get_or_create(rt, principal, workspace_id, peer_id, None, None)
    return messages.create_in(rt, workspace_id, session_of(peer), drafts, idempotency_key)


def page(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    peer_id: str,
    filters: object,
    paging: Paging,
) -> Page[Message]:
    """The peer's messages there, in the order of storage; empty for a peer that does not exist."""
    policy.require(principal, workspace_id, peer_id=peer_id)
    condition = parse_filters(filters, resources.MESSAGE, workspace_id=workspace_id)
    with rt.storage.read() as tx:
        peer = tx.workspaces.locate(workspace_id, peer_id=peer_id).peer
        session = (
            None
            if peer is None
            else visibility.find(tx, workspace_id, session_id=session_of(peer)).session
        )
        if peer is None or session is None:
            return paging.empty()
        return messages.page_of(tx, session, all_of(condition, equals(author_key=peer.key)), paging)
