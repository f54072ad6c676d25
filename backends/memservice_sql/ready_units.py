"""Which units are ready (`memservice.spi.repositories.Tasks.ready`), at a cost that does not grow
with the number of pending tasks.

All pending tasks of a small backlog are compared, and a part of a large one: the tasks that are due
longest, and those that are due longest of each kind in each workspace, so that nobody waits for the
backlog of another; and some units, in turn, so that none waits behind a unit that is leased or
backs off. If few tasks are due, or few units have any, the part is the whole. All are compared if
none of the part is ready.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from msgspec import Struct

from memservice.domain.records import NEVER, PENDING
from memservice_sql import tables as t
from memservice_sql.rows import SqlRows, window
from memservice_sql.statements import Slots
from memservice_sql.types import KEY, TEXT

MIN_COMPARED = 250
"""Due tasks, units, and pairs of a workspace and a kind that are compared, if no more are
needed."""
SMALL_BACKLOG_FACTOR = 4
"""A backlog of fewer pending tasks than this times those that are compared is compared whole."""
MIN_PER_PAIR = 2
"""Tasks of each pair that are compared at least."""
MAX_POSITIONS = 100
"""Lists of kinds whose positions are remembered. A worker has a few."""

_TIME = t.tasks.c.not_before.type
_ONE: sa.ColumnElement[int] = sa.literal_column("1")
Pair = tuple[int, str]
"""A workspace and a kind."""
_BEFORE_ALL: Pair = (-1, "")
_END = datetime.max.replace(tzinfo=UTC)


class ReadyUnits(Struct, frozen=True):
    """One query for at most `limit` units. See `Tasks.ready` for the parameters."""

    rows: SqlRows
    now: datetime
    latest: datetime
    limit: int
    without: tuple[str, ...]

    @property
    def _compared(self) -> int:
        return max(MIN_COMPARED, self.limit)

    def units(self) -> list[str]:
        if self._are_few():
            return self._ready(None)
        due = self._longest_due()
        if sum(due.values()) < self._compared:
            return self._ready(due)
        positions = self.rows.store.ready_positions
        last_unit, last_pair = positions.get(self.without, ("", _BEFORE_ALL))
        pairs = self._pairs_after(last_pair)
        next_pair = pairs[-1] if len(pairs) == self._compared else _BEFORE_ALL
        due_of_pairs, are_all = self._longest_due_of(pairs)
        compared = {*due, *due_of_pairs}
        if are_all and last_pair == next_pair == _BEFORE_ALL:
            return self._ready(compared)
        units = self._units_after(last_unit)
        next_unit = units[-1] if len(units) == self._compared else ""
        if last_unit == next_unit == "":
            return self._ready(units)
        if len(positions) >= MAX_POSITIONS:
            positions.clear()
        positions[self.without] = next_unit, next_pair
        return self._ready(compared.union(units)) or self._ready(None)

    def _run(
        self, name: Hashable, write: Callable[[Slots], sa.Executable], values: Sequence[Any]
    ) -> list[Any]:
        return self.rows.run(("ready units", name), write, values).fetchall()

    def _are_few(self) -> bool:
        """Whether to compare all pending tasks costs as little as to find a part of them."""
        few = SMALL_BACKLOG_FACTOR * self._compared

        def write(slots: Slots) -> sa.Executable:
            tasks = t.tasks
            # In the order of an index, which has the pending tasks only.
            pending = (
                sa.select(_ONE).where(_is_pending(tasks)).order_by(tasks.c.not_before, tasks.c.key)
            )
            pending = window(pending, slots, few, 0)
            return sa.select(sa.func.count()).select_from(pending.subquery())

        ((number,),) = self._run("few", write, [few])
        return int(number) < few

    def _longest_due(self) -> dict[str, int]:
        """The units of the tasks that are due longest, with their number."""

        def write(slots: Slots) -> sa.Executable:
            tasks = t.tasks
            parts = [
                window(
                    sa.select(tasks.c.unit)
                    .where(_is_pending(tasks), *conditions)
                    .order_by(tasks.c.not_before, tasks.c.key),
                    slots,
                    self._compared,
                    0,
                ).subquery()
                for conditions in (
                    [tasks.c.not_before <= slots.take(_TIME)],
                    [
                        tasks.c.not_before > slots.take(_TIME),
                        tasks.c.not_before < slots.take(_TIME),
                    ],
                )
            ]
            due = sa.union_all(*(sa.select(part.c.unit) for part in parts)).subquery()
            return sa.select(due.c.unit, sa.func.count()).group_by(due.c.unit)

        values = [self.now, self.latest, NEVER, self._compared, self._compared]
        return dict(map(tuple, self._run("due", write, values)))

    def _units_after(self, unit: str) -> list[str]:
        """Units with pending tasks that follow this one by name."""

        def write(slots: Slots) -> sa.Executable:
            def following(unit: sa.ColumnElement[str]) -> sa.ScalarSelect[str]:
                tasks = t.tasks.alias()
                return (
                    sa.select(sa.func.min(tasks.c.unit))
                    .where(_is_pending(tasks), tasks.c.unit > unit)
                    .scalar_subquery()
                )

            units = sa.select(following(slots.take(TEXT)).label("unit"), _ONE.label("number")).cte(
                "units", recursive=True
            )
            units = units.union_all(
                sa.select(following(units.c.unit), units.c.number + 1).where(
                    units.c.unit.is_not(None), units.c.number < slots.take(KEY)
                )
            )
            return sa.select(units.c.unit).where(units.c.unit.is_not(None)).order_by(units.c.number)

        return [row[0] for row in self._run("units", write, [unit, self._compared])]

    def _pairs_after(self, pair: Pair) -> list[Pair]:
        """Workspaces and kinds with pending tasks that follow this pair."""

        def write(slots: Slots) -> sa.Executable:
            def following(pair: Sequence[sa.ColumnElement[Any]]) -> sa.ScalarSelect[int]:
                tasks = t.tasks.alias()
                order = _order(tasks)
                # SQLite begins with the rows that are equal: with the time, there are none.
                end_of_pair = _values((*pair, slots.take(_TIME)))
                return (
                    sa.select(tasks.c.key)
                    .where(_is_pending(tasks), sa.tuple_(*order[:3]) > end_of_pair)
                    .order_by(*order)
                    .limit(1)
                    .scalar_subquery()
                )

            tasks = t.tasks
            pairs = (
                sa.select(tasks.c.workspace_key, tasks.c.kind, _ONE.label("number"))
                .where(tasks.c.key == following([slots.take(KEY), slots.take(TEXT)]))
                .cte("pairs", recursive=True)
            )
            previous = pairs.c.workspace_key, pairs.c.kind
            pairs = pairs.union_all(
                sa.select(tasks.c.workspace_key, tasks.c.kind, pairs.c.number + 1)
                .select_from(pairs.join(tasks, tasks.c.key == following(previous)))
                .where(pairs.c.number < slots.take(KEY))
            )
            return sa.select(pairs.c.workspace_key, pairs.c.kind).order_by(pairs.c.number)

        rows = self._run("pairs", write, [*pair, _END, _END, self._compared])
        return [(workspace, kind) for workspace, kind in rows]

    def _longest_due_of(self, pairs: Sequence[Pair]) -> tuple[set[str], bool]:
        """The units of the tasks that are due longest of each pair, and of those outside
        workspaces. And whether these are all of them, whose kind is not left out."""
        dialect = self.rows.store.dialect
        listed_pairs = [pair for pair in pairs if pair[1] not in self.without]

        def write(slots: Slots) -> sa.Executable:
            named = dialect.value_rows(slots, [KEY, TEXT])
            pair = named.c.v0, named.c.v1
            tasks, others = t.tasks, t.tasks.alias()
            order = _order(others)
            first = window(
                sa.select(others.c.key)
                .where(_is_pending(others), sa.tuple_(*order[:2]) >= _values(pair))
                .order_by(*order),
                slots,
                1,
                0,
            ).correlate(named)
            outside = window(
                sa.select(tasks.c.workspace_key, tasks.c.kind, tasks.c.unit)
                .where(
                    _is_pending(tasks),
                    tasks.c.workspace_key.is_(None),
                    tasks.c.not_before <= slots.take(_TIME),
                )
                .order_by(tasks.c.kind, tasks.c.not_before, tasks.c.key),
                slots,
                1,
                0,
            ).subquery()
            due = _first_rows(
                [*pair, tasks.c.workspace_key, tasks.c.kind, tasks.c.not_before, tasks.c.unit],
                named.join(tasks, dialect.in_query(tasks.c.key, first)),
            )
            return sa.union_all(
                sa.select(due.c.workspace_key, due.c.kind, due.c.unit).where(
                    due.c.workspace_key == due.c.v0,
                    due.c.kind == due.c.v1,
                    due.c.not_before <= slots.take(_TIME),
                ),
                sa.select(outside),
            )

        each = max(MIN_PER_PAIR, self._compared // max(1, len(listed_pairs)))
        values = [
            dialect.list_value(listed_pairs or [_BEFORE_ALL]),
            each,
            self.now,
            self._compared,
            self.now,
        ]
        rows = self._run("of pairs", write, values)
        numbers = Counter((workspace, kind) for workspace, kind, _ in rows)
        return {unit for *_, unit in rows}, max(numbers.values(), default=0) < each

    def _ready(self, units: Collection[str] | None) -> list[str]:
        """Those of the units (None: of all) that are ready, in the order of their turns."""
        if units is not None and not units:
            return []

        def write(slots: Slots) -> sa.Executable:
            columns = ("workspace_key", "unit", "key", "kind", "not_before")
            first = _first_rows(
                [t.tasks.c[column] for column in columns],
                _oldest_of_all()
                if units is None
                else _oldest_of_each(self.rows.store.dialect.value_rows(slots, [TEXT])),
            )
            due = (first.c.not_before <= slots.take(_TIME)) | (
                (first.c.not_before > slots.take(_TIME)) & (first.c.not_before < slots.take(_TIME))
            )
            leased = sa.exists().where(
                t.leases.c.unit == first.c.unit,
                t.leases.c.expires_at > slots.take(t.leases.c.expires_at.type),
            )
            kinds = [slots.take(first.c.kind.type) for _ in self.without]
            is_included = [first.c.kind.not_in(kinds)] if kinds else []
            turn = (
                sa.func.row_number()
                .over(partition_by=first.c.workspace_key, order_by=first.c.key)
                .label("turn")
            )
            ready = (
                sa.select(first.c.unit, first.c.key, turn)
                .where(due, ~leased, *is_included)
                .subquery()
            )
            return window(
                sa.select(ready.c.unit).order_by(ready.c.turn, ready.c.key), slots, self.limit, 0
            )

        listed = (
            []
            if units is None
            else [self.rows.store.dialect.list_value([(unit,) for unit in units])]
        )
        values = [*listed, self.now, self.latest, NEVER, self.now, *self.without, self.limit]
        name = ("ready", units is None, len(self.without))
        return [row[0] for row in self._run(name, write, values)]


def _first_rows(columns: Sequence[sa.ColumnElement[Any]], source: sa.FromClause) -> sa.CTE:
    """Rows that are looked up before conditions are applied. Else PostgreSQL may begin with the
    conditions, and read all tasks."""
    return sa.select(*columns).select_from(source).cte().prefix_with("MATERIALIZED")


def _oldest_of_each(named: sa.CTE) -> sa.FromClause:
    """The first pending task of each unit in the column `v0`."""
    tasks, unit = t.tasks.alias(), _value(named.c.v0)
    oldest = (
        sa.select(tasks.c.key)
        .where(
            _is_pending(tasks),
            sa.tuple_(tasks.c.unit, tasks.c.key) > sa.tuple_(unit, 0),
            tasks.c.unit <= unit,
        )
        .order_by(tasks.c.unit, tasks.c.key)
        .limit(1)
        .scalar_subquery()
    )
    return named.join(t.tasks, t.tasks.c.key == oldest)


def _oldest_of_all() -> sa.FromClause:
    """The first pending task of each unit."""
    tasks = t.tasks.alias()
    oldest = (
        sa.select(sa.func.min(tasks.c.key).label("key"))
        .where(_is_pending(tasks))
        .group_by(tasks.c.unit)
        .subquery()
    )
    return oldest.join(t.tasks, t.tasks.c.key == oldest.c.key)


def _is_pending(tasks: sa.FromClause) -> sa.ColumnElement[bool]:
    """Written like the condition of the partial indexes."""
    return tasks.c.state == sa.literal_column(f"'{PENDING}'")


# Whole rows of an index are compared. With a condition on each column, PostgreSQL may choose
# another index, and pass over the tasks of others. SQLite looks up rows by the values of
# expressions only, not by columns of other tables.


def _order(tasks: sa.FromClause) -> tuple[sa.ColumnElement[Any], ...]:
    """The columns of the index that has the pairs of a workspace and a kind."""
    return tasks.c.workspace_key, tasks.c.kind, tasks.c.not_before, tasks.c.key


def _value(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The column as an expression."""
    return sa.func.coalesce(column, column)


def _values(columns: Sequence[sa.ColumnElement[Any]]) -> sa.Tuple:
    return sa.tuple_(*map(_value, columns))
