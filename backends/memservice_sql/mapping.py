"""Conversion between rows of a table and records, a column at a time."""

# fast path: see docs/decisions/fast-paths.md#records

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from memservice.domain.json_bytes import decode

R = TypeVar("R")

Convert = Callable[[Any], Any]


class Mapping(Generic[R]):
    """The mapping of one record type to its table on one database. Rows are tuples of the record's
    fields, in order."""

    def __init__(self, record: type[R], table: sa.Table, dialect: Dialect) -> None:
        names = [field.name for field in fields(record)]  # type: ignore[arg-type]
        self.record = record
        self.table = table
        self.columns: list[sa.Column[Any]] = [table.c[name] for name in names]
        self.width = len(names)
        format_column = dialect.identifier_preparer.format_column
        names_in_sql = (format_column(column, use_table=True) for column in self.columns)
        self.query: sa.Select[Any] = sa.select(
            sa.literal_column(", ".join(names_in_sql))
        ).select_from(table)
        """All columns of the table, as one text: SQLAlchemy compiles a query with twenty columns in
        about 0.7 ms, and this one in 0.3."""
        self._setters: list[Callable[..., Any]] = [getattr(record, name).__set__ for name in names]
        self._values: Callable[[R], tuple[Any, ...]] = attrgetter(*names)
        self._reading = _converters(_reader(column, dialect) for column in self.columns)
        self._writing = _converters(
            c.type.dialect_impl(dialect).bind_processor(dialect) for c in self.columns
        )

    def records(self, rows: Sequence[Sequence[Any]]) -> list[R]:
        """The records of these rows. Sets the slots of frozen records directly: their constructor
        takes three times as long."""
        if not rows:
            return []
        columns: list[Iterable[Any]] = list(zip(*rows, strict=True))
        for index, convert in self._reading:
            columns[index] = map(convert, columns[index])
        records: list[R] = [object.__new__(self.record) for _ in rows]
        for setter, column in zip(self._setters, columns, strict=True):
            deque(map(setter, records, column), maxlen=0)
        return records

    def one(self, row: Sequence[Any] | None) -> R | None:
        if row is None:
            return None
        values = list(row)
        for index, convert in self._reading:
            values[index] = convert(values[index])
        record: R = object.__new__(self.record)
        for setter, value in zip(self._setters, values, strict=True):
            setter(record, value)
        return record

    def with_key(self, record: R, key: int) -> R:
        """The record with this key. `dataclasses.replace` takes more than twice as long."""
        copy: R = object.__new__(self.record)
        for setter, value in zip(self._setters, self._values(record), strict=True):
            setter(copy, value)
        self._setters[0](copy, key)
        return copy

    def rows(self, records: Sequence[R]) -> list[tuple[Any, ...]]:
        """The records as rows for the driver, key first."""
        columns: list[Iterable[Any]] = list(zip(*map(self._values, records), strict=True))
        for index, convert in self._writing:
            columns[index] = map(convert, columns[index])
        return list(zip(*columns, strict=True))


def _reader(column: sa.Column[Any], dialect: Dialect) -> Convert | None:
    """The conversion of a value from the driver; None if there is none."""
    convert = column.type.dialect_impl(dialect).result_processor(dialect, None)
    if convert is not None and dialect.name == "sqlite" and isinstance(column.type, sa.JSON):
        # SQLAlchemy adds two calls for each value.
        return json_or_null if column.nullable else decode
    return convert


def json_or_null(text: str | None) -> Any:
    return None if text is None else decode(text)


def _converters(converters: Iterable[Convert | None]) -> list[tuple[int, Convert]]:
    return [(index, convert) for index, convert in enumerate(converters) if convert is not None]
