"""Conclusions, the collections they lie in, and peer cards."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.filters.ast import TRUE, Holds, Node, all_of, where
from memservice.domain.records import LIVE, Card, Collection, Conclusion
from memservice.spi.repositories.base import (
    NEWEST,
    Noun,
)
from memservice.spi.rows import Order


class Conclusions(Noun):
    def by_uid(self, workspace: int, uid: str, *, lock: bool = False) -> Conclusion | None:
        """In any state."""
        return self.rows.get(Conclusion, where(uid=uid, workspace_key=workspace), lock=lock)

    def by_keys(self, keys: Sequence[int], condition: Node = TRUE) -> dict[int, Conclusion]:
        """Live conclusions of these keys that match."""
        if not keys:
            return {}
        found = self.rows.page(Conclusion, all_of(where(key=tuple(keys), state=LIVE), condition))
        return {conclusion.key: conclusion for conclusion in found}

    def put(self, conclusions: Sequence[Conclusion]) -> list[Conclusion]:
        return self.rows.put(conclusions) if conclusions else []

    def page(
        self, workspace: int, condition: Node = TRUE, order: Sequence[Order] = NEWEST, limit: int | None = 50, offset: int = 0
    ) -> list[Conclusion]:
        """Live conclusions of a workspace."""
        return self.rows.page(Conclusion, all_of(where(workspace_key=workspace, state=LIVE), condition), order, limit, offset)

    def count(self, workspace: int, condition: Node = TRUE) -> int:
        return self.rows.count(Conclusion, all_of(where(workspace_key=workspace, state=LIVE), condition))

    def same(self, collection: int, level: str, fingerprints: Sequence[str], session: int | None) -> dict[str, Conclusion]:
        """Live conclusions of a collection with one of these fingerprints, by fingerprint; of one session where one is given."""
        if not fingerprints:
            return {}
        condition = where(collection_key=collection, level=level, state=LIVE, fingerprint=tuple(fingerprints))
        if session is not None:
            condition = all_of(condition, where(session_key=session))
        return {found.fingerprint: found for found in reversed(self.rows.page(Conclusion, condition))}

    def resting_on(self, workspace: int, uid: str) -> list[Conclusion]:
        """Live conclusions that name `uid` among their sources."""
        return self.rows.page(Conclusion, all_of(where(workspace_key=workspace, state=LIVE), Holds("source_ids", uid)))

    def reinforce(self, keys: Sequence[int], times: int = 1) -> None:
        """Count so many more derivations of each."""
        if keys:
            self.rows.increase(Conclusion, where(key=tuple(keys)), times_derived=times)

    def collection(self, observer: int, observed: int, *, lock: bool = False) -> Collection | None:
        return self.rows.get(Collection, where(observer_key=observer, observed_key=observed), lock=lock)

    def collections(self, workspace: int, condition: Node = TRUE) -> list[Collection]:
        return self.rows.page(Collection, all_of(where(workspace_key=workspace), condition))

    def put_collection(self, collection: Collection) -> Collection:
        return self.rows.put([collection])[0]

    def count_explicit(self, collection: int, amount: int) -> None:
        """Add to a collection's count of live explicit conclusions."""
        self.rows.increase(Collection, where(key=collection), explicit_count=amount)


class Cards(Noun):
    def one(self, observer: int, target: str) -> Card | None:
        return self.rows.get(Card, where(observer_key=observer, target=target))

    def save(self, card: Card) -> Card:
        """Store the card in place of the one before."""
        self.rows.delete(Card, where(observer_key=card.observer_key, target=card.target))
        return self.rows.put([card])[0]
