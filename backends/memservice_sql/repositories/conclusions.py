"""Conclusions: those that cite messages or other conclusions, by the index of the list table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from memservice.domain.filters.ast import equals
from memservice.domain.records import Conclusion
from memservice.spi import repositories as base
from memservice_sql import tables as t
from memservice_sql.rows import SqlRows
from memservice_sql.statements import Slots


class SqlConclusions(base.Conclusions):
    rows: SqlRows

    def __init__(self, rows: SqlRows) -> None:
        super().__init__(rows)

    def of_messages(self, workspace_key: int, keys: Sequence[int]) -> list[Conclusion]:
        return self._citing(workspace_key, t.conclusion_messages, keys)

    def based_on(self, workspace_key: int, uids: Sequence[str]) -> list[Conclusion]:
        return self._citing(workspace_key, t.conclusion_sources, uids)

    def _citing(
        self, workspace_key: int, cited: t.ListTable, items: Sequence[Any]
    ) -> list[Conclusion]:
        """Conclusions whose list has one of the items: look-ups in the index of the list table,
        then by key. In one statement, databases read all conclusions of the workspace instead."""
        if not items:
            return []
        dialect = self.rows.store.dialect

        def write(slots: Slots) -> sa.Executable:
            return sa.select(cited.parent).where(dialect.one_of(cited.item, slots)).distinct()

        citing = self.rows.run(
            ("citing", cited.table.name), write, [dialect.list_value(items)]
        ).fetchall()
        keys = tuple(sorted(key for (key,) in citing))
        own = equals(workspace_key=workspace_key, key=keys)
        return self.rows.page(Conclusion, own) if keys else []
