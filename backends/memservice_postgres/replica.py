"""Reads from a streaming replica, where it has everything that was committed before they began.

Before a request's first read, the primary is asked how far its log has been written. A read goes to
the replica only if that has replayed its log to there. So a read sees each write that was answered
before it, of any process on any machine, and what was deleted stays deleted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import psycopg
import sqlalchemy as sa
from msgspec import Struct

from memservice.spi.storage import Finding, ReplicaReads
from memservice_postgres.connections import Driver, driver_of

T = TypeVar("T")

CATCH_UP_SECONDS = 0.03
"""How long a read waits for a replica that is behind. While it stays behind, reads do not wait."""
FIRST_PAUSE = 0.001
"""Before the replica is asked again; doubled each time."""
RETRY_SECONDS = 5.0
"""How long a replica that failed is not tried."""
LAGGING_SECONDS = 5.0
"""A replica that has been behind for this long is reported."""

_CANCELLED = {"40001", "40P01"}
"""A replica cancels a read that conflicts with what it replays."""
_FAILED = ("08", "53", "57P", "58", "XX")
"""Beginnings of the codes of a server that fails, stops or is short of resources."""

# A commit that does not wait for the disk can be visible before its log is written.
_POSITION = """
    SELECT substr(pg_walfile_name(lsn), 1, 8), lsn::text FROM (SELECT
        CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()
            ELSE pg_current_wal_flush_lsn() END AS lsn) AS written
"""
_REPLAYED = "SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn() >= %s::pg_lsn"
_IDENTITY = "SELECT system_identifier::text FROM pg_control_system()"
_COPY = """
    SELECT system_identifier::text, lpad(upper(to_hex(timeline_id)), 8, '0')
    FROM pg_control_system(), pg_control_checkpoint()
"""


class ReplicaLost(Exception):
    """The replica failed during a read. The primary can still answer it."""


class _Unusable(Exception):
    """The replica cannot be used for now; the message says why."""


class Position(Struct, frozen=True):
    """How far the primary's log has been written."""

    timeline: str
    """Changes when a replica becomes the primary: positions of two timelines do not compare."""
    lsn: str


