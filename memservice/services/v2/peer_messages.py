"""Messages that belong to no conversation, as the first clients of generation 2 store them: each peer has a session of its own for them."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.errors import InvalidInput, Problem
from memservice.domain.filters import all_of, parse_filters, resources, where
from memservice.domain.records import Message, Peer
from memservice.runtime import Runtime
from memservice.services import (
    messages,
    peers,
    visibility,
)
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.messages import Draft
from memservice.services.paging import Page, Paging


def session_of(peer: Peer) -> str:
    """The name of that session. The peer's uid is in it, since with the peer's name it might be too long."""
    return f"__peer_{peer.uid}"


def create(
    rt: Runtime, who: Principal, workspace: str, peer: str, drafts: Sequence[Draft], idempotency_key: str | None = None
) -> list[Message]:
    """Store messages of the peer, all or none. Creates the workspace, the peer and the session that are missing. A key of idempotency is
    the peer's own."""
    policy.require(who, workspace, peer=peer)
    strangers = [
        Problem(("body", "messages", index, "peer_id"), f"peer_id must be {peer!r}, the peer of the path")
        for index, draft in enumerate(drafts)
        if draft.author != peer
    ]
    if strangers:
        raise InvalidInput(*strangers)
    found, _ = peers.get_or_create(rt, who, workspace, peer, None, None)
    return messages.create_in(rt, workspace, session_of(found), drafts, idempotency_key)


def page(rt: Runtime, who: Principal, workspace: str, peer: str, filters: object, paging: Paging) -> Page[Message]:
    """Those that the peer said there, in the order in which they were stored; none of a peer that does not exist."""
    policy.require(who, workspace, peer=peer)
    condition = parse_filters(filters, resources.MESSAGE, workspace=workspace)
    with rt.storage.read() as view:
        found = view.workspaces.locate(workspace, peer=peer).peer
        room = None if found is None else visibility.locate(view, workspace, session=session_of(found)).session
        if found is None or room is None:
            return Page([], 0, paging.page, paging.size)
        return messages.page_of(view, room, all_of(condition, where(author_key=found.key)), paging)
