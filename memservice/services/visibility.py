"""What the names in a path of generations 2 and 3 stand for."""

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
    """As `tx.workspaces.locate`, without a session that generation 1 archived: only there does it
    go on."""
    located = tx.workspaces.locate(workspace_id, session_id, peer_id)
    if located.session is not None and located.session.state == ARCHIVED:
        return replace(located, session=None)
    return located


def visible(tx: Transaction, workspace_key: int, *, archived: bool = False) -> Condition:
    """The condition on messages that keeps those of sessions that await erasure out of what is
    found, and those of archived sessions unless generation 1 asks, where they go on."""
    states = (DELETING,) if archived else (ARCHIVED, DELETING)
    hidden = tuple(
        session.key
        for session in tx.rows.page(Session, equals(workspace_key=workspace_key, state=states))
    )
    return Not(equals(session_key=hidden)) if hidden else TRUE
