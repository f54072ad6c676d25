"""API keys: those that this service minted, and foreign ones that were revoked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memservice.domain.filters.ast import (
    TRUE,
    Any_,
    Compare,
    Condition,
    IsNull,
    Not,
    all_of,
    equals,
)
from memservice.domain.records import ACTIVE, DELETING, ApiKey, Peer, Session, Workspace
from memservice.spi.repositories.base import CREATED, Repository
from memservice.spi.rows import Order


class Keys(Repository):
    def by_uid(self, uid: str) -> ApiKey | None:
        """In any state."""
        return self.rows.get(ApiKey, equals(uid=uid))

    def recognised(self, uid: str) -> tuple[ApiKey, bool] | None:
        """The key, in any state, and whether its workspace, peer and session still exist. Rows that
        are being deleted count as missing."""
        key = self.by_uid(uid)
        if key is None:
            return None
        owners: tuple[tuple[type[Any], str | None, Condition], ...] = (
            (Workspace, key.workspace_uid, equals(state=ACTIVE)),
            (Peer, key.peer_uid, TRUE),
            (Session, key.session_uid, Not(equals(state=DELETING))),
        )
        all_exist = all(
            uid is None or self.rows.get(record, all_of(equals(uid=uid), condition))
            for record, uid, condition in owners
        )
        return key, all_exist

    def add(self, key: ApiKey) -> ApiKey:
        return self.rows.put([key])[0]

    def page(
        self, order: Sequence[Order] = CREATED, limit: int = 50, offset: int = 0
    ) -> list[ApiKey]:
        """In any state."""
        return self.rows.page(ApiKey, order=order, limit=limit, offset=offset)

    def count(self) -> int:
        return self.rows.count(ApiKey)

    def revoke(self, uid: str, at: datetime) -> bool:
        """False if there is no such key. A key that is revoked already keeps its time."""
        self.rows.change(ApiKey, equals(uid=uid, revoked_at=None), revoked_at=at)
        return self.rows.count(ApiKey, equals(uid=uid)) > 0

    def revoke_of(
        self,
        at: datetime,
        workspace_id: str,
        session_id: str | None = None,
        peer_id: str | None = None,
    ) -> int:
        """Revoke the keys of a workspace, or of one session or peer in it, by slug; returns how
        many were not revoked yet."""
        names = {"workspace": workspace_id, "session": session_id, "peer": peer_id}
        named = equals(**{name: value for name, value in names.items() if value is not None})
        return self.rows.change(ApiKey, all_of(named, equals(revoked_at=None)), revoked_at=at)

    def used(self, uid: str, at: datetime, unless_since: datetime) -> bool:
        """Record a use of the key, unless a use at or after `unless_since` is recorded. True if it
        was recorded now."""
        stale = Any_((IsNull("last_used_at"), Compare("last_used_at", "lt", unless_since)))
        return self.rows.change(ApiKey, all_of(equals(uid=uid), stale), last_used_at=at) > 0
