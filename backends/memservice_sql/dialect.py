"""What differs between databases, asked by intention."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from memservice.domain.filters.ast import (
    Contains,
    Holds,
    KeyCompare,
    KeyEqual,
    KeyOneOf,
    KeySubstring,
)
from memservice_sql.statements import Cursor, Slots

JsonLeaf = Contains | Holds | KeyEqual | KeyCompare | KeyOneOf | KeySubstring


class SqlDialect(ABC):
    """One database, as the rest of `memservice_sql` sees it. Stateless but for settings; used by
    several threads.

    Conditions come in pairs, since a statement is compiled once per shape: one method gives the
    values, the other the SQL around the places (`Slots`) that these values will take, in the same
    order.
    """

    driver_error: type[Exception]
    """Root of the driver's exceptions."""
    schema: str | None = None
    """Where the tables are, in a database that has schemas; None for its only place."""
    survives_errors: bool
    """Does a transaction go on after a statement of it that broke a unique constraint?"""
    inserts_whole: bool
    """Does `insert` store nothing, and leave the transaction usable, when a row breaks a unique
    constraint?"""

    @abstractmethod
    def engine(self) -> sa.Engine:
        """A new engine with a pool of configured connections, none of them open yet. One per
        process."""

    @abstractmethod
    def turn(self) -> AbstractContextManager[None]:
        """Entered before a writing transaction takes a connection: where one writer at a time is
        all there is, they queue here."""

    @abstractmethod
    def transaction(
        self, connection: sa.Connection, *, writing: bool
    ) -> AbstractContextManager[None]:
        """A transaction: committed at the end of the block, rolled back if it raises. For reading:
        one consistent view."""

    @abstractmethod
    def migration(self, connection: sa.Connection) -> AbstractContextManager[None]:
        """A writing transaction that waits patiently while another process migrates. Tables may be
        made in it."""

    @abstractmethod
    def translate(self, error: Exception) -> Exception | None:
        """What a driver's exception means; None where it means a mistake of ours.

        One of `memservice.domain.errors` (`Unavailable` only where nothing was committed), or
        `memservice.spi.base.TransientConflict` where the same transaction would probably succeed if
        it ran again.
        """

    @abstractmethod
    def broken_unique(self, error: Exception) -> tuple[str, tuple[str, ...]] | None:
        """Table and columns of the unique index that a driver's exception reports as broken; None
        for any other exception."""

    @abstractmethod
    def insert(
        self, cursor: Cursor, table: sa.Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> list[int]:
        """Insert rows (as the driver takes them) and return the keys that they got, in order.
        Raises the driver's error at a row that breaks a rule; see `inserts_whole`."""

    @abstractmethod
    def insert_unless_there(
        self, cursor: Cursor, table: sa.Table, columns: Sequence[str], row: Sequence[Any]
    ) -> int | None:
        """As `insert`, for one row; None where it would break a unique constraint, which is not an
        error."""

    @abstractmethod
    def affected(self, cursor: Cursor) -> int:
        """How many rows the update or delete that the cursor just ran has changed."""

    @abstractmethod
    def list_value(self, values: Sequence[Any]) -> Any:
        """The value of the one slot of `one_of` and, for equally long tuples, of `value_rows`."""

    @abstractmethod
    def one_of(self, column: sa.ColumnElement[Any], slots: Slots) -> sa.ColumnElement[bool]:
        """The column's value is in a list of any length."""

    @abstractmethod
    def value_rows(self, slots: Slots, types: Sequence[TypeEngine[Any]]) -> sa.CTE:
        """A table with columns `v0`, `v1` … of these types, made once per statement, whose rows are
        one slot's value."""

    @abstractmethod
    def substring(self, column: sa.ColumnElement[Any], slots: Slots) -> sa.ColumnElement[bool]:
        """The column's text, folded (`memservice.domain.filters.jsontext.fold`), contains a needle
        that is folded already (one slot)."""

    @abstractmethod
    def json_values(self, leaf: JsonLeaf) -> tuple[Hashable, Sequence[Any]]:
        """For a leaf on a JSON column: what of it shapes the SQL, and the values of its slots."""

    @abstractmethod
    def json_condition(
        self, column: sa.ColumnElement[Any], shape: Hashable, slots: Slots
    ) -> sa.ColumnElement[bool]:
        """The condition of that shape. May be null."""

    @abstractmethod
    def create_indexes(self, connection: sa.Connection) -> None:
        """Create what only this database has (full text, vectors), in the first migration."""

    @abstractmethod
    def close(self) -> None:
        """Release what the dialect itself holds in this process."""
