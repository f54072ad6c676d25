"""Backups of a file: a copy by SQLite itself, from one read transaction.

Other processes may write meanwhile. SQLite would start a copy again after each of their commits;
the open transaction keeps the copy at one state. The write-ahead log cannot be emptied until it
ends, so it grows by what is written during the backup.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import sqlalchemy as sa

from memservice.domain.errors import ConfigurationError, Conflict, Damaged, SchemaVersionError
from memservice.spi.backups import BackupReport, Progress
from memservice_sql import new_files
from memservice_sql.schema_version import HISTORY, newer_schema_message
from memservice_sql.tables import metadata
from memservice_sqlite import functions
from memservice_sqlite.connections import ConnectionConfig
from memservice_sqlite.dialect import MAX_DAMAGE_MESSAGES, SqliteDialect

MAGIC = b"SQLite format 3\0"
PAGES = 1_000
"""Pages (4 MB) that are copied before the next call of the progress function."""
LOCK_SECONDS = 1.0


class SqliteBackups:
    """`memservice.spi.backups.Backups` of one file."""

    def __init__(self, config: ConnectionConfig) -> None:
        self._config = config

    def save(self, file: Path, progress: Progress) -> BackupReport:
        if file.exists() and self._config.path.exists() and file.samefile(self._config.path):
            raise ConfigurationError(f"{file} is the store itself: name another file")
        with _errors_of(self._config.path), closing(self._config.connect()) as source:
            source.execute("BEGIN")
            version, rows = _version(source), _counts(source)
            if version is None:
                raise SchemaVersionError(
                    f"The database {self._config.path} has no tables: there is nothing to back up"
                )
            with new_files.replacing(file) as part:
                with _full_disk_of(file):
                    _copy(source, part, progress, "saving")
                source.execute("ROLLBACK")
                _require_same(_verified(part, file), BackupReport(version, rows), file)
        return BackupReport(version, rows)

    def restore(self, file: Path, progress: Progress, *, replace: bool) -> BackupReport:
        target = self._config.path
        if not replace and target.exists() and target.stat().st_size:
            raise Conflict(
                f"there is a store already at {target}: name another one in DB_CONNECTION_URI, or "
                "replace it with --force"
            )
        with _reading(file) as source, new_files.replacing(target) as part:
            with _errors_of(file):
                version, rows = _version(source), _counts(source)
                if version is None:
                    raise ConfigurationError(
                        f"{file} is not a backup of memservice: it has no schema version"
                    )
                if version not in HISTORY:
                    raise SchemaVersionError(newer_schema_message(version, str(file)))
                with _full_disk_of(target):
                    _copy(source, part, progress, "restoring")
                _require_same(_verified(part, file), BackupReport(version, rows), file)
            if target.exists():
                _keep_rights(target, part)
                _close_log(target)
        return BackupReport(version, rows)


def _copy(source: sqlite3.Connection, part: Path, progress: Progress, step: str) -> None:
    with closing(sqlite3.connect(part, isolation_level=None)) as target:
        source.backup(
            target,
            pages=PAGES,
            progress=lambda _, remaining, total: progress(step, total - remaining, total),
        )
        # One file without a log, which can be copied and read from any medium.
        target.execute("PRAGMA journal_mode=DELETE")


def _verified(part: Path, file: Path) -> BackupReport:
    """What is in a copy. Raises `Damaged`, which names `file`."""
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        functions.install(connection)
        errors = [
            str(message)
            for (message,) in connection.execute(f"PRAGMA integrity_check({MAX_DAMAGE_MESSAGES})")
            if message != "ok"
        ]
        if errors:
            raise Damaged(f"{file} is damaged ({'; '.join(errors)}); nothing was changed")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO text_index (text_index) VALUES ('integrity-check')")
        connection.execute("ROLLBACK")
        return BackupReport(_version(connection) or "", _counts(connection))


def _require_same(copied: BackupReport, original: BackupReport, file: Path) -> None:
    if copied != original:
        raise Damaged(f"{file} does not have the rows of its source; nothing was changed")


def _version(connection: sqlite3.Connection) -> str | None:
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return None
    return None if row is None else str(row[0])


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Rows of each table of rows. An older schema lacks some."""
    existing = {
        name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
    }
    return {
        name: connection.execute(str(sa.select(sa.func.count()).select_from(table))).fetchone()[0]
        for name, table in sorted(metadata.tables.items())
        if name in existing
    }


@contextmanager
def _reading(file: Path) -> Iterator[sqlite3.Connection]:
    """A backup, which may be on a read-only medium."""
    with file.open("rb") as opened:
        if opened.read(len(MAGIC)) != MAGIC:
            raise ConfigurationError(
                f"{file} is not a backup of this storage, which is a SQLite database. Name the "
                "storage that it was made of in DB_CONNECTION_URI; to move to another kind of "
                "storage, use `memservice copy`"
            )
    log = file.with_name(f"{file.name}-wal")
    if log.exists() and log.stat().st_size:
        raise ConfigurationError(
            f"{file} is not a backup but a database in use: changes are in {log.name}. Make a "
            "backup of it with `memservice backup`"
        )
    uri = f"{file.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        yield connection


def _keep_rights(target: Path, part: Path) -> None:
    """Give the new file the rights of the one that it replaces."""
    status = target.stat()
    os.chmod(part, status.st_mode & 0o777)
    if os.geteuid() == 0:
        os.chown(part, status.st_uid, status.st_gid)


def _close_log(target: Path) -> None:
    """Remove the log of the file that is replaced: SQLite would apply it to the new file. Raises
    `Conflict` if a process has the file open, even if it only waits."""
    uri = f"{target.absolute().as_uri()}?mode=rw"
    with closing(
        sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS, isolation_level=None)
    ) as connection:
        try:
            # SQLite changes the mode only for the last connection.
            connection.execute("PRAGMA journal_mode=DELETE").fetchone()
        except sqlite3.DatabaseError as error:
            code = error.sqlite_errorcode & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise Conflict(
                    f"the store {target} is in use: stop its servers and workers first"
                ) from error
            if code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise
            # A damaged store may be why it is restored.
    for end in ("-wal", "-shm"):
        target.with_name(f"{target.name}{end}").unlink(missing_ok=True)


@contextmanager
def _full_disk_of(target: Path) -> Iterator[None]:
    """Only the file that is written can find no space."""
    try:
        yield
    except sqlite3.Error as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_FULL:
            raise
        raise ConfigurationError(
            f"{target} cannot be written: no space left on its disk; nothing was changed"
        ) from error


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    """Translate the driver's errors, which then name `path`."""
    try:
        yield
    except sqlite3.Error as error:
        meaning = SqliteDialect(ConnectionConfig(path)).translate(error)
        if meaning is None:
            raise
        raise meaning from error
