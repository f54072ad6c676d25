"""Column types with the same meaning on every database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine


class UtcDateTime(TypeDecorator[datetime]):
    """A time, exact to the microsecond, as an aware UTC datetime. Raises ValueError for naive ones.

    SQLite has no such type. It stores text of fixed width (`2025-01-31T09:30:00.000000Z`), which
    sorts and compares like the time; `datetime.fromisoformat` reads it nine times faster than an
    integer can be converted to a datetime.
    """

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(sa.String(27))
        return dialect.type_descriptor(sa.DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if dialect.name == "sqlite":
            return to_text(value)
        return None if value is None else _utc(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if dialect.name == "sqlite":
            return from_text(value)
        return _from_zone(value)

    def process_literal_param(self, value: datetime | None, dialect: Dialect) -> str:
        return f"'{self.process_bind_param(value, dialect)}'"

    # pyrefly: ignore[bad-override]
    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], Any] | None:
        return to_text if dialect.name == "sqlite" else super().bind_processor(dialect)

    def result_processor(  # pyrefly: ignore[bad-override]
        self, dialect: Dialect, coltype: object
    ) -> Callable[[Any], datetime | None] | None:
        return from_text if dialect.name == "sqlite" else _from_zone


def _utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone")
    return value.astimezone(UTC)


@lru_cache(1_024)
def to_text(value: datetime | None) -> str | None:
    """The time as text of fixed width, so that texts sort as times do. Cached: rows that are
    written together mostly have the same times."""
    return None if value is None else f"{_utc(value).isoformat(timespec='microseconds')[:-6]}Z"


def from_text(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _from_zone(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(UTC)


KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""Keys and references to them. SQLite assigns keys to INTEGER columns only."""

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Text that compares and sorts by code point, in any locale of the database. SQLite has no other
order."""

JSON = sa.JSON(none_as_null=True)
"""Objects and lists, stored as written: the order of keys is preserved, and 1.0 differs from 1.
None is SQL's null."""
