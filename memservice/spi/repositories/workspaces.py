"""Workspaces, and the look-up of the ids in a path."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from memservice.domain.filters.ast import TRUE, Condition, all_of, equals
from memservice.domain.records import ACTIVE, ERASED, Message, Peer, Session, Space, Workspace
from memservice.spi.repositories.base import CREATED, Repository
from memservice.spi.rows import Order


class Located(Struct, frozen=True):
    """The rows that the ids in a path stand for; None if there is no such row, or no id."""

    workspace: Workspace | None = None
    session: Session | None = None
    peer: Peer | None = None
    message: Message | None = None
    is_erasing: bool = False
    """Whether a peer of the workspace is being erased."""


class Workspaces(Repository):
    def locate(
        self,
        slug: str,
        session_id: str | None = None,
        peer_id: str | None = None,
        message_uid: str | None = None,
    ) -> Located:
        """The active workspace of that slug, the session (in any state) and peer of these slugs in
        it, and the message with this uid in the session."""
        workspace = self.rows.get(Workspace, equals(slug=slug, state=ACTIVE))
        if workspace is None:
            return Located()
        of_workspace = equals(workspace_key=workspace.key, kind=ERASED)
        session = (
            None
            if session_id is None
            else self.rows.get(Session, equals(workspace_key=workspace.key, slug=session_id))
        )
        return Located(
            workspace,
            session,
            None
            if peer_id is None
            else self.rows.get(Peer, equals(workspace_key=workspace.key, slug=peer_id)),
            None
            if session is None or message_uid is None
            else self.rows.get(Message, equals(uid=message_uid, session_key=session.key)),
            self.rows.get(Peer, of_workspace) is not None,
        )

    def by_slug(self, slug: str, *, lock: bool = False) -> Workspace | None:
        """The active workspace of that slug."""
        return self.rows.get(Workspace, equals(slug=slug, state=ACTIVE), lock=lock)

    def with_spaces(self, slug: str) -> tuple[Workspace | None, list[Space]]:
        """The active workspace of that slug, and its vector spaces."""
        workspace = self.by_slug(slug)
        if workspace is None:
            return None, []
        return workspace, self.rows.page(Space, equals(workspace_key=workspace.key))

    def by_key(self, key: int, *, lock: bool = False) -> Workspace | None:
        """In any state."""
        return self.rows.get(Workspace, equals(key=key), lock=lock)

    def save(self, workspace: Workspace) -> Workspace:
        return self.rows.put([workspace])[0]

    def page(
        self,
        condition: Condition = TRUE,
        order: Sequence[Order] = CREATED,
        limit: int = 50,
        offset: int = 0,
    ) -> list[Workspace]:
        return self.rows.page(
            Workspace, all_of(equals(state=ACTIVE), condition), order, limit, offset
        )

    def last_messages(self, keys: Sequence[int]) -> dict[int, datetime]:
        """When the message that was stored last in each of these workspaces was sent, by key;
        workspaces without messages are left out. One index look-up each."""
        times: dict[int, datetime] = {}
        for key in keys:
            newest = (Order("key", descending=True),)
            messages = self.rows.page(Message, equals(workspace_key=key), newest, 1)
            if messages:
                times[key] = messages[0].created_at
        return times

    def count(self, condition: Condition = TRUE) -> int:
        return self.rows.count(Workspace, all_of(equals(state=ACTIVE), condition))
