"""The storage primitives in SQL, over any table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

import sqlalchemy as sa
from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.filters.ast import TRUE, Condition
from memservice.spi.rows import BY_KEY, Order, ReadOnly, UniqueViolation
from memservice.spi.schema import BY_RECORD as SPECS
from memservice_sql.conditions import Filterable, Shape, shape, to_sql
from memservice_sql.dialect import SqlDialect
from memservice_sql.mapping import Mapping
from memservice_sql.row_turns import Turn
from memservice_sql.statements import Cursor, Slots, Statements, Writer
from memservice_sql.tables import BY_RECORD, LIST_TABLES, ListTable
from memservice_sql.types import KEY, UtcDateTime

if TYPE_CHECKING:
    from memservice_sql.position_cache import PositionCache

R = TypeVar("R", bound=Struct)
T = TypeVar("T")


class TableInfo(Struct, frozen=True):
    """The table of one record type on this database."""

    mapping: Mapping[Any]
    filterable: Filterable
    lists: tuple[ListTable, ...]
    in_unique: frozenset[str]
    """Columns that decide whether a row violates a unique constraint."""

    @property
    def table(self) -> sa.Table:
        return self.mapping.table


class Store:
    """State that all transactions of a storage share. Safe for threads, and across a fork."""

    def __init__(self, dialect: SqlDialect, sqlalchemy_dialect: sa.Dialect) -> None:
        self.dialect = dialect
        self.statements = Statements(sqlalchemy_dialect)
        self.tables: dict[type[Any], TableInfo] = {
            record: TableInfo(
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
        """Converts a time from the driver to a datetime (null to None)."""
        self.ready_positions: dict[tuple[str, ...], tuple[str, tuple[int, str]]] = {}
        """Where the search for ready units goes on, by the kinds that are left out. Only a
        hint: it decides which part of a large backlog is compared."""

    @cached_property
    def positions(self) -> PositionCache:
        # Imports numpy at the first search.
        from memservice_sql.position_cache import PositionCache

        return PositionCache()


def _same(value: Any) -> Any:
    return value


def _in_unique(record: type[Any]) -> frozenset[str]:
    constraints = SPECS[record].unique
    states = ("state",) if any(unique.unless_state for unique in constraints) else ()
    return frozenset([*states, *(field for unique in constraints for field in unique.fields)])


class SqlRows:
    """`memservice.spi.rows.Rows` in one transaction."""

    def __init__(
        self,
        store: Store,
        connection: sa.Connection,
        *,
        read_only: bool,
        turn: Turn | None = None,
        is_snapshot: bool = False,
    ) -> None:
        """`turn`: of the transaction, with the first row that it locks."""
        self.store = store
        self.read_only = read_only
        self.snapshot_reads: dict[Hashable, Any] | None = {} if is_snapshot else None
        """What was read in this snapshot, which does not change (`once`); None outside of one."""
        self._turn = turn
        self.use_connection(connection)

    def use_connection(self, connection: sa.Connection) -> None:
        """Use the transaction of this connection from now on."""
        if self.snapshot_reads is not None:
            self.snapshot_reads = {}
        self.connection = connection
        """The transaction's connection, for indexes in the same database."""
        self._cursor = cast(Cursor, connection.connection.cursor())
        self._reader = self.store.dialect.reader(connection) or self._cursor

    def once(self, name: Hashable, read: Callable[[], T]) -> T:
        """What `read` returns. It is called once for each name in a snapshot."""
        if self.snapshot_reads is None:
            return read()
        if name not in self.snapshot_reads:
            self.snapshot_reads[name] = read()
        return cast(T, self.snapshot_reads[name])

    def get(self, record: type[R], condition: Condition, *, lock: bool = False) -> R | None:
        values: list[Any] = []
        info = self.store.tables[record]
        shape_ = shape(info.filterable, condition, values)
        lock = lock and not self.read_only

        def write(slots: Slots) -> sa.Executable:
            query = (
                info.mapping.query.where(to_sql(info.filterable, shape_, slots))
                .order_by(info.table.c.key)
                .limit(1)
            )
            # A weaker lock than that of a deletion: other transactions may store rows that refer to
            # this one. Read-only transactions take no lock.
            return query.with_for_update(key_share=True) if lock else query

        if lock and self._turn is not None:
            self._turn.wait((record, shape_, *map(str, values)))
        row = self.run(("get", record, shape_, lock), write, values).fetchone()
        return cast("R | None", info.mapping.one(row))

    def page(
        self,
        record: type[R],
        condition: Condition = TRUE,
        order: Sequence[Order] = BY_KEY,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        values: list[Any] = []
        info = self.store.tables[record]
        shape_ = shape(info.filterable, condition, values)
        values += window_values(limit, offset)

        def write(slots: Slots) -> sa.Executable:
            query = info.mapping.query.where(to_sql(info.filterable, shape_, slots))
            if _lists_keys(shape_):
                query = self.store.dialect.by_key(query, info.table)
            return window(query.order_by(*ordering(info.table, order)), slots, limit, offset)

        rows = self.run(
            ("page", record, shape_, tuple(order), limit is None, offset > 0), write, values
        ).fetchall()
        return info.mapping.records(rows)

    def locked(self, record: type[R], keys: Sequence[int]) -> list[R]:
        """The rows with these keys, by key, locked as by `get`."""
        if not keys:
            return []
        info, dialect = self.store.tables[record], self.store.dialect

        def write(slots: Slots) -> sa.Executable:
            query = info.mapping.query.where(dialect.one_of(info.table.c.key, slots))
            query = dialect.by_key(query, info.table).order_by(info.table.c.key)
            return query if self.read_only else query.with_for_update(key_share=True)

        statement_key = ("locked", record, self.read_only)
        return info.mapping.records(
            self.run(statement_key, write, [dialect.list_value(keys)]).fetchall()
        )

    def count(
        self, record: type[Any], condition: Condition = TRUE, limit: int | None = None
    ) -> int:
        values: list[Any] = []
        info = self.store.tables[record]
        shape_ = shape(info.filterable, condition, values)

        def write(slots: Slots) -> sa.Executable:
            matching = to_sql(info.filterable, shape_, slots)
            if limit is None:
                return sa.select(sa.func.count()).select_from(info.table).where(matching)
            first = window(sa.select(info.table.c.key).where(matching), slots, limit, 0)
            return sa.select(sa.func.count()).select_from(first.subquery())

        if limit is not None:
            values += window_values(limit, 0)
        statement_key = ("count", record, shape_, limit is None)
        return int(self.run(statement_key, write, values).fetchone()[0])

    def put(self, rows: Sequence[R]) -> list[R]:
        self.writable()
        if not rows:
            return []
        info = self.store.tables[type(rows[0])]
        new = [index for index, row in enumerate(rows) if row.key == 0]  # type: ignore[attr-defined]
        old = [index for index, row in enumerate(rows) if row.key != 0]  # type: ignore[attr-defined]
        row_list = list(rows)
        values = info.mapping.rows(rows)
        # Inserts into list tables cannot violate a constraint, so new rows that are inserted whole
        # need no savepoint.
        is_atomic = (
            not old if self.store.dialect.inserts_whole else len(rows) == 1 and not info.lists
        )
        with self._changing(savepoint=not is_atomic and (len(rows) > 1 or bool(info.lists))):
            if new:
                columns = [column.name for column in info.mapping.columns[1:]]
                keys = self.store.dialect.insert(
                    self._cursor, info.table, columns, [values[index][1:] for index in new]
                )
                for index, key in zip(new, keys, strict=True):
                    row_list[index] = replace(rows[index], key=key)
            for index in old:
                self._replace(info, values[index])
            self._list(info, row_list, [rows[index] for index in old])
        return row_list

    def put_unless_there(self, row: Any) -> int | None:
        """Insert a new row of a type without lists and return its key; None, without an error, if
        it would violate a unique constraint."""
        self.writable()
        info = self.store.tables[type(row)]
        columns = [column.name for column in info.mapping.columns[1:]]
        return self.store.dialect.insert_unless_there(
            self._cursor, info.table, columns, info.mapping.rows([row])[0][1:]
        )

    def change(self, record: type[Any], condition: Condition, **values: Any) -> int:
        info = self.store.tables[record]
        if any(list_table.field in values for list_table in info.lists):
            return len(self.put([replace(row, **values) for row in self.page(record, condition)]))
        return self._update("change", record, condition, values)

    def increase(self, record: type[Any], condition: Condition, **amounts: int) -> int:
        return self._update("increase", record, condition, amounts)

    def delete(self, record: type[Any], condition: Condition) -> int:
        values: list[Any] = []
        info = self.store.tables[record]
        shape_ = shape(info.filterable, condition, values)

        def write(slots: Slots) -> sa.Executable:
            return sa.delete(info.table).where(to_sql(info.filterable, shape_, slots))

        with self._changing():
            return self.store.dialect.affected(self.run(("delete", record, shape_), write, values))

    def run(self, statement_key: tuple[Any, ...], write: Writer, values: Sequence[Any]) -> Cursor:
        """Run the statement that `write` writes. It is compiled at the first use of
        `statement_key`. Read each result before the next call."""
        statement = self.store.statements.get(statement_key, write)
        return statement.run(self._reader if statement.is_query else self._cursor, values)

    def shape(self, record: type[Any], condition: Condition, values: list[Any]) -> Shape:
        """First pass of a condition on `record`, for a statement of a repository."""
        return shape(self.store.tables[record].filterable, condition, values)

    def condition(self, record: type[Any], shape_: Shape, slots: Slots) -> sa.ColumnElement[bool]:
        """Second pass."""
        return to_sql(self.store.tables[record].filterable, shape_, slots)

    def mapping(self, record: type[R]) -> Mapping[R]:
        return self.store.tables[record].mapping

    def _update(
        self, operation: str, record: type[Any], condition: Condition, fields: dict[str, Any]
    ) -> int:
        values: list[Any] = list(fields.values())
        info = self.store.tables[record]
        names = tuple(fields)
        shape_ = shape(info.filterable, condition, values)

        def write(slots: Slots) -> sa.Executable:
            table = info.table
            slots_by_name = {name: slots.take(table.c[name].type) for name in names}
            new_values = (
                {name: table.c[name] + slot for name, slot in slots_by_name.items()}
                if operation == "increase"
                else slots_by_name
            )
            return sa.update(table).values(new_values).where(to_sql(info.filterable, shape_, slots))

        with self._changing(
            savepoint=not self.store.dialect.survives_errors
            and not info.in_unique.isdisjoint(names)
        ):
            return self.store.dialect.affected(
                self.run((operation, record, names, shape_), write, values)
            )

    def _replace(self, info: TableInfo, row: Sequence[Any]) -> None:
        """Overwrite the row with the same key; `row` is converted for the driver."""
        survives = self.store.dialect.survives_errors
        # If a failed statement would end the transaction, try one first that cannot violate a
        # constraint: most rows keep their unique values.
        if not survives and self._overwrite(info, row, info.in_unique) == 1:
            return
        with self._changing(savepoint=not survives):
            if self._overwrite(info, row, frozenset()) != 1:
                raise LookupError(f"{info.table.name} has no row {row[0]} to replace")

    def _overwrite(self, info: TableInfo, row: Sequence[Any], unchanged: frozenset[str]) -> int:
        """Set the columns of the row with the same key, if the columns in `unchanged` already have
        their new values. Returns the number of rows set."""
        columns = info.mapping.columns[1:]

        def write(slots: Slots) -> sa.Executable:
            key = info.table.c.key == slots.take(sa.types.NullType())
            values: dict[str, sa.ColumnElement[Any]] = {
                column.name: slots.take(sa.types.NullType()) for column in columns
            }
            unchanged_conditions = [
                info.table.c[name].is_not_distinct_from(values.pop(name))
                for name in sorted(unchanged)
            ]
            return (
                sa.update(info.table)
                .values(values or {"key": info.table.c.key})
                .where(key, *unchanged_conditions)
            )

        return self.store.dialect.affected(
            self.run(("replace", info.mapping.record, bool(unchanged)), write, row)
        )

    def _list(self, info: TableInfo, row_list: Sequence[Any], replaced: Sequence[Any]) -> None:
        """Update the list tables for the rows `stored`, of which `replaced` existed before."""
        for list_table in info.lists:
            if replaced:
                keys = self.store.dialect.list_value([row.key for row in replaced])
                self.run(
                    ("unlist", list_table.table.name),
                    lambda slots, list_table=list_table: sa.delete(list_table.table).where(
                        self.store.dialect.one_of(list_table.parent, slots)
                    ),  # type: ignore[misc]
                    [keys],
                )
            for row in row_list:
                for item in dict.fromkeys(getattr(row, list_table.field) or ()):
                    self.run(
                        ("list", list_table.table.name),
                        lambda slots, list_table=list_table: sa.insert(list_table.table).values(  # type: ignore[misc]
                            {
                                list_table.parent.name: slots.take(list_table.parent.type),
                                list_table.item.name: slots.take(list_table.item.type),
                            }
                        ),
                        [row.key, item],
                    )

    def writable(self) -> None:
        """Raise `ReadOnly` in a read-only transaction."""
        if self.read_only:
            raise ReadOnly("this transaction is read-only; use Storage.write")

    @contextmanager
    def _changing(self, *, savepoint: bool = False) -> Iterator[None]:
        """A change that is stored as a whole or, if it violates a constraint, not at all; either
        way the transaction stays usable.

        `savepoint` is needed for a change of several statements, and for one whose error would end
        the transaction.
        """
        self.writable()
        dialect = self.store.dialect
        if savepoint:
            self._cursor.execute("SAVEPOINT change", ())
        try:
            yield
        except (dialect.driver_error, LookupError, UniqueViolation) as error:
            violated = dialect.broken_unique(error)
            # Any other error of the driver ends the transaction, and the savepoint may be gone.
            if savepoint and (
                violated is not None or isinstance(error, LookupError | UniqueViolation)
            ):
                self._cursor.execute("ROLLBACK TO change", ())
                self._cursor.execute("RELEASE change", ())
            if violated is None:
                raise
            raise UniqueViolation(*violated) from error
        if savepoint:
            self._cursor.execute("RELEASE change", ())


def _lists_keys(shape_: Shape) -> bool:
    """Whether a condition permits only rows with the keys of a list."""
    return ("in", "key") in shape_[1:] if shape_[0] == "all" else shape_ == ("in", "key")


def ordering(table: sa.Table, order: Sequence[Order]) -> list[sa.ColumnElement[Any]]:
    """`order` as SQL, with the key added to make it total."""
    terms = [*order] if any(term.field == "key" for term in order) else [*order, Order("key")]
    return [_ordered(table.c[term.field], term.descending) for term in terms]


def _ordered(column: sa.Column[Any], descending: bool) -> sa.ColumnElement[Any]:
    """The column's order, with null below every value: databases have different defaults."""
    ordered = column.desc() if descending else column.asc()
    if not column.nullable:
        return ordered
    return ordered.nulls_last() if descending else ordered.nulls_first()


def window(
    query: sa.Select[*tuple[Any, ...]], slots: Slots, limit: int | None, offset: int
) -> sa.Select[*tuple[Any, ...]]:
    """The query with LIMIT and OFFSET as slots. An offset does not require a limit."""
    if limit is not None:
        query = query.limit(slots.take(KEY))
    return query.offset(slots.take(KEY)) if offset else query


def window_values(limit: int | None, offset: int) -> list[int]:
    return [value for value in (limit, offset or None) if value is not None]
