"""Visibility of sessions: archived ones are hidden unless a caller includes them."""

from __future__ import annotations

from dataclasses import replace

from memservice.domain.filters import TRUE, Condition, all_of, equals
from memservice.domain.filters.ast import Compare, Not
from memservice.domain.records import ARCHIVED, DELETING, ERASED, ERASED_PREFIX, Peer, Session
from memservice.spi.repositories import Located
from memservice.spi.storage import Transaction


def find(
    tx: Transaction, workspace_id: str, session_id: str | None = None, peer_id: str | None = None
) -> Located:
    """Like `tx.workspaces.locate`, without an archived session."""
    located = tx.workspaces.locate(workspace_id, session_id, peer_id)
    if located.session is not None and located.session.state == ARCHIVED:
        return replace(located, session=None)
    return located


def visible(tx: Transaction, workspace_key: int, *, include_archived: bool = False) -> Condition:
    """Condition that excludes the messages of sessions being erased and, unless `include_archived`,
    of archived ones."""
    states = (DELETING,) if include_archived else (ARCHIVED, DELETING)
    hidden = tuple(
        session.key
        for session in tx.rows.page(Session, equals(workspace_key=workspace_key, state=states))
    )
    return Not(equals(session_key=hidden)) if hidden else TRUE


def not_erased(tx: Transaction, workspace_key: int, *fields: str) -> Condition:
    """Condition that excludes the rows of peers being erased, which `fields` name by key. Such rows
    still have the id of the peer, which a new peer may have."""
    of_workspace = equals(workspace_key=workspace_key, kind=ERASED)
    names = all_of(
        Compare("slug", "gte", ERASED_PREFIX), Compare("slug", "lt", ERASED_PREFIX[:-1] + "/")
    )
    keys = tuple(peer.key for peer in tx.rows.page(Peer, all_of(of_workspace, names)))
    return all_of(*(Not(equals(**{field: keys})) for field in fields)) if keys else TRUE
