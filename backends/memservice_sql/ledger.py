"""The repository `Ledger`, with sums computed by the database."""

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
        shape_ = self.rows.shape(Usage, chosen(workspace_key, since, until), values)

        def write(slots: Slots) -> sa.Executable:
            c = t.usage.c
            failed = sa.case((c.outcome == sa.literal_column(f"'{SUCCESS}'"), 0), else_=1)
            amounts = (
                failed,
                c.input_tokens,
                c.output_tokens,
                c.cache_read_tokens,
                c.cache_write_tokens,
                c.duration_ms,
                c.reasoning_tokens,
            )
            groups = [c[name] for name in by]
            query = sa.select(
                *groups, sa.func.count(), *(sa.func.sum(amount) for amount in amounts)
            ).select_from(t.usage)
            return query.where(self.rows.condition(Usage, shape_, slots)).group_by(*groups)

        rows = self.rows.run(("usage", tuple(by), shape_), write, values).fetchall()
        group_count = len(by)
        # Without groups there is always one sum, even over no rows. Sums of big integers may be
        # decimals.
        return in_order(
            by,
            [
                total(by, row[:group_count], [int(amount) for amount in row[group_count:]])
                for row in rows
                if row[group_count]
            ],
        )