class Replica:
    """A replica of one process, and what this process observed of it."""

    def __init__(
        self,
        name: str,
        engine: Callable[[], sa.Engine],
        primary: Callable[[], sa.Engine],
        log: logging.Logger,
    ) -> None:
        """`engine` and `primary` return this process's engines; `name` is for messages."""
        self._name = name
        self._engine = engine
        self._primary = primary
        self._log = log
        self._thread = threading.local()
        self._lock = threading.Lock()
        self._counts = {"replica": 0, "behind": 0, "away": 0}
        self._problem: str | None = None
        self._retry_at = float("-inf")
        self._behind_since: float | None = None
        self._lag_reported = False

    def reading(self, fn: Callable[[], T]) -> T:
        """The result of `fn`, whose reads in this thread may go to the replica. It runs again, at
        the primary, if the replica fails."""
        self._thread.active, self._thread.position = True, None
        try:
            return fn()
        except ReplicaLost:
            self.stop_reading()
            return fn()
        finally:
            self.stop_reading()

    def stop_reading(self) -> None:
        """Let this thread read from the primary from now on."""
        self._thread.active = False

    def reads(self) -> ReplicaReads:
        with self._lock:
            return ReplicaReads(**self._counts)

    @contextmanager
    def connection(self) -> Iterator[sa.Connection | None]:
        """A connection for one read; None if it has to go to the primary. Raises `ReplicaLost` if
        the replica fails within."""
        connection = self._usable() if getattr(self._thread, "active", False) else None
        if connection is None:
            yield None
            return
        driver = driver_of(connection)
        try:
            with connection:
                yield connection
        except psycopg.Error as error:
            code = error.sqlstate or ""
            if code in _CANCELLED:
                raise ReplicaLost("the read was cancelled") from error
            if driver.closed or code.startswith(_FAILED):
                self._fail(_first_line(error))
                raise ReplicaLost("the replica failed") from error
            raise

    def examine(self) -> Iterator[Finding]:
        """Tries the replica."""
        position = self._position()
        try:
            with self._engine().connect() as connection:
                is_current = self._is_current(connection, position)
        except (psycopg.Error, sa.exc.SQLAlchemyError, _Unusable) as error:
            self._fail(_first_line(error))
        else:
            self._observe(is_current)
        problem = self._problem
        if problem is not None:
            yield Finding(
                "degraded",
                f"the replica {self._name} is not used: {problem}",
                "check the server that `DB_READ_CONNECTION_URI` names; reads go to the primary",
            )
        elif self._is_lagging():
            yield Finding(
                "degraded",
                f"the replica {self._name} has been behind for more than {LAGGING_SECONDS:g} s",
                "check its load and its connection to the primary; reads go to the primary",
            )

    def _usable(self) -> sa.Connection | None:
        """A connection to the replica, if it has everything that was committed when this thread
        began to read."""
        if time.monotonic() < self._retry_at:
            return self._count("away", None)
        if self._problem is not None:
            # One thread tries, the others do not wait for it.
            self._retry_at = time.monotonic() + RETRY_SECONDS
        if self._thread.position is None:
            self._thread.position = self._position()
        connection = None
        try:
            connection = self._engine().connect()
            if self._has_caught_up(connection, self._thread.position):
                return self._count("replica", connection)
        except sa.exc.TimeoutError:  # all connections to it are in use
            return self._count("away", None)
        except (psycopg.Error, sa.exc.DBAPIError, _Unusable) as error:
            if connection is not None:
                connection.invalidate()
                connection.close()
            self._fail(_first_line(error))
            return self._count("away", None)
        connection.close()
        return self._count("behind", None)

    def _position(self) -> Position:
        with self._primary().connect() as connection:
            timeline, lsn = driver_of(connection).execute(_POSITION).fetchall()[0]
            return Position(timeline, lsn)

    def _has_caught_up(self, connection: sa.Connection, position: Position) -> bool:
        deadline = time.monotonic() + (CATCH_UP_SECONDS if self._behind_since is None else 0.0)
        pause = FIRST_PAUSE
        while not (is_current := self._is_current(connection, position)):
            if time.monotonic() + pause > deadline:
                break
            time.sleep(pause)
            pause *= 2
        self._observe(is_current)
        return is_current

    def _is_current(self, connection: sa.Connection, position: Position) -> bool:
        """Whether the server of this connection has replayed the log up to the position. Raises
        `_Unusable` if it is not a replica of the primary."""
        driver = driver_of(connection)
        is_standby, has_replayed = driver.execute(_REPLAYED, (position.lsn,)).fetchall()[0]
        if not is_standby:
            raise _Unusable("it is not a replica (or was promoted)")
        if has_replayed is None:
            raise _Unusable("it does not report how far it has replayed the primary's log")
        if connection.info.get("timeline") != position.timeline:
            if not self._is_copy(driver, position):
                return False
            connection.info["timeline"] = position.timeline
        return bool(has_replayed)

    def _is_copy(self, driver: Driver, position: Position) -> bool:
        """Whether the server replays the log of the primary, and not an earlier or another one."""
        if driver.pooler:
            raise _Unusable(
                "it is behind a connection pooler, which may lead to another server each time"
            )
        with self._primary().connect() as connection:
            (identity,) = driver_of(connection).execute(_IDENTITY).fetchall()[0]
        copied, timeline = driver.execute(_COPY).fetchall()[0]
        if copied != identity:
            raise _Unusable("it is not a copy of the primary, but a server of its own")
        return bool(timeline == position.timeline)

    def _count(self, server: Literal["replica", "behind", "away"], connection: T) -> T:
        with self._lock:
            self._counts[server] += 1
        return connection

    def _fail(self, problem: str) -> None:
        with self._lock:
            is_new = self._problem is None
            self._problem, self._retry_at = problem, time.monotonic() + RETRY_SECONDS
        if is_new:
            self._log.warning(
                "the replica %s is not used: %s; reads go to the primary", self._name, problem
            )

    def _observe(self, is_current: bool) -> None:
        """Note that the replica answered, and whether it was current."""
        with self._lock:
            was_away, self._problem = self._problem is not None, None
            self._retry_at = float("-inf")
            if is_current:
                was_lagging, self._lag_reported = self._lag_reported, False
                self._behind_since = None
            else:
                was_lagging = False
                if self._behind_since is None:
                    self._behind_since = time.monotonic()
            is_news = self._is_lagging() and not self._lag_reported
            self._lag_reported = self._lag_reported or is_news
        if was_away or was_lagging:
            self._log.info("the replica %s is used again", self._name)
        if is_news:
            self._log.warning(
                "the replica %s has been behind for more than %g s; reads go to the primary",
                self._name,
                LAGGING_SECONDS,
            )

    def _is_lagging(self) -> bool:
        since = self._behind_since
        return since is not None and time.monotonic() - since > LAGGING_SECONDS


def _first_line(error: Any) -> str:
    cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
    return str(cause).strip().partition("\n")[0]
