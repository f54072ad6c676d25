"""Receipts of erasures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memservice.domain.filters.ast import TRUE, Compare, Condition, all_of, equals
from memservice.domain.records import Erasure
from memservice.spi.repositories.base import NEWEST, Repository
from memservice.spi.rows import Order

BATCH_SIZE = 500
ROW_KINDS = ("message", "peer", "session", "workspace")
"""Kinds of erasure whose receipt has the uid of the erased row."""
RETENTION_KINDS = ("messages", "conclusions")


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
        return {row.target_uid for row in self.of_targets(uids) if row.target_uid}

    def of_targets(self, uids: Sequence[str]) -> Iterator[Erasure]:
        """The receipts of the erasure of these rows, batch by batch."""
        for start in range(0, len(uids), BATCH_SIZE):
            part = equals(target_uid=tuple(uids[start : start + BATCH_SIZE]))
            yield from self.rows.page(Erasure, part)

    def of_target(self, uids: Sequence[str]) -> Erasure | None:
        """A receipt of the erasure of one of these rows."""
        return next(iter(self.rows.page(Erasure, equals(target_uid=tuple(uids)), limit=1)), None)

    def newest_key(self) -> int:
        """The key of the newest receipt; 0: there is none."""
        rows = self.rows.page(Erasure, order=(Order("key", descending=True),), limit=1)
        return rows[0].key if rows else 0

    def of_peers_after(self, key: int, workspace_uids: Sequence[str]) -> list[Erasure]:
        """The receipts of the erasure of peers of these workspaces that are newer than a key."""
        own = equals(workspace_uid=tuple(workspace_uids), kind="peer")
        return self.rows.page(Erasure, all_of(own, Compare("key", "gt", key)))

    def of_retention(self, workspace_uids: Sequence[str]) -> Iterator[Erasure]:
        """The erasures by retention in these workspaces, batch by batch. Without an index: for use
        once per import."""
        own = equals(workspace_uid=tuple(workspace_uids), kind=RETENTION_KINDS)
        after = 0
        while rows := self.rows.page(
            Erasure, all_of(own, Compare("key", "gt", after)), limit=BATCH_SIZE
        ):
            yield from rows
            after = rows[-1].key

    def has_targets_of(self, workspace_uids: Sequence[str]) -> bool:
        """Whether the erasure of single rows of these workspaces was requested. Without an index:
        for use once per import."""
        condition = equals(workspace_uid=tuple(workspace_uids), kind=ROW_KINDS)
        return bool(self.rows.count(Erasure, condition, limit=1))
