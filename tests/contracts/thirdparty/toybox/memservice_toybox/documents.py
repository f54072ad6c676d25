"""Records as JSON documents in a SQLite file: what a transaction does to rows."""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from msgspec.structs import asdict, fields, replace

from memservice.domain.filters.ast import TRUE, Condition
from memservice.domain.filters.evaluate import matches
from memservice.spi.rows import BY_KEY, Order, ReadOnly, UniqueViolation
from memservice.spi.schema import BY_RECORD

R = TypeVar("R")

TABLES = """
CREATE TABLE IF NOT EXISTS rows (kind TEXT, key INTEGER, body TEXT, PRIMARY KEY (kind, key)) WITHOUT
    ROWID;
CREATE TABLE IF NOT EXISTS last (kind TEXT PRIMARY KEY, key INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS texts (workspace INTEGER, kind TEXT, key INTEGER, body TEXT, PRIMARY KEY
    (workspace, kind, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS commits (number INTEGER);
"""


class ToyRows:
    """`memservice.spi.rows.Rows` on one connection, inside one transaction. There is one writer at
    a time, so every row is locked."""

    def __init__(self, connection: sqlite3.Connection, *, writing: bool) -> None:
        self.connection = connection
        self._writing = writing
        self._cached: dict[type[Any], dict[int, Any]] = {}

    def get(self, record: type[R], condition: Condition, *, lock: bool = False) -> R | None:
        rows = self.page(record, condition, limit=1)
        return rows[0] if rows else None

    def page(
        self,
        record: type[R],
        condition: Condition = TRUE,
        order: Sequence[Order] = BY_KEY,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        rows = self._matching(record, condition)
        for step in reversed(order):
            rows.sort(
                key=lambda row: ((value := getattr(row, step.field)) is not None, value),
                reverse=step.descending,
            )
        return copy.deepcopy(rows[offset : None if limit is None else offset + limit])

    def count(
        self, record: type[Any], condition: Condition = TRUE, limit: int | None = None
    ) -> int:
        return len(self._matching(record, condition)[:limit])

    def put(self, rows: Sequence[R]) -> list[R]:
        self._writable()
        if not rows:
            return []
        record = type(rows[0])
        table = self._table(record)
        copies: list[Any] = copy.deepcopy(list(rows))
        if unknown := [row.key for row in copies if row.key and row.key not in table]:
            raise LookupError(f"not stored: {unknown}")
        stored = [row if row.key else replace(row, key=self._next_key(record)) for row in copies]
        after = table | {row.key: row for row in stored}
        for row in stored:
            _check_unique(row, after)
        self._cached[record] = after
        self.connection.executemany(
            "INSERT OR REPLACE INTO rows VALUES (?, ?, ?)",
            [(record.__name__, row.key, _written(row)) for row in stored],
        )
        return copy.deepcopy(stored)

    def change(self, record: type[Any], condition: Condition, **values: Any) -> int:
        self._writable()
        return len(self.put([replace(row, **values) for row in self._matching(record, condition)]))

    def increase(self, record: type[Any], condition: Condition, **amounts: int) -> int:
        self._writable()
        rows = self._matching(record, condition)
        return len(
            self.put(
                [
                    replace(row, **{name: getattr(row, name) + by for name, by in amounts.items()})
                    for row in rows
                ]
            )
        )

    def delete(self, record: type[Any], condition: Condition) -> int:
        self._writable()
        rows = self._matching(record, condition)
        for row in rows:
            del self._table(record)[row.key]
        self.connection.executemany(
            "DELETE FROM rows WHERE kind = ? AND key = ?",
            [(record.__name__, row.key) for row in rows],
        )
        return len(rows)

    def _matching(self, record: type[Any], condition: Condition) -> list[Any]:
        """As they lie in the store, by rising key: not to be handed out."""
        return [row for _, row in sorted(self._table(record).items()) if matches(row, condition)]

    def _table(self, record: type[Any]) -> dict[int, Any]:
        if record not in self._cached:
            bodies = self.connection.execute(
                "SELECT body FROM rows WHERE kind = ?", (record.__name__,)
            )
            rows = [_read(record, body) for (body,) in bodies]
            self._cached[record] = {row.key: row for row in rows}
        return self._cached[record]

    def _next_key(self, record: type[Any]) -> int:
        (key,) = self.connection.execute(
            (
                "INSERT INTO last VALUES (?, 1) ON CONFLICT (kind) DO UPDATE SET key = key + 1 "
                "RETURNING key"
            ),
            (record.__name__,),
        ).fetchone()
        return int(key)

    def _writable(self) -> None:
        if not self._writing:
            raise ReadOnly("this transaction is read-only; use Storage.write")


def _check_unique(row: Any, table: dict[int, Any]) -> None:
    spec = BY_RECORD[type(row)]
    for unique in spec.unique:
        mine = [getattr(row, name) for name in unique.fields]
        if None in mine or getattr(row, "state", None) in unique.unless_state:
            continue
        for other in table.values():
            if other.key == row.key or getattr(other, "state", None) in unique.unless_state:
                continue
            if mine == [getattr(other, name) for name in unique.fields]:
                raise UniqueViolation(spec.name, unique.fields)


_TIMES = {
    record: frozenset(field.name for field in fields(record) if "datetime" in str(field.type))
    for record in BY_RECORD
}
"""Fields that hold times."""


def _written(row: Any) -> str:
    return json.dumps(
        {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in asdict(row).items()
        }
    )


def _read(record: type[Any], body: str) -> Any:
    times = _TIMES[record]
    values = json.loads(body)
    return record(
        **{
            name: datetime.fromisoformat(value) if name in times and value else value
            for name, value in values.items()
        }
    )
