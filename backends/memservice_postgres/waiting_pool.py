"""A pool that waits for a connection if the server has none left: other processes return theirs
soon."""

from __future__ import annotations

import time

import psycopg
from sqlalchemy import exc
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.util import queue

from memservice_sql.elastic_pool import ElasticPool

FIRST_PAUSE, MAX_PAUSE = 0.05, 1.0
"""Seconds between attempts to connect, doubled each time. A connection that is returned to this
pool is used at once."""

_FULL = (
    "too many clients",
    "too many connections",
    "connection slots are reserved",
    "no more connections allowed",
)
"""Parts of the messages of PostgreSQL and poolers. The driver sets no code for errors while
connecting. A message in another language is not recognised: then the write fails at once."""


def is_full(error: BaseException) -> bool:
    """Whether the server refused a connection because its limit is reached."""
    return isinstance(error, psycopg.OperationalError) and (
        error.sqlstate == "53300" or any(words in str(error) for words in _FULL)
    )


class WaitingPool(ElasticPool):
    """`ElasticPool` raises at once if a new connection is refused. This one tries again until the
    pool's timeout."""

    def _do_get(self) -> ConnectionPoolEntry:
        deadline = time.monotonic() + self._timeout
        pause = FIRST_PAUSE
        while True:
            try:
                return super()._do_get()
            except Exception as error:
                cause = error.orig if isinstance(error, exc.DBAPIError) else error
                seconds_left = deadline - time.monotonic()
                if seconds_left <= 0 or cause is None or not is_full(cause):
                    raise
            try:
                return self._pool.get(block=True, timeout=min(pause, seconds_left))
            except queue.Empty:
                pause = min(2 * pause, MAX_PAUSE)
