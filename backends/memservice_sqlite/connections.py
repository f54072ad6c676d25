"""Connections to a SQLite file: opening and configuration."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from memservice.domain.errors import ConfigurationError, NoStore, Unavailable
from memservice_sqlite import functions
from memservice_sqlite.deadline import TimedConnection

WAL_PAGES = 4_000
"""Pages (16 MB) after which a commit copies the log into the database file, if no idle process has
done so before."""
JOURNAL_BYTES = 64 * 2**20
"""A log larger than this is truncated to it."""
CACHED_STATEMENTS = 512
"""Compiled statements that each connection caches."""
IDLE_SECONDS = 1.0
"""After this time without a commit the log is copied into the database file."""


class _Opened(Struct):
    """Device and inode of the file that was opened first. A later file of the same name may be
    another one."""

    identity: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """A database file and how to treat it."""

    path: Path
    lock_seconds: float = 5.0
    """How long to wait for another process's lock."""
    synchronous: str = "full"
    statement_seconds: float = 30.0
    """Timeout of a statement in a read-only transaction."""
    _opened: _Opened = field(default_factory=_Opened, init=False, repr=False, compare=False)

    def create(self) -> None:
        """Create the file if it does not exist. Raises `Unavailable` if this process had opened it
        and it was deleted."""
        if self._opened.identity is not None:
            self.require()
        if not self.path.exists():
            _make(self.path)
        if self.path.exists() and self.path.stat().st_size:
            return
        with closing(self._open("mode=rwc")) as connection:
            # Only possible in a file without tables. Lets free pages be returned to the file system
            # step by step.
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            self._use_wal(connection)

    def connect(self) -> TimedConnection:
        """A new connection without implicit transactions, usable from any one thread at a time.
        Raises `NoStore` if the file does not exist.

        A file on a read-only file system is opened for reading, without locks and without a
        log."""
        identity = self.require()
        read_only = cannot_change(self.path)
        if read_only:
            self._require_whole()
        connection = self._open("mode=ro&immutable=1" if read_only else "mode=rw")
        try:
            if read_only:
                functions.install(connection)
            else:
                self.configure(connection)
            if identity is not None and self._opened.identity is None:
                self._opened.identity = identity
            self.require()
        except BaseException:
            connection.close()
            raise
        return connection

    def require(self) -> tuple[int, int] | None:
        """Device and inode of the file. Raises `NoStore` if it does not exist, and `Unavailable` if
        it is not the file that this process opened, since writes to that one are lost. Takes
        microseconds. None if they cannot be read: opening the file reports why."""
        opened = self._opened.identity
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            if opened is not None:
                raise Unavailable(
                    f"the database {self.path} was deleted or moved while it was in use: "
                    "put it back, and restart"
                ) from None
            raise NoStore(
                f"There is no file {self.path}: check DB_CONNECTION_URI, or create a new "
                "store there with: memservice db upgrade"
            ) from None
        except OSError:
            return None
        identity = (status.st_dev, status.st_ino)
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
            cached_statements=CACHED_STATEMENTS,
            factory=TimedConnection,
        )

    def configure(self, connection: sqlite3.Connection) -> None:
        self._use_wal(connection)
        connection.execute(
            f"PRAGMA synchronous={'NORMAL' if self.synchronous == 'normal' else 'FULL'}"
        )
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA secure_delete=ON")  # overwrites deleted content
        connection.execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit={JOURNAL_BYTES}")
        functions.install(connection)

    def _require_whole(self) -> None:
        """Raise `ConfigurationError` if there is a log with changes. SQLite cannot read it, because
        it cannot create its index of the log on a read-only file system."""
        log = self.path.with_name(f"{self.path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise ConfigurationError(
                f"{self.path} is on a read-only file system, and its latest changes are "
                f"in {log.name} and not in the file itself: "
                "copy both to a writable disk, and use the copy"
            )

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Switch the file to write-ahead logging, which is needed once per file. Retries, because
        SQLite does not wait for another process that does the same."""
        deadline = time.monotonic() + self.lock_seconds
        while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                if connection.execute("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
                    raise ConfigurationError(
                        f"{self.path} is on a file system where SQLite cannot share "
                        "it between processes (it does not support a write-ahead log): "
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
    """Whether the path is on a file system that is mounted read-only."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:  # the path does not exist; SQLite reports that
        return False


def _make(path: Path) -> None:
    """Create an empty file that only its owner may read. SQLite gives its log and index files the
    same permissions.

    The file is created under another name and linked, not opened at `path`: closing a file releases
    the locks that this process has on it.
    """
    # If this fails (no links on that file system, no permission to write there), SQLite creates the
    # file, or reports the error.
    with suppress(OSError):
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(descriptor)
        try:
            os.link(temporary, path)
        finally:
            os.unlink(temporary)


class Watch:
    """Detects commits of other connections, for each thread since its previous call. Also copies
    the log into the file when there are no commits."""

    def __init__(self, config: ConnectionConfig) -> None:
        self._config = config
        self._thread_state = threading.local()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._version = -1
        self._changed_at = 0.0
        self._copied = True
        self.pid = os.getpid()

    def changed(self) -> bool:
        with self._lock:
            version = self._look()
        last_version = getattr(self._thread_state, "last_version", version)
        self._thread_state.last_version = version
        return bool(last_version != version)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _look(self) -> int:
        if self._connection is None:
            self._connection = self._config.connect()
        # SQLite changes this number when another connection in any process commits.
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        now = time.monotonic()
        if version != self._version:
            self._version, self._changed_at, self._copied = version, now, False
        elif not self._copied and now - self._changed_at >= IDLE_SECONDS:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            self._copied = True
        return version
