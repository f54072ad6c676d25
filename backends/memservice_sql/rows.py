"""The storage primitives in SQL, over any table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import sqlalchemy as sa

from memservice.domain.filters.ast import TRUE, Condition
from memservice.spi.rows import BY_KEY, Order, ReadOnly, UniqueViolation
from memservice.spi.schema import BY_RECORD as SPECS
from memservice_sql.conditions import Filterable, Shape, shape, to_sql
from memservice_sql.dialect import SqlDialect
from memservice_sql.mapping import Mapping
from memservice_sql.statements import Cursor, Slots, Statements, Writer
from memservice_sql.tables import BY_RECORD, LIST_TABLES, ListTable
from memservice_sql.types import KEY, UtcDateTime

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Kept:
    """What is known of one record type on this database."""

    mapping: Mapping[Any]
    filterable: Filterable
    lists: tuple[ListTable, ...]
    in_unique: frozenset[str]
    """Columns on which it depends whether a row breaks a unique constraint."""

    @property
    def table(self) -> sa.Table:
        return self.mapping.table


class Store:
    """What all transactions of a storage share. Safe for threads, and across a fork."""

    def __init__(self, dialect: SqlDialect, sqlalchemy_dialect: sa.Dialect) -> None:
        self.dialect = dialect
        self.statements = Statements(sqlalchemy_dialect)
        self.kept: dict[type[Any], Kept] = {
            record: Kept(
                Mapping(record, table, sqlalchemy_dialect),
                Filterable.of(table, dialect),
                LIST_TABLES.get(table.name, ()),
                _in_unique(record),
            )
            for record, table in BY_RECORD.items()
        }
        self.read_time: Callable[[Any], Any] = (
            UtcDateTime().result_processor(sqlalchemy_dialect, None) or _same
        )
        """A time as the driver gives it, to a datetime (null to None)."""


def _same(value: Any) -> Any:
    return value


def _in_unique(record: type[Any]) -> frozenset[str]:
    constraints = SPECS[record].unique
    states = ("state",) if any(unique.unless_state for unique in constraints) else ()
    return frozenset([*states, *(field for unique in constraints for field in unique.fields)])


class SqlRows:
    """`memservice.spi.rows.Rows` in one transaction."""

    def __init__(self, store: Store, connection: sa.Connection, *, read_only: bool) -> None:
        self.store = store
        self._read_only = read_only
        self.go_on_with(connection)

    def go_on_with(self, connection: sa.Connection) -> None:
        """Read from here on in the transaction of this connection."""
        self.connection = connection
        """The transaction's own; for indexes that live in the same database."""
        self._cursor = cast(Cursor, connection.connection.cursor())

    def get(self, record: type[R], condition: Condition, *, lock: bool = False) -> R | None:
        values: list[Any] = []
        kept = self.store.kept[record]
        shaped = shape(kept.filterable, condition, values)
        lock = lock and not self._read_only

        def write(slots: Slots) -> sa.Executable:
            found = (
                sa.select(*kept.mapping.columns)
                .where(to_sql(kept.filterable, shaped, slots))
                .order_by(kept.table.c.key)
                .limit(1)
            )
            # Not the lock that deleting takes: rows that refer to this one may be stored meanwhile.
            # What is only read needs none.
            return found.with_for_update(key_share=True) if lock else found

        row = self.run(("get", record, shaped, lock), write, values).fetchone()
        return cast("R | None", kept.mapping.one(row))

    def page(
        self,
        record: type[R],
        condition: Condition = TRUE,
        order: Sequence[Order] = BY_KEY,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        values: list[Any] = []
        kept = self.store.kept[record]
        shaped = shape(kept.filterable, condition, values)
        values += window_values(limit, offset)

        def write(slots: Slots) -> sa.Executable:
            found = sa.select(*kept.mapping.columns).where(to_sql(kept.filterable, shaped, slots))
            return window(found.order_by(*ordering(kept.table, order)), slots, limit, offset)

        rows = self.run(
            ("page", record, shaped, tuple(order), limit is None, offset > 0), write, values
        ).fetchall()
        return kept.mapping.records(rows)

    def count(self, record: type[Any], condition: Condition = TRUE) -> int:
        values: list[Any] = []
        kept = self.store.kept[record]
        shaped = shape(kept.filterable, condition, values)

        def write(slots: Slots) -> sa.Executable:
            return (
                sa.select(sa.func.count())
                .select_from(kept.table)
                .where(to_sql(kept.filterable, shaped, slots))
            )

        return int(self.run(("count", record, shaped), write, values).fetchone()[0])

    def put(self, rows: Sequence[R]) -> list[R]:
        self.writable()
        if not rows:
            return []
        kept = self.store.kept[type(rows[0])]
        new = [index for index, row in enumerate(rows) if row.key == 0]  # type: ignore[attr-defined]
        old = [index for index, row in enumerate(rows) if row.key != 0]  # type: ignore[attr-defined]
        stored = list(rows)
        given = kept.mapping.rows(rows)
        # What is listed cannot break a rule, so new rows that are inserted whole need no way back.
        alone = not old if self.store.dialect.inserts_whole else len(rows) == 1 and not kept.lists
        with self._changing(savepoint=not alone and (len(rows) > 1 or bool(kept.lists))):
            if new:
                columns = [column.name for column in kept.mapping.columns[1:]]
                keys = self.store.dialect.insert(
                    self._cursor, kept.table, columns, [given[index][1:] for index in new]
                )
                for index, key in zip(new, keys, strict=True):
                    stored[index] = replace(rows[index], key=key)  # type: ignore[type-var]
            for index in old:
                self._replace(kept, given[index])
            self._list(kept, stored, [rows[index] for index in old])
        return stored

    def put_unless_there(self, row: Any) -> int | None:
        """Insert a new row of a type without lists and return its key; None if it would break a
        unique constraint. That is no error."""
        self.writable()
        kept = self.store.kept[type(row)]
        columns = [column.name for column in kept.mapping.columns[1:]]
        return self.store.dialect.insert_unless_there(
            self._cursor, kept.table, columns, kept.mapping.rows([row])[0][1:]
        )

    def change(self, record: type[Any], condition: Condition, **values: Any) -> int:
        kept = self.store.kept[record]
        if any(listed.field in values for listed in kept.lists):
            return len(self.put([replace(row, **values) for row in self.page(record, condition)]))
        return self._update("change", record, condition, values)

    def increase(self, record: type[Any], condition: Condition, **amounts: int) -> int:
        return self._update("increase", record, condition, amounts)

    def delete(self, record: type[Any], condition: Condition) -> int:
        values: list[Any] = []
        kept = self.store.kept[record]
        shaped = shape(kept.filterable, condition, values)

        def write(slots: Slots) -> sa.Executable:
            return sa.delete(kept.table).where(to_sql(kept.filterable, shaped, slots))

        with self._changing():
            return self.store.dialect.affected(self.run(("delete", record, shaped), write, values))

    def run(self, known_as: tuple[Any, ...], write: Writer, values: Sequence[Any]) -> Cursor:
        """Run the statement that `write` writes, compiled when `known_as` is met for the first
        time. One result at a time."""
        return self.store.statements.get(known_as, write).run(self._cursor, values)

    def shape(self, record: type[Any], condition: Condition, values: list[Any]) -> Shape:
        """First pass of a condition on `record`, for a statement of one's own."""
        return shape(self.store.kept[record].filterable, condition, values)

    def condition(self, record: type[Any], shaped: Shape, slots: Slots) -> sa.ColumnElement[bool]:
        """Second pass."""
        return to_sql(self.store.kept[record].filterable, shaped, slots)

    def mapping(self, record: type[R]) -> Mapping[R]:
        return self.store.kept[record].mapping

    def _update(
        self, how: str, record: type[Any], condition: Condition, fields: dict[str, Any]
    ) -> int:
        values: list[Any] = list(fields.values())
        kept = self.store.kept[record]
        names = tuple(fields)
        shaped = shape(kept.filterable, condition, values)

        def write(slots: Slots) -> sa.Executable:
            table = kept.table
            given = {name: slots.take(table.c[name].type) for name in names}
            added = (
                {name: table.c[name] + slot for name, slot in given.items()}
                if how == "increase"
                else given
            )
            return sa.update(table).values(added).where(to_sql(kept.filterable, shaped, slots))

        with self._changing(
            savepoint=not self.store.dialect.survives_errors
            and not kept.in_unique.isdisjoint(names)
        ):
            return self.store.dialect.affected(
                self.run((how, record, names, shaped), write, values)
            )

    def _replace(self, kept: Kept, given: Sequence[Any]) -> None:
        """Overwrite the row of that key; `given` is converted already."""
        survives = self.store.dialect.survives_errors
        # Where a failed statement would end the transaction, the one that cannot fail is tried
        # first: most rows keep their names.
        if not survives and self._overwrite(kept, given, kept.in_unique) == 1:
            return
        with self._changing(savepoint=not survives):
            if self._overwrite(kept, given, frozenset()) != 1:
                raise LookupError(f"{kept.table.name} has no row {given[0]} to replace")

    def _overwrite(self, kept: Kept, given: Sequence[Any], same: frozenset[str]) -> int:
        """Set the columns of the row of that key, if those in `same` hold already what they are
        given; the number of rows set."""
        columns = kept.mapping.columns[1:]

        def write(slots: Slots) -> sa.Executable:
            key = kept.table.c.key == slots.take(sa.types.NullType())
            values: dict[str, sa.ColumnElement[Any]] = {
                column.name: slots.take(sa.types.NullType()) for column in columns
            }
            alike = [
                kept.table.c[name].is_not_distinct_from(values.pop(name)) for name in sorted(same)
            ]
            return (
                sa.update(kept.table).values(values or {"key": kept.table.c.key}).where(key, *alike)
            )

        return self.store.dialect.affected(
            self.run(("replace", kept.mapping.record, bool(same)), write, given)
        )

    def _list(self, kept: Kept, stored: Sequence[Any], replaced: Sequence[Any]) -> None:
        """Bring the list tables in step with rows that were just stored, of which `replaced` were
        there before."""
        for listed in kept.lists:
            if replaced:
                keys = self.store.dialect.list_value([row.key for row in replaced])
                self.run(
                    ("unlist", listed.table.name),
                    lambda slots, listed=listed: sa.delete(listed.table).where(
                        self.store.dialect.one_of(listed.parent, slots)
                    ),  # type: ignore[misc]
                    [keys],
                )
            for row in stored:
                for item in dict.fromkeys(getattr(row, listed.field) or ()):
                    self.run(
                        ("list", listed.table.name),
                        lambda slots, listed=listed: sa.insert(listed.table).values(  # type: ignore[misc]
                            {
                                listed.parent.name: slots.take(listed.parent.type),
                                listed.item.name: slots.take(listed.item.type),
                            }
                        ),
                        [row.key, item],
                    )

    def writable(self) -> None:
        """Raise `ReadOnly` in a view for reading."""
        if self._read_only:
            raise ReadOnly("this view is for reading; use Storage.write")

    @contextmanager
    def _changing(self, *, savepoint: bool = False) -> Iterator[None]:
        """A change that is stored whole or, when it breaks a rule, not at all, and leaves the
        transaction usable.

        With `savepoint`, one is set for it: needed for a change of several statements, and for one
        that the transaction would not survive.
        """
        self.writable()
        dialect = self.store.dialect
        if savepoint:
            self._cursor.execute("SAVEPOINT change", ())
        try:
            yield
        except (dialect.driver_error, LookupError, UniqueViolation) as error:
            broken = dialect.broken_unique(error)
            # After any other error of the driver the transaction is over, and there may be no
            # savepoint to return to.
            if savepoint and (
                broken is not None or isinstance(error, LookupError | UniqueViolation)
            ):
                self._cursor.execute("ROLLBACK TO change", ())
                self._cursor.execute("RELEASE change", ())
            if broken is None:
                raise
            raise UniqueViolation(*broken) from error
        if savepoint:
            self._cursor.execute("RELEASE change", ())


def ordering(table: sa.Table, order: Sequence[Order]) -> list[sa.ColumnElement[Any]]:
    """`order`, made total by the key."""
    terms = [*order] if any(term.field == "key" for term in order) else [*order, Order("key")]
    return [_ordered(table.c[term.field], term.descending) for term in terms]


def _ordered(column: sa.Column[Any], descending: bool) -> sa.ColumnElement[Any]:
    """Null below every value: databases differ in where they put it unless they are told."""
    ordered = column.desc() if descending else column.asc()
    if not column.nullable:
        return ordered
    return ordered.nulls_last() if descending else ordered.nulls_first()


def window(found: sa.Select[Any], slots: Slots, limit: int | None, offset: int) -> sa.Select[Any]:
    """LIMIT and OFFSET as slots; without a limit an offset is still obeyed."""
    if limit is not None:
        found = found.limit(slots.take(KEY))
    return found.offset(slots.take(KEY)) if offset else found


def window_values(limit: int | None, offset: int) -> list[int]:
    return [value for value in (limit, offset or None) if value is not None]
