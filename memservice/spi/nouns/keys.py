"""The keys that callers show: those minted here, and foreign ones that were revoked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memservice.domain.filters.ast import Any_, Compare, IsNull, all_of, where
from memservice.domain.records import ApiKey
from memservice.spi.nouns.base import CREATED, Noun
from memservice.spi.rows import Order


class Keys(Noun):
    def by_uid(self, uid: str) -> ApiKey | None:
        """In any state."""
        return self.rows.get(ApiKey, where(uid=uid))

    def add(self, key: ApiKey) -> ApiKey:
        return self.rows.put([key])[0]

    def page(self, order: Sequence[Order] = CREATED, limit: int = 50, offset: int = 0) -> list[ApiKey]:
        """In any state."""
        return self.rows.page(ApiKey, order=order, limit=limit, offset=offset)

    def count(self) -> int:
        return self.rows.count(ApiKey)

    def revoke(self, uid: str, at: datetime) -> bool:
        """False if there is no such key. One that is revoked stays revoked since then."""
        self.rows.change(ApiKey, where(uid=uid, revoked_at=None), revoked_at=at)
        return self.rows.count(ApiKey, where(uid=uid)) > 0

    def used(self, uid: str, at: datetime, unless_since: datetime) -> bool:
        """Note that the key was used, unless that was noted at or after `unless_since`. True if it was noted now."""
        stale = Any_((IsNull("last_used_at"), Compare("last_used_at", "lt", unless_since)))
        return self.rows.change(ApiKey, all_of(where(uid=uid), stale), last_used_at=at) > 0
