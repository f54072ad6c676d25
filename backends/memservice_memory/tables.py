"""A snapshot of the store: tables of records with their unique constraints, and the indexes' side
tables."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from memservice.spi.rows import UniqueViolation
from memservice.spi.schema import BY_RECORD, Unique


class Table(Struct, frozen=True):
    """Rows by key, in key order, and for each unique constraint a mapping from value to key."""

    record: type[Any]
    rows: dict[int, Any]
    taken: tuple[dict[tuple[Any, ...], int], ...]

    @classmethod
    def empty(cls, record: type[Any]) -> Table:
        return cls(record, {}, tuple({} for _ in uniques(record)))

    def copy(self) -> Table:
        return Table(self.record, dict(self.rows), tuple(dict(values) for values in self.taken))

    def store(self, row: Any) -> Any | None:
        """Store the row in place of the one with its key, and return that one. Raises
        `UniqueViolation`, with nothing changed."""
        previous = self.rows.get(row.key)
        values = [_value(unique, row) for unique in uniques(self.record)]
        for unique, taken, value in zip(uniques(self.record), self.taken, values, strict=True):
            if value is not None and taken.get(value, row.key) != row.key:
                raise UniqueViolation(BY_RECORD[self.record].name, unique.fields)
        if previous is not None:
            self._free(previous)
        for taken, value in zip(self.taken, values, strict=True):
            if value is not None:
                taken[value] = row.key
        self.rows[row.key] = row
        return previous

    def erase(self, row: Any) -> None:
        self._free(row)
        del self.rows[row.key]

    def _free(self, row: Any) -> None:
        for unique, taken in zip(uniques(self.record), self.taken, strict=True):
            value = _value(unique, row)
            if value is not None:
                del taken[value]


class Snapshot(Struct, frozen=True):
    """Everything in the store as of one commit. Never changed after publication: a transaction
    copies what it changes."""

    tables: Mapping[type[Any], Table] = field(default_factory=lambda: MappingProxyType({}))
    extras: Mapping[str, dict[Any, Any]] = field(default_factory=lambda: MappingProxyType({}))


def uniques(record: type[Any]) -> tuple[Unique, ...]:
    return BY_RECORD[record].unique


def _value(unique: Unique, row: Any) -> tuple[Any, ...] | None:
    """The row's value for a unique constraint; None if the constraint does not apply to the row."""
    if unique.unless_state and row.state in unique.unless_state:
        return None
    value = tuple(getattr(row, name) for name in unique.fields)
    return None if None in value else value
