"""Opening the storage: its place, and what lives in it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from memservice.domain.errors import ConfigurationError
from memservice.spi.base import RESTORE
from memservice.spi.capabilities import Capability
from memservice.spi.storage import Finding
from memservice_sql.storage import SqlStorage
from memservice_sqlite import json_text
from memservice_sqlite.connections import ConnectionConfig
from memservice_sqlite.dialect import SqliteDialect
from memservice_sqlite.text import SqliteTextIndex

if TYPE_CHECKING:
    from memservice.spi.providers import Settings
    from memservice.spi.vectors import VectorIndex

CAPABILITIES = frozenset({Capability.SHARED})


class SqliteStorage(SqlStorage):
    name = "sqlite"
    capabilities = CAPABILITIES
    poll_seconds = 0.05

    def __init__(self, config: ConnectionConfig, dialect: SqliteDialect) -> None:
        described = SQLiteDialect_pysqlite(
            json_serializer=json_text.write, json_deserializer=json_text.read
        )
        super().__init__(dialect, described, str(config.path))
        self._watched = dialect
        self._file = config
        self.text = SqliteTextIndex()

    def check(self) -> None:
        self._file.require()
        super().check()

    def migrate(self) -> None:
        with self.translated():
            self._file.create()
        super().migrate()

    def examine(self, *, thorough: bool = False) -> Sequence[Finding]:
        findings = list(super().examine(thorough=thorough))
        if not findings:
            self._sweep()
        if thorough and not findings:
            with self._noticing(), self.translated(), self.engine.connect() as connection:
                damage = self._watched.damage(connection)
            if damage:
                findings.append(
                    Finding(
                        "failed",
                        f"the database {self._place} is damaged ({'; '.join(damage)})",
                        RESTORE,
                    )
                )
        return findings

    def _sweep(self) -> None:
        """Of vectors that were deleted by another process this one is not told; it looks when it is
        looked at."""
        held = self.__dict__.get("vectors")
        if held is not None:
            with self.read() as tx:
                held.sweep(tx)

    def reclaim(self, *, thorough: bool = False) -> bool:
        with self._noticing(), self.translated(), self.engine.connect() as connection:
            return self._watched.reclaim(connection, thorough=thorough)

    def changed_elsewhere(self) -> bool:
        with self.translated():
            return self._watched.changed_elsewhere()

    if TYPE_CHECKING:
        vectors: VectorIndex | None
    else:
        # numpy is imported by the first who asks for vectors.
        @cached_property
        def vectors(self) -> VectorIndex:
            from memservice_sqlite.vectors import SqliteVectorIndex

            return SqliteVectorIndex()


def file_of(uri: str) -> Path:
    """The absolute path of the file that `uri` names. Raises `ConfigurationError`, saying what to
    write instead."""
    try:
        url = make_url(uri)
    except ArgumentError as error:
        raise ConfigurationError(
            f"{uri!r} is no URI; write sqlite:///memory.db or sqlite:////var/lib/memory.db"
        ) from error
    if not url.database or url.database.startswith((":memory:", "file:")):
        raise ConfigurationError(
            f"{uri!r} names no file. The server and its worker are several processes and "
            "share one: write sqlite:///memory.db (in the "
            "working directory) or sqlite:////var/lib/memory.db (absolute), or memory:// "
            "for a single process that keeps nothing."
        )
    if url.query:
        raise ConfigurationError(
            f"{uri!r} has options ({', '.join(url.query)}), which SQLite databases do not "
            "take; see the DB_ settings"
        )
    path = Path(url.database).absolute()
    if not path.parent.is_dir():
        raise ConfigurationError(
            f"The directory of the database {path} does not exist. Create it with: mkdir "
            f"-p {path.parent}"
        )
    if path.is_dir():
        raise ConfigurationError(
            f"{path} is a directory; name a file in it, for instance sqlite:///{path}/memservice.db"
        )
    return path


def open_storage(settings: Settings) -> SqliteStorage:
    """`settings` as `SqliteSettings` loads them."""
    given: dict[str, Any] = dict(settings)
    config = ConnectionConfig(
        file_of(given["uri"]),
        given["pool_timeout"],
        given["synchronous"],
        given["statement_timeout_seconds"],
    )
    pooled = given["pool_class"] != "null"
    return SqliteStorage(
        config,
        SqliteDialect(
            config, pool_size=given["pool_size"], max_overflow=given["max_overflow"], pooled=pooled
        ),
    )
