"""How a connection to a SQLite file is opened, by whom, and what it is told."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memservice.domain.errors import ConfigurationError, Unavailable
from memservice_sqlite import functions

WAL_PAGES = 4_000
"""Pages (16 MB) after which a commit copies the log into the file itself, should nobody have been idle enough to do it before."""
JOURNAL_BYTES = 64 * 2**20
"""A log that grew beyond this is cut back."""
STATEMENTS_KEPT = 512
"""Compiled statements that each connection keeps."""
IDLE_SECONDS = 1.0
"""Quiet for so long, the log is copied into the file."""


@dataclass(frozen=True, slots=True)
class Place:
    """A database file and how to treat it."""

    path: Path
    lock_seconds: float = 5.0
    """How long to wait for another process's lock."""
    synchronous: str = "full"

    def connect(self) -> sqlite3.Connection:
        """A new connection, without implicit transactions, usable from any one thread at a time."""
        if not self.path.exists():
            _make(self.path)
        for_ever = cannot_change(self.path)
        if for_ever:
            self._require_whole()
        made = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode=ro&immutable=1" if for_ever else self.path,
            timeout=self.lock_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=STATEMENTS_KEPT,
            uri=for_ever,
        )
        try:
            if for_ever:
                functions.install(made)
            else:
                self.configure(made)
        except BaseException:
            made.close()
            raise
        return made

    def configure(self, made: sqlite3.Connection) -> None:
        self._use_wal(made)
        made.execute(f"PRAGMA synchronous={'NORMAL' if self.synchronous == 'normal' else 'FULL'}")
        made.execute("PRAGMA foreign_keys=ON")
        made.execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES}")
        made.execute(f"PRAGMA journal_size_limit={JOURNAL_BYTES}")
        functions.install(made)

    def _require_whole(self) -> None:
        """What is in the log beside a file cannot be read where SQLite cannot lay its index of the log beside them."""
        log = self.path.with_name(f"{self.path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise ConfigurationError(
                f"{self.path} lies on a read-only file system, and its latest changes are in {log.name} and not in the file itself: "
                "copy both to a disk that can be written, and use the copy"
            )

    def _use_wal(self, made: sqlite3.Connection) -> None:
        """Switch the file to write-ahead logging, once in its life. SQLite does not wait for others who do the same."""
        deadline = time.monotonic() + self.lock_seconds
        while made.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                if made.execute("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
                    raise ConfigurationError(
                        f"{self.path} lies on a file system on which SQLite cannot share it between processes (no write-ahead log there): "
                        "move it to a local disk."
                    )
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


def cannot_change(path: Path) -> bool:
    """Does a file lie on a file system that is mounted read-only? Then it can be read all the same, without locks and without a log."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:  # there is no such file or folder, as SQLite will say
        return False


def _make(path: Path) -> None:
    """An empty file that only its owner may read; those that SQLite lays beside it get the same rights.

    Linked into its place, not opened there: closing a file would give up the locks that this process has on it.
    """
    # Where this does not work (no links on that file system, no right to write there), SQLite makes the file, or says what is wrong.
    with suppress(OSError):
        number, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(number)
        try:
            os.link(part, path)
        finally:
            os.unlink(part)


class Watch:
    """Tells a process's threads whether the file changed since they last asked. Also copies the log when nothing changes."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._mine = threading.local()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._version = -1
        self._changed_at = 0.0
        self._copied = True
        self.pid = os.getpid()

    def changed(self) -> bool:
        with self._lock:
            version = self._look()
        seen = getattr(self._mine, "seen", version)
        self._mine.seen = version
        return bool(seen != version)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _look(self) -> int:
        if self._connection is None:
            self._connection = self._place.connect()
        # A number that SQLite changes when another connection, in whichever process, commits.
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        now = time.monotonic()
        if version != self._version:
            self._version, self._changed_at, self._copied = version, now, False
        elif not self._copied and now - self._changed_at >= IDLE_SECONDS:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            self._copied = True
        return version


class Turns:
    """One writer at a time within a process: a thread that waits here is woken at once, one that waits for SQLite's lock polls."""

    def __init__(self, seconds: float) -> None:
        self.pid = os.getpid()
        self._seconds = seconds
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=self._seconds):
            raise Unavailable(f"the database stayed locked by other writes of this process for {self._seconds:g} s")

    def __exit__(self, *_: object) -> None:
        self._lock.release()
