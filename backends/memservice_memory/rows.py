"""The row operations on tables in memory, as one transaction sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from memservice.domain.filters.ast import TRUE, All, Condition, Equal, OneOf
from memservice.domain.filters.evaluate import matches
from memservice.spi.rows import BY_KEY, Order, ReadOnly
from memservice.spi.schema import TABLES
from memservice_memory.tables import Moment, Table, uniques

R = TypeVar("R")


class MemoryRows:
    """`memservice.spi.rows.Rows` over a `Moment`. Without `next_key` it is a read view.

    JSON is copied on the way in and on the way out: nobody outside holds a part of the store.
    """

    def __init__(self, moment: Moment, next_key: Callable[[type[Any]], int] | None = None) -> None:
        self._tables = dict(moment.tables)
        self._extras = dict(moment.extras)
        self._next_key = next_key
        self._copied: set[type[Any] | str] = set()

    def moment(self) -> Moment:
        """What the transaction made of the store."""
        return Moment(self._tables, self._extras)

    def extra(self, name: str) -> dict[Any, Any]:
        """A side store that commits and rolls back with the rows, for an index. In a read view it
        must not be changed.

        Only the dict itself is copied by a transaction: replace its values, never change them in
        place.
        """
        if self._next_key is None:
            return self._extras.get(name, {})
        if name not in self._copied:
            self._extras[name] = dict(self._extras.get(name, {}))
            self._copied.add(name)
        return self._extras[name]

    def get(self, record: type[R], condition: Condition, *, lock: bool = False) -> R | None:
        """`lock` does nothing: there is one writer at a time."""
        found = next(self._matching(record, condition), None)
        return None if found is None else _copy(found)

    def page(
        self,
        record: type[R],
        condition: Condition = TRUE,
        order: Sequence[Order] = BY_KEY,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        found: Iterable[R] = self._matching(record, condition)
        if tuple(order) != BY_KEY:
            for step in reversed(order):
                found = sorted(found, key=_sort_key(step.field), reverse=step.descending)
        end = None if limit is None else offset + limit
        return [_copy(row) for row in list(found)[offset:end]]

    def count(self, record: type[Any], condition: Condition = TRUE) -> int:
        return sum(1 for _ in self._matching(record, condition))

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
        doomed = list(self._matching(record, condition))
        if doomed:
            table = self._own(record)
            for row in doomed:
                table.erase(row)
        return len(doomed)

    def _store(self, record: type[R], rows: list[R]) -> list[R]:
        """Store all of them or, when one violates a constraint, none."""
        if not rows:
            return []
        table = self._own(record)
        done: list[tuple[Any, Any | None]] = []
        try:
            for row in rows:
                done.append((row, table.store(row)))
        except Exception:
            for row, previous in reversed(done):
                if previous is None:
                    table.erase(row)
                else:
                    table.store(previous)
            raise
        return [_copy(row) for row in rows]

    def _matching(self, record: type[R], condition: Condition) -> Iterator[R]:
        """Matching rows, as they lie in the table, by rising key."""
        return (
            row for row in _candidates(self._table(record), condition) if matches(row, condition)
        )

    def _table(self, record: type[Any]) -> Table:
        return self._tables.get(record) or Table.empty(record)

    def _own(self, record: type[Any]) -> Table:
        """The table, copied when the transaction first touches it."""
        if record not in self._copied:
            table = self._tables.get(record)
            self._tables[record] = Table.empty(record) if table is None else table.copy()
            self._copied.add(record)
        return self._tables[record]

    def _writable(self) -> Callable[[type[Any]], int]:
        if self._next_key is None:
            raise ReadOnly("this view is for reading; use Storage.write")
        return self._next_key


def _candidates(table: Table, condition: Condition) -> Iterable[Any]:
    """Rows among which all that match are: few, where the condition names keys or unique values."""
    equal: dict[str, tuple[Any, ...]] = {}
    for part in condition.parts if isinstance(condition, All) else (condition,):
        if isinstance(part, Equal):
            equal[part.field] = (part.value,)
        elif isinstance(part, OneOf) and part.field == "key":
            equal[part.field] = part.values
    if "key" in equal:
        return [
            table.rows[key] for key in sorted({key for key in equal["key"] if key in table.rows})
        ]
    for unique, taken in zip(uniques(table.record), table.taken, strict=True):
        if not unique.unless_state and all(name in equal for name in unique.fields):
            key = taken.get(tuple(equal[name][0] for name in unique.fields))
            return () if key is None else (table.rows[key],)
    return table.rows.values()


def _sort_key(name: str) -> Callable[[Any], tuple[bool, Any]]:
    def key(row: Any) -> tuple[bool, Any]:
        value = getattr(row, name)
        return value is not None, value

    return key


def _copy(row: R, **values: Any) -> R:
    """The row with these values, and with JSON of its own."""
    own = {
        name: _copy_json(getattr(row, name))
        for name in _JSON_FIELDS[type(row)]
        if name not in values
    }
    if not own and not values:
        return row
    return replace(row, **own, **{name: _copy_json(value) for name, value in values.items()})  # type: ignore[type-var]


def _copy_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy_json(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy_json(item) for item in value]
    return value


def _json_fields(record: type[Any]) -> tuple[str, ...]:
    hints = get_type_hints(record)
    return tuple(
        f.name
        for f in fields(record)
        if {dict, list} & {get_origin(hint) for hint in (hints[f.name], *get_args(hints[f.name]))}
    )


_JSON_FIELDS = {spec.record: _json_fields(spec.record) for spec in TABLES}
