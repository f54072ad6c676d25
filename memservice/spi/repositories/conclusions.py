"""Conclusions, their collections, and peer cards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memservice.domain.filters.ast import TRUE, Condition, Holds, all_of, equals
from memservice.domain.records import LIVE, Card, Collection, Conclusion
from memservice.spi.repositories.base import NEWEST, Repository
from memservice.spi.rows import Order

LIVE_ROWS = equals(state=LIVE)
"""The condition of live conclusions."""


class Conclusions(Repository):
    def by_uid(self, workspace_key: int, uid: str, *, lock: bool = False) -> Conclusion | None:
        """In any state. `lock` also locks its pair, before it (`lock_collections`)."""
        condition = equals(uid=uid, workspace_key=workspace_key)
        if lock and (unlocked := self.rows.get(Conclusion, condition)) is not None:
            self.lock_collections([unlocked.collection_key])
        return self.rows.get(Conclusion, condition, lock=lock)

    def by_keys(
        self,
        keys: Sequence[int],
        condition: Condition = TRUE,
        standing: Condition = LIVE_ROWS,
    ) -> dict[int, Conclusion]:
        """Live conclusions of these keys that match; `standing`: others instead of live ones."""
        if not keys:
            return {}
        conclusions = self.rows.page(
            Conclusion, all_of(equals(key=tuple(keys)), standing, condition)
        )
        return {conclusion.key: conclusion for conclusion in conclusions}

    def put(self, conclusions: Sequence[Conclusion]) -> list[Conclusion]:
        return self.rows.put(conclusions) if conclusions else []

    def page(
        self,
        workspace_key: int,
        condition: Condition = TRUE,
        order: Sequence[Order] = NEWEST,
        limit: int | None = 50,
        offset: int = 0,
        standing: Condition = LIVE_ROWS,
    ) -> list[Conclusion]:
        """Live conclusions of a workspace; `standing`: others instead of live ones."""
        return self.rows.page(
            Conclusion,
            all_of(equals(workspace_key=workspace_key), standing, condition),
            order,
            limit,
            offset,
        )

    def count(self, workspace_key: int, condition: Condition = TRUE) -> int:
        return self.rows.count(
            Conclusion, all_of(equals(workspace_key=workspace_key, state=LIVE), condition)
        )

    def same(
        self, collection: int, level: str, fingerprints: Sequence[str], session_key: int | None
    ) -> dict[str, Conclusion]:
        """Live conclusions of a collection with one of these fingerprints, by fingerprint; with
        `session_key`, of that session only."""
        if not fingerprints:
            return {}
        condition = equals(
            collection_key=collection, level=level, state=LIVE, fingerprint=tuple(fingerprints)
        )
        if session_key is not None:
            condition = all_of(condition, equals(session_key=session_key))
        return {
            conclusion.fingerprint: conclusion
            for conclusion in reversed(self.rows.page(Conclusion, condition))
        }

    def resting_on(
        self, workspace_key: int, uid: str, standing: Condition = LIVE_ROWS
    ) -> list[Conclusion]:
        """Live conclusions that name `uid` among their sources; `standing`: others instead of live
        ones."""
        return self.rows.page(
            Conclusion,
            all_of(equals(workspace_key=workspace_key), standing, Holds("source_ids", uid)),
        )

    def of_messages(self, workspace_key: int, keys: Sequence[int]) -> list[Conclusion]:
        """Conclusions in any state that have one of these messages among their sources, in key
        order."""
        distinct = set(keys)
        return [
            row
            for row in (
                self.rows.page(Conclusion, equals(workspace_key=workspace_key)) if distinct else ()
            )
            if not distinct.isdisjoint(row.message_keys)
        ]

    def based_on(self, workspace_key: int, uids: Sequence[str]) -> list[Conclusion]:
        """Conclusions in any state that name one of these conclusions among their sources, in key
        order."""
        distinct = set(uids)
        return [
            row
            for row in (
                self.rows.page(Conclusion, equals(workspace_key=workspace_key)) if distinct else ()
            )
            if not distinct.isdisjoint(row.source_ids or ())
        ]

    def reinforce(self, keys: Sequence[int], times: int = 1) -> None:
        """Add `times` to the number of derivations of each."""
        if keys:
            self.rows.increase(Conclusion, equals(key=tuple(keys)), times_derived=times)

    def collection(
        self, observer_key: int, observed_key: int, *, lock: bool = False
    ) -> Collection | None:
        return self.rows.get(
            Collection, equals(observer_key=observer_key, observed_key=observed_key), lock=lock
        )

    def collections(self, workspace_key: int, condition: Condition = TRUE) -> list[Collection]:
        return self.rows.page(Collection, all_of(equals(workspace_key=workspace_key), condition))

    def lock_collections(self, keys: Iterable[int]) -> None:
        """Lock the rows of these pairs until commit, always in the order of their keys. Whoever
        writes texts that quote conclusions of a pair, and whoever erases such conclusions, locks
        the pair before it reads: so the later one sees what the earlier one stored."""
        for key in sorted(set(keys)):
            self.rows.get(Collection, equals(key=key), lock=True)

    def put_collection(self, collection: Collection) -> Collection:
        return self.rows.put([collection])[0]

    def count_explicit(self, collection: int, amount: int) -> None:
        """Add to a collection's count of live explicit conclusions."""
        self.rows.increase(Collection, equals(key=collection), explicit_count=amount)


class Cards(Repository):
    def one(self, observer_key: int, target: str) -> Card | None:
        return self.rows.get(Card, equals(observer_key=observer_key, target=target))

    def save(self, card: Card) -> Card:
        """Store the card. It replaces the previous one."""
        self.rows.delete(Card, equals(observer_key=card.observer_key, target=card.target))
        return self.rows.put([card])[0]
