"""Tasks: due units, leases and counts of the queue."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from msgspec.structs import replace

from memservice.domain.filters.ast import TRUE, Condition, all_of, equals
from memservice.domain.records import FAILED, NEVER, PENDING, Lease, Task
from memservice.spi import repositories as base
from memservice_sql import tables as t
from memservice_sql.ready_units import ReadyUnits
from memservice_sql.rows import SqlRows, window
from memservice_sql.statements import Slots

_PENDING, _FAILED = (
    t.tasks.c.state == sa.literal_column(f"'{state}'") for state in (PENDING, FAILED)
)
"""Written like the condition of the partial indexes."""


class SqlTasks(base.Tasks):
    rows: SqlRows

    def __init__(self, rows: SqlRows) -> None:
        super().__init__(rows)

    def ready(
        self,
        now: datetime,
        limit: int,
        latest: datetime = NEVER,
        without: Sequence[str] = (),
    ) -> list[str]:
        return ReadyUnits(self.rows, now, latest, limit, tuple(without)).units()

    def claim(self, unit: str, owner: str, now: datetime, seconds: float) -> Lease | None:
        self.rows.writable()

        def write(slots: Slots) -> sa.Executable:
            # Skip a lease that another transaction is changing: it cannot be claimed now.
            query = sa.select(*t.leases.c).where(
                t.leases.c.unit == slots.take(t.leases.c.unit.type)
            )
            return query.with_for_update(key_share=True, skip_locked=True)

        return self.take(
            unit,
            self.rows.mapping(Lease).one(self.rows.run(("lease",), write, [unit]).fetchone()),
            owner,
            now,
            seconds,
        )

    def begin(self, lease: Lease) -> Lease | None:
        # Another worker may be faster. That is normal, so it must not be an error in the database's
        # log.
        key = self.rows.put_unless_there(lease)
        return None if key is None else replace(lease, key=key)

    def next_due(self) -> datetime | None:
        def write(slots: Slots) -> sa.Executable:
            return (
                sa.select(t.tasks.c.not_before)
                .where(_PENDING)
                .order_by(t.tasks.c.not_before)
                .limit(1)
            )

        row = self.rows.run(("next due",), write, []).fetchone()
        return None if row is None else self.rows.store.read_time(row[0])

    def counts(
        self, workspace_key: int, kinds: tuple[str, ...], now: datetime, condition: Condition = TRUE
    ) -> list[base.QueueCount]:
        values: list[Any] = [now]
        shape_ = self.rows.shape(
            Task, all_of(equals(workspace_key=workspace_key, kind=kinds), condition), values
        )

        def write(slots: Slots) -> sa.Executable:
            leased = sa.exists().where(
                t.leases.c.unit == t.tasks.c.unit,
                t.leases.c.expires_at > slots.take(t.leases.c.expires_at.type),
            )
            working = sa.case((_PENDING & leased, 1), else_=0).label("working")
            tasks = (
                sa.select(t.tasks.c.session_key, t.tasks.c.state, working)
                .where(self.rows.condition(Task, shape_, slots))
                .subquery()
            )
            return sa.select(*tasks.c, sa.func.count()).group_by(*tasks.c)

        rows = self.rows.run(("queue counts", shape_), write, values).fetchall()
        return [
            base.QueueCount(session, state, bool(working), number)
            for session, state, working, number in rows
        ]

    def backlog(self, now: datetime, limit: int) -> list[base.KindCount]:
        tasks = t.tasks.c
        time = tasks.not_before.type
        since = sa.case(
            (tasks.not_before > tasks.created_at, tasks.not_before), else_=tasks.created_at
        ).label("since")

        def write(slots: Slots) -> sa.Executable:
            due = sa.case((tasks.not_before <= slots.take(time), 1), else_=0).label("due")
            leased = sa.exists().where(
                t.leases.c.unit == tasks.unit,
                t.leases.c.expires_at > slots.take(t.leases.c.expires_at.type),
            )
            working = sa.case((leased, 1), else_=0).label("working")
            pending = window(
                sa.select(tasks.kind, tasks.state, due, working, since)
                .where(_PENDING)
                .order_by(tasks.not_before, tasks.key),
                slots,
                limit,
                0,
            ).subquery()
            return _counted(pending)

        def write_failed(slots: Slots) -> sa.Executable:
            nothing: sa.ColumnClause[int] = sa.literal_column("0")
            failed = window(
                sa.select(
                    tasks.kind,
                    tasks.state,
                    nothing.label("due"),
                    nothing.label("working"),
                    since,
                )
                .where(_FAILED)
                .order_by(tasks.finished_at),
                slots,
                limit,
                0,
            ).subquery()
            return _counted(failed)

        rows = [
            *self.rows.run(("backlog",), write, [now, now, limit]).fetchall(),
            *self.rows.run(("failed by kind",), write_failed, [limit]).fetchall(),
        ]
        return [
            base.KindCount(
                kind, state, bool(due), bool(working), number, self.rows.store.read_time(oldest)
            )
            for kind, state, due, working, number, oldest in rows
        ]


def _counted(tasks: sa.Subquery) -> sa.Select[*tuple[Any, ...]]:
    """Number and oldest time by kind, state and the two flags."""
    flags = (tasks.c.kind, tasks.c.state, tasks.c.due, tasks.c.working)
    return sa.select(*flags, sa.func.count(), sa.func.min(tasks.c.since)).group_by(*flags)
