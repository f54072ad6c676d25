"""A timeout for each statement of a read-only transaction: SQLite has none."""

from __future__ import annotations

import sqlite3
import time
import weakref
from collections.abc import Callable
from typing import Any

INSTRUCTIONS = 100_000
"""SQLite checks the clock after this many steps of a statement, a few milliseconds. Each check
takes Python's global lock."""


class Clock:
    """The deadline of the current statement of one connection."""

    __slots__ = ("ends", "seconds")

    def __init__(self) -> None:
        self.limit(None)

    def limit(self, seconds: float | None) -> None:
        """Set the timeout of each statement from now on; None: no timeout."""
        self.seconds = seconds
        self.ends = float("inf")

    def is_over(self) -> bool:
        return time.monotonic() > self.ends


class TimedCursor(sqlite3.Cursor):
    connection: TimedConnection

    def execute(self, sql: str, values: Any = (), /) -> TimedCursor:
        clock = self.connection.clock
        if clock.seconds is not None:
            clock.ends = time.monotonic() + clock.seconds
        _execute(self, sql, values)
        return self

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        """Fetch rows with a new deadline, so that time spent in the caller since the previous fetch
        does not count."""
        clock = self.connection.clock
        if clock.seconds is not None:
            clock.ends = time.monotonic() + clock.seconds
        return super().fetchmany(size)


_execute = sqlite3.Cursor.execute


class TimedConnection(sqlite3.Connection):
    """A connection that interrupts a statement (SQLITE_INTERRUPT) after the timeout set by
    `clock.limit`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.clock = Clock()
        self.set_progress_handler(self.clock.is_over, INSTRUCTIONS)

    def cursor(self, factory: Any = TimedCursor) -> Any:
        return super().cursor(factory)

    def create_function(
        self, name: str, narg: int, func: Callable[..., Any] | None, **kwargs: Any
    ) -> None:
        """Create a function that checks the clock at each call, since a few steps with the function
        can take as long as many without."""
        super().create_function(name, narg, None if func is None else self._timed(func), **kwargs)

    def _timed(self, func: Callable[..., Any]) -> Callable[..., Any]:
        clock, connection = self.clock, weakref.ref(self)

        def timed(*values: Any) -> Any:
            if clock.is_over():
                open_connection = connection()
                assert open_connection is not None
                open_connection.interrupt()  # takes effect before the next row
            return func(*values)

        return timed
