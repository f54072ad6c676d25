"""What the names in a path of generations 2 and 3 stand for."""

from __future__ import annotations

from dataclasses import replace

from memservice.domain.filters import TRUE, Node, where
from memservice.domain.filters.ast import Not
from memservice.domain.records import ARCHIVED, Session
from memservice.spi.nouns import Located
from memservice.spi.storage import View


def locate(view: View, workspace: str, session: str | None = None, peer: str | None = None) -> Located:
    """As `view.workspaces.locate`, without a session that generation 1 archived: only there does it go on."""
    found = view.workspaces.locate(workspace, session, peer)
    if found.session is not None and found.session.state == ARCHIVED:
        return replace(found, session=None)
    return found


def not_archived(view: View, workspace: int) -> Node:
    """The condition on messages that keeps those of archived sessions out of what generations 2 and 3 find."""
    hidden = tuple(session.key for session in view.rows.page(Session, where(workspace_key=workspace, state=ARCHIVED)))
    return Not(where(session_key=hidden)) if hidden else TRUE
