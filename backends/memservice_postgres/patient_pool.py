"""A pool that waits where the server has no connection to give: those that others use come free in
a moment."""

from __future__ import annotations

import time

import psycopg
from sqlalchemy import exc
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool
from sqlalchemy.util import queue

FIRST_PAUSE, MAX_PAUSE = 0.05, 1.0
"""Seconds after which the server is asked again, doubled each time. One of this pool's own that
comes back is taken at once."""

_FULL = (
    "too many clients",
    "too many connections",
    "connection slots are reserved",
    "no more connections allowed",
)
"""What PostgreSQL and poolers say. The driver has no code for an error in connecting; in another
language this is not recognised, and the write fails at once."""


def is_full(error: BaseException) -> bool:
    """Has the server refused a connection because it has as many as it may?"""
    return isinstance(error, psycopg.OperationalError) and (
        error.sqlstate == "53300" or any(words in str(error) for words in _FULL)
    )


class PatientPool(QueuePool):
    """SQLAlchemy's, which gives up at once where a new connection is refused."""

    def _do_get(self) -> ConnectionPoolEntry:
        ends = time.monotonic() + self._timeout
        pause = FIRST_PAUSE
        while True:
            try:
                return super()._do_get()
            except Exception as error:
                cause = error.orig if isinstance(error, exc.DBAPIError) else error
                left = ends - time.monotonic()
                if left <= 0 or cause is None or not is_full(cause):
                    raise
            try:
                return self._pool.get(block=True, timeout=min(pause, left))
            except queue.Empty:
                pause = min(2 * pause, MAX_PAUSE)
