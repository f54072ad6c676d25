"""Everything that differs between databases, one method for each purpose."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
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
from memservice_sql.row_turns import Turn
from memservice_sql.statements import Cursor, Executor, Slots

JsonLeaf = Contains | Holds | KeyEqual | KeyCompare | KeyOneOf | KeySubstring

COMPARISONS: dict[str, Callable[[Any, Any], sa.ColumnElement[bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
"""Operator of a filter → the SQL comparison."""


class SqlDialect(ABC):
    """The interface of one database to the rest of `memservice_sql`. Has no state but its settings;
    used by several threads.

    A condition needs two methods, since a statement is compiled once per shape: one returns the
    values, the other the SQL with the bind parameters (`Slots`) for these values, in the same
    order.
    """

    driver_error: type[Exception]
    """Root of the driver's exceptions."""
    schema: str | None = None
    """The schema of the tables, in a database that has schemas; else None."""
    survives_errors: bool
    """Whether a transaction remains usable after a statement that violated a unique constraint."""
    inserts_whole: bool
    """Whether `insert` stores no row, and leaves the transaction usable, when a row violates a
    unique constraint."""

    @abstractmethod
    def engine(self) -> sa.Engine:
        """A new engine with a pool of configured connections, none of them open. One per
        process."""

    @abstractmethod
    def writer_turn(self) -> AbstractContextManager[Turn | None]:
        """Entered before a writing transaction takes a connection. A database with one writer at a
        time queues the writers here, and returns None; another one queues them for the first row
        that they lock."""

    @abstractmethod
    def transaction(
        self, connection: sa.Connection, *, writing: bool
    ) -> AbstractContextManager[None]:
        """A transaction: committed at the end of the block, rolled back if it raises. A read-only
        transaction reads one snapshot."""

    @abstractmethod
    def statements(self, connection: sa.Connection) -> AbstractContextManager[None]:
        """Reading statements, each in a transaction of its own if that is cheaper."""

    @abstractmethod
    def migration(self, connection: sa.Connection) -> AbstractContextManager[None]:
        """A writing transaction that may create tables. Waits while another process migrates."""

    @abstractmethod
    def translate(self, error: Exception) -> Exception | None:
        """The meaning of a driver's exception; None if it is a programming error.

        One of `memservice.domain.errors` (`Unavailable` only if nothing was committed), or
        `memservice.spi.base.TransientConflict` if the same transaction will probably succeed when
        it runs again.
        """

    @abstractmethod
    def broken_unique(self, error: Exception) -> tuple[str, tuple[str, ...]] | None:
        """Table and columns of the unique index that a driver's exception reports as violated; None
        for any other exception."""

    def reader(self, connection: sa.Connection) -> Executor | None:
        """What runs queries in place of the driver's cursor; None: the cursor does."""
        return None

    @abstractmethod
    def insert(
        self, cursor: Cursor, table: sa.Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> list[int]:
        """Insert rows (converted for the driver) and return their new keys, in order. Raises the
        driver's error for a row that violates a constraint; see `inserts_whole`."""

    @abstractmethod
    def insert_unless_there(
        self, cursor: Cursor, table: sa.Table, columns: Sequence[str], row: Sequence[Any]
    ) -> int | None:
        """Insert one row and return its key; None, without an error, if it would violate a unique
        constraint."""

    @abstractmethod
    def affected(self, cursor: Cursor) -> int:
        """The number of rows that the cursor's last update or delete has changed."""

    @abstractmethod
    def list_value(self, values: Sequence[Any]) -> Any:
        """The value for the slot of `one_of` and, for tuples of equal length, of `value_rows`."""

    @abstractmethod
    def one_of(self, column: sa.ColumnElement[Any], slots: Slots) -> sa.ColumnElement[bool]:
        """The condition that the column's value is in a list of any length (one slot)."""

    @abstractmethod
    def in_query(
        self, column: sa.ColumnElement[Any], query: sa.Select[Any]
    ) -> sa.ColumnElement[bool]:
        """The condition that the column's value is a result of a query, which may refer to another
        table; the rows are looked up by the results."""

    def by_key(self, query: sa.Select[Any], table: sa.Table) -> sa.Select[Any]:
        """The query, whose condition lists keys of the table, such that it looks up these rows."""
        return query

    def by_index(
        self, query: sa.Select[*tuple[Any, ...]], table: sa.FromClause, name: str
    ) -> sa.Select[*tuple[Any, ...]]:
        """The query, whose condition lists keys of the table, such that it reads all that it needs
        of these rows from this index."""
        return query

    @abstractmethod
    def value_rows(self, slots: Slots, types: Sequence[TypeEngine[Any]]) -> sa.CTE:
        """A table with columns `v0`, `v1` … of these types, materialised once per statement. Its
        rows are the value of one slot."""

    @abstractmethod
    def day(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
        """The UTC day of a time, as text: `2024-05-17`."""

    @abstractmethod
    def substring(self, column: sa.ColumnElement[Any], slots: Slots) -> sa.ColumnElement[bool]:
        """The condition that the column's text, folded (`memservice.domain.filters.jsontext.fold`),
        contains a folded needle (one slot)."""

    @abstractmethod
    def json_values(self, leaf: JsonLeaf) -> tuple[Hashable, Sequence[Any]]:
        """For a leaf on a JSON column: the shape that determines its SQL, and the values of its
        slots."""

    @abstractmethod
    def json_condition(
        self, column: sa.ColumnElement[Any], shape: Hashable, slots: Slots
    ) -> sa.ColumnElement[bool]:
        """The condition of that shape. Its value may be null."""

    @abstractmethod
    def create_indexes(self, connection: sa.Connection) -> None:
        """Create the tables and indexes that only this database has (full text, vectors), in a new
        store or the first migration. This and the next methods are `creating.SCHEMA_STEPS`."""

    @abstractmethod
    def copy_metadata(self, connection: sa.Connection) -> None:
        """In migration 0009: store the metadata of messages a second time, in a form whose
        conditions are fast to test, if the database has one."""

    @abstractmethod
    def spread_merges(self, connection: sa.Connection) -> None:
        """In migrations 0010 and 0020: let every change of the text index merge a little of it, if
        the database would merge much of it at once."""

    @abstractmethod
    def sample_texts(self, connection: sa.Connection) -> None:
        """In migrations 0015 and 0019: index a sample of the texts, if the database estimates from
        one how many have a frequent term."""

    @abstractmethod
    def order_texts(self, connection: sa.Connection) -> None:
        """In migrations 0016 and 0017: index the texts of each workspace by their ids, unless they
        are."""

    @abstractmethod
    def index_positions(self, connection: sa.Connection) -> None:
        """In migration 0020: index `messages_places` has the session and the seq of each key, and
        `messages_neighbours` has the key, the author and the tokens of each session and seq. A page
        of an index has many more messages than one of the table, so a search reads fewer pages."""

    @abstractmethod
    def index_terms(self, connection: sa.Connection) -> None:
        """In migration 0020: index the terms of texts with their sessions, if the database finds
        the texts of a session with a term so."""

    @abstractmethod
    def close(self) -> None:
        """Release the dialect's resources in this process."""
