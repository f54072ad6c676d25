"""Copies of the write-ahead log into the database file, which other writers do not wait for.

SQLite copies the log in a commit when it has `connections.WAL_PAGES`, and the writer keeps its turn
meanwhile: 20 to 50 ms for each 16 MB. These copies are smaller and made between two turns, so that
SQLite finds little to copy.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading

from memservice.domain.errors import NoStore, Unavailable
from memservice_sqlite.connections import ConnectionConfig

PAGES = 500
"""About how many pages (2 MB) are written to the log between two copies. While they are flushed,
commits of others wait for the disk: up to 20 ms for 1,000 pages, up to 10 ms for 250."""
MAX_COMMITS = 200
"""Between two copies."""

_log = logging.getLogger(__name__)


class LogCopies:
    """Copies the log after a number of commits of this process, which follows what all processes
    wrote to the log between the last two copies."""

    def __init__(self, config: ConnectionConfig) -> None:
        self.pid = os.getpid()
        self._config = config
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._commits = 0
        self._interval = 1
        self._pages = 0

    def committed(self) -> None:
        """Call it after each commit, without the writer's turn."""
        self._commits += 1
        if self._commits >= self._interval:
            self.copy()

    def copy(self) -> None:
        """Copy as much as open reads allow, unless another thread does so. A failure is only
        logged: nothing is lost, and SQLite copies the log later."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._commits = 0
            if self._connection is None:
                self._connection = self._config.connect()
            row = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except (sqlite3.Error, NoStore, Unavailable) as error:
            _log.warning("the log of %s cannot be copied now: %s", self._config.path, error)
        else:
            pages = row[1]  # of the log; -1: the file has none
            written = pages - self._pages if pages >= self._pages else pages
            self._pages = pages
            fitting = self._interval * PAGES // max(written, 1)
            self._interval = max(1, min(fitting, 2 * self._interval, MAX_COMMITS))
        finally:
            self._lock.release()

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
