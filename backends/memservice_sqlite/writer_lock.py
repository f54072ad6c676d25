"""The order of writers. SQLite admits one at a time, but in no order: a waiting process polls less
and less often, so one that writes without a pause could keep all others waiting.

These locks give turns only. What is written is guarded by SQLite's own lock.
"""

from __future__ import annotations

import fcntl
import os
import stat
import threading
import time
from pathlib import Path

from memservice.domain.errors import Unavailable
from memservice.spi.fair_locks import FairLocks
from memservice_sqlite import connections

SUFFIX = "-lock"
"""Of the name of the empty file beside the database whose bytes are locked."""
NEXT, WRITER = 0, 1
"""The byte that is locked by the process whose turn is next, and by the one that writes."""
MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.0001, 0.002
"""Between two attempts: short at first, because most transactions are."""


class WriterLock:
    """One writer at a time. The threads of a process wait for each other, and are woken at once;
    then the process waits for its turn among all processes with this database.

    A writer holds the next turn until it may write, so a process that has just written cannot write
    again before it."""

    def __init__(self, database: Path, seconds: float) -> None:
        """`seconds`: how long to wait for a turn."""
        self.pid = os.getpid()
        self._database = database
        self._path = database.with_name(f"{database.name}{SUFFIX}")
        self._seconds = seconds
        self._threads = FairLocks()
        self._file: int | None = None

    def __enter__(self) -> None:
        deadline = time.monotonic() + self._seconds
        if not self._threads.acquire(WRITER, self._seconds):
            raise Unavailable(
                "the database stayed locked by other writes of this process for "
                f"{self._seconds:g} s"
            )
        try:
            self._wait_for_turn(deadline)
        except BaseException:
            self._threads.release(WRITER)
            raise

    def __exit__(self, *_: object) -> None:
        try:
            if self._file is not None:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, WRITER)
        finally:
            self._threads.release(WRITER)

    def close(self) -> None:
        """Removes the file unless another process writes, or waits for its turn."""
        self._threads.acquire(WRITER, threading.TIMEOUT_MAX)
        try:
            if self._file is not None:
                self._close(self._file)
        finally:
            self._file = None
            self._threads.release(WRITER)

    def _close(self, file: int) -> None:
        try:
            now = time.monotonic()
            is_unused = _lock(file, NEXT, now) and _lock(file, WRITER, now)
            if is_unused and os.fstat(file).st_nlink:
                self._path.unlink(missing_ok=True)
        except OSError:
            pass  # a file that is left does no harm: the next process uses it
        finally:
            os.close(file)

    def _wait_for_turn(self, deadline: float) -> None:
        """Returns without a turn at the deadline, or if the file cannot be locked: SQLite's lock
        then decides, which also waits for programs that are not ours."""
        while True:
            if self._file is None:
                self._file = self._open()
            if self._file is None or not _lock(self._file, NEXT, deadline):
                return
            if os.fstat(self._file).st_nlink:
                break
            os.close(self._file)  # removed by a process that has ended; others use a new file
            self._file = None
        try:
            _lock(self._file, WRITER, deadline)
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, NEXT)

    def _open(self) -> int | None:
        """None: the file system cannot be written to or has no locks, or this process may not open
        the file."""
        if connections.cannot_change(self._database):
            return None
        try:
            file = _created(self._path, os.stat(self._database))
        except OSError:
            return None
        try:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, NEXT)
        except OSError:
            os.close(file)
            return None
        return file


def _created(path: Path, database: os.stat_result) -> int:
    """The open file, which everyone may write to who may write to the database."""
    flags = os.O_RDWR | os.O_CLOEXEC
    try:
        file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, flags)
    os.fchmod(file, stat.S_IMODE(database.st_mode))
    if os.geteuid() == 0:
        os.fchown(file, database.st_uid, database.st_gid)
    return file


def _lock(file: int, byte: int, deadline: float) -> bool:
    """Whether the byte was locked before the deadline."""
    pause = MIN_PAUSE_SECONDS
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):  # another process has locked it
            if time.monotonic() + pause > deadline:
                return False
            time.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)
        else:
            return True
