"""How a connection to a SQLite file is opened, by whom, and what it is told."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from memservice.domain.errors import ConfigurationError, NoStore, Unavailable
from memservice_sqlite import functions
from memservice_sqlite.deadline import TimedConnection

WAL_PAGES = 4_000
"""Pages (16 MB) after which a commit copies the log into the file itself, should nobody have been
idle enough to do it before."""
JOURNAL_BYTES = 64 * 2**20
"""A log that grew beyond this is cut back."""
STATEMENTS_KEPT = 512
"""Compiled statements that each connection keeps."""
IDLE_SECONDS = 1.0
"""Quiet for so long, the log is copied into the file."""


@dataclass(slots=True)
class _Opened:
    """The file that was opened first: device and inode. What has the name later may be another
    one."""

    identity: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """A database file and how to treat it."""

    path: Path
    lock_seconds: float = 5.0
    """How long to wait for another process's lock."""
    synchronous: str = "full"
    statement_seconds: float = 30.0
    """The longest a statement of a transaction may run that only reads."""
    _opened: _Opened = field(default_factory=_Opened, init=False, repr=False, compare=False)

    def create(self) -> None:
        """Make the file if there is none. Raises `Unavailable` if there was one, which this process
        works on."""
        if self._opened.identity is not None:
            self.require()
        if not self.path.exists():
            _make(self.path)
        if self.path.exists() and self.path.stat().st_size:
            return
        with closing(self._open("mode=rwc")) as timed_connection:
            # Only a file without tables can be told so. What is erased later can then be given back
            # piece by piece.
            timed_connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            self._use_wal(timed_connection)

    def connect(self) -> TimedConnection:
        """A new connection, without implicit transactions, usable from any one thread at a time.
        Never makes the file: `NoStore`.

        A file on a read-only file system can be read all the same, without locks and without a
        log."""
        before = self.require()
        read_only = cannot_change(self.path)
        if read_only:
            self._require_whole()
        timed_connection = self._open("mode=ro&immutable=1" if read_only else "mode=rw")
        try:
            if read_only:
                functions.install(timed_connection)
            else:
                self.configure(timed_connection)
            if before is not None and self._opened.identity is None:
                self._opened.identity = before
            self.require()
        except BaseException:
            timed_connection.close()
            raise
        return timed_connection

    def require(self) -> tuple[int, int] | None:
        """Which file has the name. Raises `NoStore` if none has, and `Unavailable` if it is not the
        one that this process opened: what is written to that one is lost. Takes microseconds. None
        where it cannot be told: opening it says why."""
        opened = self._opened.identity
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            if opened is not None:
                raise Unavailable(
                    f"the database {self.path} was deleted or moved while it was in use: "
                    "put it back, and restart"
                ) from None
            raise NoStore(
                f"There is no file {self.path}: check DB_CONNECTION_URI, or make a new "
                "store there with: memservice db upgrade"
            ) from None
        except OSError:
            return None
        identity = (found.st_dev, found.st_ino)
        if opened is not None and identity != opened:
            raise Unavailable(
                f"the database {self.path} was replaced by another file while it was in "
                "use: restart to use that one"
            )
        return identity

    def _open(self, query: str) -> TimedConnection:
        return sqlite3.connect(
            f"{self.path.absolute().as_uri()}?{query}",
            uri=True,
            timeout=self.lock_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=STATEMENTS_KEPT,
            factory=TimedConnection,
        )

    def configure(self, made: sqlite3.Connection) -> None:
        self._use_wal(made)
        made.execute(f"PRAGMA synchronous={'NORMAL' if self.synchronous == 'normal' else 'FULL'}")
        made.execute("PRAGMA foreign_keys=ON")
        made.execute("PRAGMA secure_delete=ON")  # what is erased is overwritten
        made.execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES}")
        made.execute(f"PRAGMA journal_size_limit={JOURNAL_BYTES}")
        functions.install(made)

    def _require_whole(self) -> None:
        """What is in the log beside a file cannot be read where SQLite cannot lay its index of the
        log beside them."""
        log = self.path.with_name(f"{self.path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise ConfigurationError(
                f"{self.path} lies on a read-only file system, and its latest changes are "
                f"in {log.name} and not in the file itself: "
                "copy both to a disk that can be written, and use the copy"
            )

    def _use_wal(self, made: sqlite3.Connection) -> None:
        """Switch the file to write-ahead logging, once in its life. SQLite does not wait for others
        who do the same."""
        deadline = time.monotonic() + self.lock_seconds
        while made.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                if made.execute("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
                    raise ConfigurationError(
                        f"{self.path} lies on a file system on which SQLite cannot share "
                        "it between processes (no write-ahead log there): "
                        "move it to a local disk."
                    )
            except sqlite3.OperationalError as error:
                if (
                    error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY
                    or time.monotonic() > deadline
                ):
                    raise
                time.sleep(0.01)


def cannot_change(path: Path) -> bool:
    """Does a file lie on a file system that is mounted read-only?"""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:  # there is no such file or folder, as SQLite will say
        return False


def _make(path: Path) -> None:
    """An empty file that only its owner may read; those that SQLite lays beside it get the same
    rights.

    Linked into its place, not opened there: closing a file would give up the locks that this
    process has on it.
    """
    # Where this does not work (no links on that file system, no right to write there), SQLite makes
    # the file, or says what is wrong.
    with suppress(OSError):
        number, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(number)
        try:
            os.link(part, path)
        finally:
            os.unlink(part)


class Watch:
    """Tells a process's threads whether the file changed since they last asked. Also copies the log
    when nothing changes."""

    def __init__(self, config: ConnectionConfig) -> None:
        self._place = config
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


class WriterLock:
    """One writer at a time within a process: a thread that waits here is woken at once, one that
    waits for SQLite's lock polls."""

    def __init__(self, seconds: float) -> None:
        self.pid = os.getpid()
        self._seconds = seconds
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=self._seconds):
            raise Unavailable(
                "the database stayed locked by other writes of this process for "
                f"{self._seconds:g} s"
            )

    def __exit__(self, *_: object) -> None:
        self._lock.release()
