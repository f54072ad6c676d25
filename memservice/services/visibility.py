"""Visibility of sessions: archived ones are hidden unless a caller includes them."""

from __future__ import annotations

from dataclasses import replace

from memservice.domain.filters import TRUE, Condition, equals
from memservice.domain.filters.ast import Not
from memservice.domain.records import ARCHIVED, DELETING, Session
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
