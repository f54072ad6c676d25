"""Receipts of erasures."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.filters.ast import TRUE, Condition, equals
from memservice.domain.records import Erasure
from memservice.spi.repositories.base import NEWEST, Repository
from memservice.spi.rows import Order


class Erasures(Repository):
    def add(self, erasure: Erasure) -> Erasure:
        return self.rows.put([erasure])[0]

    def by_uid(self, uid: str) -> Erasure | None:
        return self.rows.get(Erasure, equals(uid=uid))

    def of_task(self, task_uid: str) -> Erasure | None:
        """The receipt of the erasure that this task carries out."""
        return self.rows.get(Erasure, equals(task_uid=task_uid))

    def save(self, erasure: Erasure) -> Erasure:
        return self.rows.put([erasure])[0]

    def page(
        self,
        condition: Condition = TRUE,
        order: Sequence[Order] = NEWEST,
        limit: int | None = 50,
        offset: int = 0,
    ) -> list[Erasure]:
        """Receipts, the newest first."""
        return self.rows.page(Erasure, condition, order, limit, offset)

    def count(self, condition: Condition = TRUE) -> int:
        return self.rows.count(Erasure, condition)

    def erased_uids(self, uids: Sequence[str]) -> set[str]:
        """Those of these uids (of messages, peers, sessions or workspaces) whose erasure was
        requested."""
        if not uids:
            return set()
        erasures = self.rows.page(Erasure, equals(target_uid=tuple(uids)))
        return {erasure.target_uid for erasure in erasures if erasure.target_uid is not None}
