"""A transaction with the repositories that have faster methods in SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TypeVar

from msgspec import Struct

from memservice.spi import repositories as base
from memservice.spi.storage import Transaction
from memservice_sql import repositories
from memservice_sql.ledger import SqlLedger
from memservice_sql.rows import SqlRows

R = TypeVar("R", bound=Struct)


class SqlTransaction(Transaction):
    rows: SqlRows

    def __init__(
        self, rows: SqlRows, pause: Callable[[], AbstractContextManager[None]] | None = None
    ) -> None:
        """`pause` releases the connection of a read-only transaction; None in a writing one."""
        super().__init__(rows)
        self._pause = pause

    def released(self) -> AbstractContextManager[None]:
        if self._pause is None:
            raise RuntimeError("a transaction that writes cannot be paused")
        return self._pause()

    def locked(self, record: type[R], keys: Iterable[int]) -> list[R]:
        return self.rows.locked(record, sorted(set(keys)))

    @cached_property
    def workspaces(self) -> base.Workspaces:
        return repositories.SqlWorkspaces(self.rows)

    @cached_property
    def peers(self) -> base.Peers:
        return repositories.SqlPeers(self.rows)

    @cached_property
    def sessions(self) -> base.Sessions:
        return repositories.SqlSessions(self.rows)

    @cached_property
    def messages(self) -> base.Messages:
        return repositories.SqlMessages(self.rows)

    @cached_property
    def conclusions(self) -> base.Conclusions:
        return repositories.SqlConclusions(self.rows)

    @cached_property
    def keys(self) -> base.Keys:
        return repositories.SqlKeys(self.rows)

    @cached_property
    def usage(self) -> base.Ledger:
        return SqlLedger(self.rows)

    @cached_property
    def sign_ins(self) -> base.SignIns:
        return repositories.SqlSignIns(self.rows)

    @cached_property
    def tasks(self) -> base.Tasks:
        return repositories.SqlTasks(self.rows)
