"""Column types that mean the same on every database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine


class UtcDateTime(TypeDecorator[datetime]):
    """A moment, exact to the microsecond, as an aware UTC datetime. Naive datetimes are refused.

    SQLite has no such type: there it is text of fixed width (`2025-01-31T09:30:00.000000Z`), which
    sorts and compares like the moment and is read by `datetime.fromisoformat` nine times faster
    than an integer is turned into a datetime.
    """

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(
            sa.String(27) if dialect.name == "sqlite" else sa.DateTime(timezone=True)
        )

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if dialect.name == "sqlite":
            return to_text(value)
        return None if value is None else _utc(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if dialect.name == "sqlite":
            return from_text(value)
        return None if value is None else value.astimezone(UTC)

    def process_literal_param(self, value: datetime | None, dialect: Dialect) -> str:
        return f"'{self.process_bind_param(value, dialect)}'"

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], Any] | None:
        return to_text if dialect.name == "sqlite" else super().bind_processor(dialect)

    def result_processor(
        self, dialect: Dialect, coltype: object
    ) -> Callable[[Any], datetime | None] | None:
        return from_text if dialect.name == "sqlite" else super().result_processor(dialect, coltype)


def _utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone")
    return value.astimezone(UTC)


@lru_cache(1_024)
def to_text(value: datetime | None) -> str | None:
    """Fixed width, so that texts sort as the moments do. Remembers: rows that are written together
    mostly share their times."""
    return None if value is None else f"{_utc(value).isoformat(timespec='microseconds')[:-6]}Z"


def from_text(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""Keys and references to them. SQLite assigns keys to INTEGER columns only."""

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Text that compares and sorts by code point, whatever the database's locale is. SQLite knows no
other order."""

JSON = sa.JSON(none_as_null=True)
"""Objects and lists, kept as they were written: keys in their order, 1.0 apart from 1. None is
SQL's null."""
