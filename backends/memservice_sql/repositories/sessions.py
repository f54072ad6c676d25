"""Sessions: those of a peer and of a scope, by joins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from memservice.domain.filters.ast import TRUE, Condition
from memservice.domain.records import Session
from memservice.spi import repositories as base
from memservice.spi.repositories.base import CREATED
from memservice.spi.rows import Order
from memservice_sql import tables as t
from memservice_sql.rows import SqlRows, ordering, window, window_values
from memservice_sql.statements import Slots
from memservice_sql.types import KEY


class SqlSessions(base.Sessions):
    rows: SqlRows

    def __init__(self, rows: SqlRows) -> None:
        super().__init__(rows)

    def page_of_peer(
        self,
        peer_key: int,
        condition: Condition = TRUE,
        order: Sequence[Order] = CREATED,
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[Session], int]:
        values: list[Any] = [peer_key]
        shape_ = self.rows.shape(Session, condition, values)

        def matching(slots: Slots) -> sa.ColumnElement[bool]:
            joined = sa.select(t.members.c.session_key).where(
                t.members.c.peer_key == slots.take(KEY)
            )
            return t.sessions.c.key.in_(joined) & self.rows.condition(Session, shape_, slots)

        def page(slots: Slots) -> sa.Executable:
            return window(
                sa.select(*t.sessions.c)
                .where(matching(slots))
                .order_by(*ordering(t.sessions, order)),
                slots,
                limit,
                offset,
            )

        def count(slots: Slots) -> sa.Executable:
            return sa.select(sa.func.count()).select_from(t.sessions).where(matching(slots))

        statement_key = ("sessions of peer", shape_, tuple(order), offset > 0)
        rows = self.rows.run(
            statement_key, page, [*values, *window_values(limit, offset)]
        ).fetchall()
        total = self.rows.run(("count sessions of peer", shape_), count, values).fetchone()[0]
        return self.rows.mapping(Session).records(rows), total

    def page_of_scope(
        self,
        scope_key: int,
        condition: Condition = TRUE,
        reverse: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[Session], int]:
        values: list[Any] = [scope_key]
        shape_ = self.rows.shape(Session, condition, values)
        joined = t.members.join(t.sessions, t.sessions.c.key == t.members.c.session_key)

        def matching(slots: Slots) -> sa.ColumnElement[bool]:
            active = (t.members.c.peer_key == slots.take(KEY)) & t.members.c.left_at.is_(None)
            return active & self.rows.condition(Session, shape_, slots)

        def page(slots: Slots) -> sa.Executable:
            query = sa.select(*t.sessions.c).select_from(joined).where(matching(slots))
            order = (Order("joined_at", reverse), Order("key", reverse))
            return window(query.order_by(*ordering(t.members, order)), slots, limit, offset)

        def count(slots: Slots) -> sa.Executable:
            return sa.select(sa.func.count()).select_from(joined).where(matching(slots))

        statement_key = ("sessions of scope", shape_, reverse, offset > 0)
        rows = self.rows.run(
            statement_key, page, [*values, *window_values(limit, offset)]
        ).fetchall()
        total = self.rows.run(("count sessions of scope", shape_), count, values).fetchone()[0]
        return self.rows.mapping(Session).records(rows), total
