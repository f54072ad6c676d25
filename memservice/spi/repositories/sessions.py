"""Sessions."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.filters.ast import TRUE, Condition, all_of, equals
from memservice.domain.records import Member, Session
from memservice.spi.repositories.base import CREATED, Repository
from memservice.spi.rows import Order


class Sessions(Repository):
    def by_slug(self, workspace_key: int, slug: str, *, lock: bool = False) -> Session | None:
        """In any state."""
        return self.rows.get(Session, equals(workspace_key=workspace_key, slug=slug), lock=lock)

    def by_slugs(self, workspace_key: int, slugs: Sequence[str]) -> list[Session]:
        """In any state, in key order; unknown slugs are left out."""
        return (
            self.rows.page(Session, equals(workspace_key=workspace_key, slug=tuple(slugs)))
            if slugs
            else []
        )

    def by_key(self, key: int, *, lock: bool = False) -> Session | None:
        return self.rows.get(Session, equals(key=key), lock=lock)

    def by_keys(self, keys: Sequence[int]) -> list[Session]:
        """In any state, in key order."""
        return self.rows.page(Session, equals(key=tuple(keys))) if keys else []

    def save(self, session: Session) -> Session:
        return self.rows.put([session])[0]

    def page(
        self,
        workspace_key: int,
        condition: Condition = TRUE,
        order: Sequence[Order] = CREATED,
        limit: int = 50,
        offset: int = 0,
    ) -> list[Session]:
        """Sessions of a workspace in any state; `condition` may restrict the state."""
        return self.rows.page(
            Session, all_of(equals(workspace_key=workspace_key), condition), order, limit, offset
        )

    def count(self, workspace_key: int, condition: Condition = TRUE) -> int:
        return self.rows.count(Session, all_of(equals(workspace_key=workspace_key), condition))

    def page_of_peer(
        self,
        peer_key: int,
        condition: Condition = TRUE,
        order: Sequence[Order] = CREATED,
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[Session], int]:
        """Sessions that the peer is or was a member of, and how many match in all."""
        keys = tuple(
            member.session_key for member in self.rows.page(Member, equals(peer_key=peer_key))
        )
        condition = all_of(equals(key=keys), condition)
        return self.rows.page(Session, condition, order, limit, offset), self.rows.count(
            Session, condition
        )

    def page_of_scope(
        self,
        scope_key: int,
        condition: Condition = TRUE,
        reverse: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[Session], int]:
        """Sessions that the scope is a member of now, in the order they joined it, and how many
        match in all."""
        members = self.rows.page(
            Member,
            equals(peer_key=scope_key, left_at=None),
            (Order("joined_at", reverse), Order("key", reverse)),
        )
        matching = self.rows.page(
            Session, all_of(equals(key=tuple(m.session_key for m in members)), condition)
        )
        by_key = {session.key: session for session in matching}
        ordered = [by_key[m.session_key] for m in members if m.session_key in by_key]
        return ordered[offset : offset + limit], len(ordered)
