"""A transaction by noun, with the nouns that one statement answers faster."""

from __future__ import annotations

from functools import cached_property

from memservice.spi import nouns as base
from memservice.spi.storage import View
from memservice_sql import nouns
from memservice_sql.ledger import SqlLedger
from memservice_sql.rows import SqlRows


class SqlView(View):
    rows: SqlRows

    def __init__(self, rows: SqlRows) -> None:
        super().__init__(rows)

    @cached_property
    def workspaces(self) -> base.Workspaces:
        return nouns.SqlWorkspaces(self.rows)

    @cached_property
    def peers(self) -> base.Peers:
        return nouns.SqlPeers(self.rows)

    @cached_property
    def sessions(self) -> base.Sessions:
        return nouns.SqlSessions(self.rows)

    @cached_property
    def messages(self) -> base.Messages:
        return nouns.SqlMessages(self.rows)

    @cached_property
    def usage(self) -> base.Ledger:
        return SqlLedger(self.rows)

    @cached_property
    def tasks(self) -> base.Tasks:
        return nouns.SqlTasks(self.rows)
