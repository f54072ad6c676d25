"""Queries of a connection that run again and again, each on a cursor of its own.

psycopg looks up how to convert parameters and columns once for each cursor and query. With a new
cursor for each query, that is a fifth of the client's CPU time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import psycopg

    Cursor = psycopg.Cursor[tuple[Any, ...]]

MAX_CURSORS = 40
"""Cursors of a connection, about 5 kB each. A search of messages runs about 20 queries."""


class Reader:
    """Runs queries on one connection, for one thread at a time. Fetch the rows of a query before
    the next one.

    Only for reads: a cursor keeps the parameters of its query in memory, and those of a write may
    be large."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection
        self._cursors: dict[str | bytes, tuple[str | bytes, Cursor]] = {}
        """By query, the last used at the end. The query is there again, since psycopg compares it
        by identity."""
        self._last: Cursor | None = None

    def execute(
        self,
        query: str | bytes,
        values: Sequence[Any] | Mapping[str, Any] = (),
        *,
        binary: bool = False,
    ) -> Cursor:
        """The cursor of the query, after it has run with these values. `binary`: whether the result
        has PostgreSQL's binary format. Raises psycopg's errors."""
        self._free_result()
        entry = self._cursors.pop(query) if query in self._cursors else None
        same_query, cursor = (query, self._new_cursor()) if entry is None else entry
        self._cursors[same_query] = same_query, cursor
        # pyrefly: ignore[bad-argument-type]  # made of constants
        self._last = cursor.execute(same_query, values, binary=binary)
        return cursor

    def rows(
        self,
        query: str | bytes,
        values: Sequence[Any] | Mapping[str, Any] = (),
        *,
        binary: bool = False,
    ) -> list[tuple[Any, ...]]:
        """All rows of the query with these values, in its order. Raises psycopg's errors."""
        rows = self.execute(query, values, binary=binary).fetchall()
        self._free_result()
        return rows

    def clear(self) -> None:
        """Forget all cursors."""
        self._cursors.clear()
        self._last = None

    def _free_result(self) -> None:
        """Free the memory of the last result, which its cursor would keep."""
        cursor, self._last = self._last, None
        if cursor is not None and cursor.pgresult is not None:
            cursor.pgresult.clear()

    def _new_cursor(self) -> Cursor:
        if len(self._cursors) >= MAX_CURSORS:
            del self._cursors[next(iter(self._cursors))]
        return self._connection.cursor()
