"""Workspaces and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memservice.domain.filters.ast import TRUE, Node, all_of, where
from memservice.domain.records import ACTIVE, Member, Peer, Session, Workspace
from memservice.spi.nouns.base import CREATED, Noun
from memservice.spi.rows import Order


@dataclass(frozen=True, slots=True)
class Located:
    """What the names in a path stand for; None where there is no such row (or none was asked for)."""

    workspace: Workspace | None = None
    session: Session | None = None
    peer: Peer | None = None


class Workspaces(Noun):
    def locate(self, slug: str, session: str | None = None, peer: str | None = None) -> Located:
        """The active workspace of that slug, and the session (in any state) and peer of these slugs in it."""
        workspace = self.rows.get(Workspace, where(slug=slug, state=ACTIVE))
        if workspace is None:
            return Located()
        return Located(
            workspace,
            None if session is None else self.rows.get(Session, where(workspace_key=workspace.key, slug=session)),
            None if peer is None else self.rows.get(Peer, where(workspace_key=workspace.key, slug=peer)),
        )

    def by_slug(self, slug: str, *, lock: bool = False) -> Workspace | None:
        """The active workspace of that slug."""
        return self.rows.get(Workspace, where(slug=slug, state=ACTIVE), lock=lock)

    def by_key(self, key: int, *, lock: bool = False) -> Workspace | None:
        """In any state."""
        return self.rows.get(Workspace, where(key=key), lock=lock)

    def save(self, workspace: Workspace) -> Workspace:
        return self.rows.put([workspace])[0]

    def page(self, condition: Node = TRUE, order: Sequence[Order] = CREATED, limit: int = 50, offset: int = 0) -> list[Workspace]:
        return self.rows.page(Workspace, all_of(where(state=ACTIVE), condition), order, limit, offset)

    def count(self, condition: Node = TRUE) -> int:
        return self.rows.count(Workspace, all_of(where(state=ACTIVE), condition))


class Sessions(Noun):
    def by_slug(self, workspace: int, slug: str, *, lock: bool = False) -> Session | None:
        """In any state."""
        return self.rows.get(Session, where(workspace_key=workspace, slug=slug), lock=lock)

    def by_slugs(self, workspace: int, slugs: Sequence[str]) -> list[Session]:
        """In any state, in key order; unknown slugs are left out."""
        return self.rows.page(Session, where(workspace_key=workspace, slug=tuple(slugs))) if slugs else []

    def by_key(self, key: int, *, lock: bool = False) -> Session | None:
        return self.rows.get(Session, where(key=key), lock=lock)

    def by_keys(self, keys: Sequence[int]) -> list[Session]:
        """In any state, in key order."""
        return self.rows.page(Session, where(key=tuple(keys))) if keys else []

    def save(self, session: Session) -> Session:
        return self.rows.put([session])[0]

    def page(
        self, workspace: int, condition: Node = TRUE, order: Sequence[Order] = CREATED, limit: int = 50, offset: int = 0
    ) -> list[Session]:
        """Sessions of a workspace in any state; the caller states which it wants."""
        return self.rows.page(Session, all_of(where(workspace_key=workspace), condition), order, limit, offset)

    def count(self, workspace: int, condition: Node = TRUE) -> int:
        return self.rows.count(Session, all_of(where(workspace_key=workspace), condition))

    def page_of_peer(
        self, peer: int, condition: Node = TRUE, order: Sequence[Order] = CREATED, limit: int = 50, offset: int = 0
    ) -> tuple[list[Session], int]:
        """Sessions that the peer is or was a member of, and how many match in all."""
        keys = tuple(member.session_key for member in self.rows.page(Member, where(peer_key=peer)))
        condition = all_of(where(key=keys), condition)
        return self.rows.page(Session, condition, order, limit, offset), self.rows.count(Session, condition)

    def page_of_scope(
        self, scope: int, condition: Node = TRUE, reverse: bool = False, limit: int = 50, offset: int = 0
    ) -> tuple[list[Session], int]:
        """Sessions that the scope is a member of now, in the order they joined it, and how many match in all."""
        members = self.rows.page(Member, where(peer_key=scope, left_at=None), (Order("joined_at", reverse), Order("key", reverse)))
        matching = self.rows.page(Session, all_of(where(key=tuple(m.session_key for m in members)), condition))
        by_key = {session.key: session for session in matching}
        ordered = [by_key[m.session_key] for m in members if m.session_key in by_key]
        return ordered[offset : offset + limit], len(ordered)
