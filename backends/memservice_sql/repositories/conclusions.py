"""Conclusions: those that cite messages or other conclusions, by the index of the list table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from memservice.domain.records import Conclusion
from memservice.spi import repositories as base
from memservice_sql import tables as t
from memservice_sql.rows import SqlRows
from memservice_sql.statements import Slots
from memservice_sql.types import KEY


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
        """Conclusions whose list has one of the items: a look-up in the index of the list table."""
        if not items:
            return []
        dialect = self.rows.store.dialect

        def write(slots: Slots) -> sa.Executable:
            own = t.conclusions.c.workspace_key == slots.take(KEY)
            citing = sa.select(cited.parent).where(dialect.one_of(cited.item, slots))
            query = sa.select(*t.conclusions.c).where(own, t.conclusions.c.key.in_(citing))
            return query.order_by(t.conclusions.c.key)

        values = [workspace_key, dialect.list_value(items)]
        rows = self.rows.run(("citing", cited.table.name), write, values).fetchall()
        return self.rows.mapping(Conclusion).records(rows)
