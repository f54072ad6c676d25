"""The noun `Ledger` with sums made by the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from memservice.domain.records import Usage
from memservice.spi import repositories as base
from memservice.spi.repositories.usage import SUCCESS, chosen, in_order, total
from memservice_sql import tables as t
from memservice_sql.rows import SqlRows
from memservice_sql.statements import Slots


class SqlLedger(base.Ledger):
    rows: SqlRows

    def __init__(self, rows: SqlRows) -> None:
        super().__init__(rows)

    def totals(
        self,
        by: Sequence[str],
        *,
        workspace_key: int | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> list[base.UsageTotal]:
        values: list[Any] = []
        shaped = self.rows.shape(Usage, chosen(workspace_key, since, until), values)

        def write(slots: Slots) -> sa.Executable:
            c = t.usage.c
            failed = sa.case((c.outcome == sa.literal_column(f"'{SUCCESS}'"), 0), else_=1)
            numbers = (
                failed,
                c.input_tokens,
                c.output_tokens,
                c.cache_read_tokens,
                c.cache_write_tokens,
                c.duration_ms,
            )
            groups = [c[name] for name in by]
            found = sa.select(
                *groups, sa.func.count(), *(sa.func.sum(number) for number in numbers)
            ).select_from(t.usage)
            return found.where(self.rows.condition(Usage, shaped, slots)).group_by(*groups)

        rows = self.rows.run(("usage", tuple(by), shaped), write, values).fetchall()
        width = len(by)
        # Without groups there is one sum always, over nothing as well; sums of big integers may
        # come as decimals.
        return in_order(
            by,
            [
                total(by, row[:width], [int(number) for number in row[width:]])
                for row in rows
                if row[width]
            ],
        )
