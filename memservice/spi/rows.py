"""The storage primitives: the seven operations that a storage must implement.

The repositories (`memservice.spi.repositories`) need only these. A storage overrides a repository
to be faster, never to return other results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from memservice.domain.filters.ast import TRUE, Condition

R = TypeVar("R", bound=Struct)


class Order(Struct, frozen=True):
    """Sort by one field: strings by code point, null below every value. Every order ends with
    `key`, so it is total."""

    field: str
    descending: bool = False


BY_KEY = (Order("key"),)


class UniqueViolation(Exception):
    """`put` or `change` would violate a unique constraint (`memservice.spi.schema`)."""

    def __init__(self, table: str, fields: tuple[str, ...]) -> None:
        super().__init__(f"{table}: {', '.join(fields)} must be unique")
        self.table = table
        self.fields = fields


class Rows(Protocol):
    """Rows as one transaction sees them. Do not share it between threads.

    In a transaction of `Storage.read()` all reads see the same state, and the methods that write
    raise `ReadOnly`.
    """

    def get(self, record: type[R], condition: Condition, *, lock: bool = False) -> R | None:
        """The matching row, or None; of several, the one with the lowest key. `lock` locks the row
        until commit."""
        ...

    def page(
        self,
        record: type[R],
        condition: Condition = TRUE,
        order: Sequence[Order] = BY_KEY,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        """Matching rows in `order`."""
        ...

    def count(
        self, record: type[Any], condition: Condition = TRUE, limit: int | None = None
    ) -> int:
        """How many rows match; with `limit`, no more than that are read and counted."""
        ...

    def put(self, rows: Sequence[R]) -> list[R]:
        """Store rows of one record type, in order: rows with key 0 are inserted and get rising
        keys, the others replace stored rows.

        Returns them as stored. Raises `UniqueViolation`, or `LookupError` for a key that is not
        stored; the call then stores nothing.
        """
        ...

    def change(self, record: type[Any], condition: Condition, **values: Any) -> int:
        """Set columns of all matching rows; returns how many. With a condition on the old value
        this is compare-and-set."""
        ...

    def increase(self, record: type[Any], condition: Condition, **amounts: int) -> int:
        """Add to integer columns of all matching rows, atomically; returns how many."""
        ...

    def delete(self, record: type[Any], condition: Condition) -> int:
        """Erase all matching rows; returns how many."""
        ...


class ReadOnly(RuntimeError):
    """A write in a reading transaction: a programming error."""
