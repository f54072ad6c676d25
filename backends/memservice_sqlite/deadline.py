"""A deadline for each statement of a transaction that only reads: SQLite has none of its own."""

from __future__ import annotations

import sqlite3
import time
import weakref
from collections.abc import Callable
from typing import Any

INSTRUCTIONS = 100_000
"""SQLite looks at the clock each time that a statement has taken so many steps: a few milliseconds.
Each look takes Python's lock."""


class Clock:
    """When the present statement of one connection has to be at its end."""

    __slots__ = ("ends", "seconds")

    def __init__(self) -> None:
        self.limit(None)

    def limit(self, seconds: float | None) -> None:
        """What each statement may take from now on; None: any time."""
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
        """As ever; the next rows have the time to themselves: what passed since the last ones is
        the caller's."""
        clock = self.connection.clock
        if clock.seconds is not None:
            clock.ends = time.monotonic() + clock.seconds
        return super().fetchmany(size)


_execute = sqlite3.Cursor.execute


class TimedConnection(sqlite3.Connection):
    """A connection whose statements are interrupted (SQLITE_INTERRUPT) when the time is over that
    `clock.limit` gives each."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.clock = Clock()
        self.set_progress_handler(self.clock.is_over, INSTRUCTIONS)

    def cursor(self, factory: Any = TimedCursor) -> Any:
        return super().cursor(factory)

    def create_function(
        self, name: str, narg: int, func: Callable[..., Any] | None, **named: Any
    ) -> None:
        """As ever; the function looks at the clock each time, since a few steps with it may take as
        long as many without."""
        super().create_function(name, narg, None if func is None else self._timed(func), **named)

    def _timed(self, func: Callable[..., Any]) -> Callable[..., Any]:
        clock, connection = self.clock, weakref.ref(self)

        def timed(*values: Any) -> Any:
            if clock.is_over():
                here = connection()
                assert here is not None
                here.interrupt()  # heard before the next row
            return func(*values)

        return timed
