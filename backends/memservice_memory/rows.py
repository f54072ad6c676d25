"""The row operations of one transaction on tables in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.filters.ast import TRUE, All, Condition, Equal, OneOf
from memservice.domain.filters.evaluate import matches
from memservice.spi.rows import BY_KEY, Order, ReadOnly
from memservice.spi.schema import TABLES
from memservice_memory.tables import Snapshot, Table, uniques

R = TypeVar("R", bound=Struct)


class MemoryRows:
    """`memservice.spi.rows.Rows` over a `Snapshot`. Read-only without `next_key`.

    JSON is copied on the way in and on the way out, so that callers never share objects with the
    store.
    """

    def __init__(
        self, snapshot: Snapshot, next_key: Callable[[type[Any]], int] | None = None
    ) -> None:
        self._tables = dict(snapshot.tables)
        self._extras = dict(snapshot.extras)
        self._next_key = next_key
        self._copied: set[type[Any] | str] = set()

    def result(self) -> Snapshot:
        """The snapshot to publish when the transaction commits."""
        return Snapshot(self._tables, self._extras)

    def extra(self, name: str) -> dict[Any, Any]:
        """A side table for an index, committed and rolled back with the rows. Must not be changed
        in a read-only transaction.

        A transaction copies only the dict itself: replace its values, never change them in place.
        """
        if self._next_key is None:
            return self._extras.get(name, {})
        if name not in self._copied:
            self._extras[name] = dict(self._extras.get(name, {}))
            self._copied.add(name)
        return self._extras[name]

    def get(self, record: type[R], condition: Condition, *, lock: bool = False) -> R | None:
        """`lock` does nothing: there is one writer at a time."""
        row = next(self._matching(record, condition), None)
        return None if row is None else _copy(row)

    def page(
        self,
        record: type[R],
        condition: Condition = TRUE,
        order: Sequence[Order] = BY_KEY,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        rows: Iterable[R] = self._matching(record, condition)
        if tuple(order) != BY_KEY:
            for term in reversed(order):
                rows = sorted(rows, key=_sort_key(term.field), reverse=term.descending)
        end = None if limit is None else offset + limit
        return [_copy(row) for row in list(rows)[offset:end]]

    def count(
        self, record: type[Any], condition: Condition = TRUE, limit: int | None = None
    ) -> int:
        return sum(1 for _ in islice(self._matching(record, condition), limit))

    def put(self, rows: Sequence[R]) -> list[R]:
        if not rows:
            self._writable()
            return []
        next_key = self._writable()
        record = type(rows[0])
        for row in rows:
            if row.key and row.key not in self._table(record).rows:  # type: ignore[attr-defined]
                raise LookupError(
                    f"{record.__name__} {row.key} is not stored, so it cannot be replaced"  # type: ignore[attr-defined]
                )
        return self._store(record, [_copy(row, key=row.key or next_key(record)) for row in rows])  # type: ignore[attr-defined]

    def change(self, record: type[Any], condition: Condition, **values: Any) -> int:
        self._writable()
        return len(
            self._store(record, [_copy(row, **values) for row in self._matching(record, condition)])
        )

    def increase(self, record: type[Any], condition: Condition, **amounts: int) -> int:
        self._writable()
        rows = self._matching(record, condition)
        return len(
            self._store(
                record,
                [
                    _copy(row, **{name: getattr(row, name) + amounts[name] for name in amounts})
                    for row in rows
                ],
            )
        )

    def delete(self, record: type[Any], condition: Condition) -> int:
        self._writable()
        rows = list(self._matching(record, condition))
        if rows:
            table = self._own(record)
            for row in rows:
                table.erase(row)
        return len(rows)

    def _store(self, record: type[R], rows: list[R]) -> list[R]:
        """Store all rows, or none if one violates a constraint."""
        if not rows:
            return []
        table = self._own(record)
        pairs: list[tuple[Any, Any | None]] = []
        try:
            for row in rows:
                pairs.append((row, table.store(row)))
        except Exception:
            for row, previous in reversed(pairs):
                if previous is None:
                    table.erase(row)
                else:
                    table.store(previous)
            raise
        return [_copy(row) for row in rows]

    def _matching(self, record: type[R], condition: Condition) -> Iterator[R]:
        """Matching rows by ascending key; the table's own objects, not copies."""
        return (
            row for row in _candidates(self._table(record), condition) if matches(row, condition)
        )

    def _table(self, record: type[Any]) -> Table:
        return self._tables.get(record) or Table.empty(record)

    def _own(self, record: type[Any]) -> Table:
        """The transaction's own copy of the table, made at its first change."""
        if record not in self._copied:
            table = self._tables.get(record)
            self._tables[record] = Table.empty(record) if table is None else table.copy()
            self._copied.add(record)
        return self._tables[record]

    def _writable(self) -> Callable[[type[Any]], int]:
        if self._next_key is None:
            raise ReadOnly("this transaction is read-only; use Storage.write")
        return self._next_key


def _candidates(table: Table, condition: Condition) -> Iterable[Any]:
    """A superset of the matching rows. It is small if the condition names keys or unique values."""
    values_by_field: dict[str, tuple[Any, ...]] = {}
    for operand in condition.parts if isinstance(condition, All) else (condition,):
        if isinstance(operand, Equal):
            values_by_field[operand.field] = (operand.value,)
        elif isinstance(operand, OneOf) and operand.field == "key":
            values_by_field[operand.field] = operand.values
    if "key" in values_by_field:
        return [
            table.rows[key]
            for key in sorted({key for key in values_by_field["key"] if key in table.rows})
        ]
    for unique, taken in zip(uniques(table.record), table.taken, strict=True):
        if not unique.unless_state and all(name in values_by_field for name in unique.fields):
            key = taken.get(tuple(values_by_field[name][0] for name in unique.fields))
            return () if key is None else (table.rows[key],)
    return table.rows.values()


def _sort_key(name: str) -> Callable[[Any], tuple[bool, Any]]:
    def key(row: Any) -> tuple[bool, Any]:
        value = getattr(row, name)
        return value is not None, value

    return key


def _copy(row: R, **values: Any) -> R:
    """A copy of the row with these values and its own JSON objects."""
    record = type(row)
    own = _JSON_FIELDS[record]
    if not own and not values:
        return row
    changes = {name: getattr(row, name) for name in own} | values
    return replace(row, **{name: _copy_json(value) for name, value in changes.items()})


def _copy_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy_json(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy_json(item) for item in value]
    return value


def _json_fields(record: type[Any]) -> tuple[str, ...]:
    hints = get_type_hints(record)
    return tuple(
        name
        for name in record.__struct_fields__
        if {dict, list} & {get_origin(hint) for hint in (hints[name], *get_args(hints[name]))}
    )


_JSON_FIELDS = {spec.record: _json_fields(spec.record) for spec in TABLES}
