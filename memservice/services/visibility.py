"""What the names in a path of generations 2 and 3 stand for."""

from __future__ import annotations

from dataclasses import replace

from memservice.domain.filters import TRUE, Node, where
from memservice.domain.filters.ast import Not
from memservice.domain.records import ARCHIVED, DELETING, Session
from memservice.spi.repositories import Located
from memservice.spi.storage import View


def locate(view: View, workspace: str, session: str | None = None, peer: str | None = None) -> Located:
    """As `view.workspaces.locate`, without a session that generation 1 archived: only there does it go on."""
    found = view.workspaces.locate(workspace, session, peer)
    if found.session is not None and found.session.state == ARCHIVED:
        return replace(found, session=None)
    return found


def going_on(view: View, workspace: int, *, archived: bool = False) -> Node:
    """The condition on messages that keeps those of sessions that await erasure out of what is found, and those of archived sessions
    unless generation 1 asks, where they go on."""
    states = (DELETING,) if archived else (ARCHIVED, DELETING)
    hidden = tuple(session.key for session in view.rows.page(Session, where(workspace_key=workspace, state=states)))
    return Not(where(session_key=hidden)) if hidden else TRUE
