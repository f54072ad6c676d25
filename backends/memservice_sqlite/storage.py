"""The storage in a SQLite file, and how it is opened."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from memservice.domain.errors import ConfigurationError
from memservice.spi.base import RESTORE
from memservice.spi.capabilities import Capability
from memservice.spi.storage import Finding
from memservice_sql.storage import SqlStorage
from memservice_sqlite import json_text
from memservice_sqlite.connections import ConnectionConfig
from memservice_sqlite.dialect import Compiling, SqliteDialect
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
        sqlalchemy_dialect = Compiling(
            json_serializer=json_text.write, json_deserializer=json_text.read
        )
        super().__init__(dialect, sqlalchemy_dialect, str(config.path))
        self._sqlite_dialect = dialect
        self._config = config
        self._texts = SqliteTextIndex()
        self.text = self._texts

    def check(self) -> None:
        self._config.require()
        super().check()

    def migrate(self) -> None:
        with self.translated():
            self._config.create()
        super().migrate()

    def examine(self, *, thorough: bool = False) -> Sequence[Finding]:
        findings = list(super().examine(thorough=thorough))
        if not findings:
            self._sweep()
        if thorough and not findings:
            with self._noticing(), self.translated(), self.engine.connect() as connection:
                damage = self._sqlite_dialect.damage(connection)
            if damage:
                findings.append(
                    Finding(
                        "failed",
                        f"the database {self._location} is damaged ({'; '.join(damage)})",
                        RESTORE,
                    )
                )
        return findings

    def _sweep(self) -> None:
        """Free the texts that were not searched lately, and the cached vectors of spaces that other
        processes deleted. This process gets no notice of them, so it checks at each health
        check."""
        self._texts.sweep()
        vectors = self.__dict__.get("vectors")
        if vectors is not None:
            with self.read() as tx:
                vectors.sweep(tx)

    def reclaim(self, *, thorough: bool = False, erasure: bool = False) -> bool:
        with self._noticing(), self.translated(), self.engine.connect() as connection:
            return self._sqlite_dialect.reclaim(connection, thorough=thorough, erasure=erasure)

    def changed_elsewhere(self) -> bool:
        with self.translated():
            return self._sqlite_dialect.changed_elsewhere()

    if TYPE_CHECKING:
        vectors: VectorIndex | None
    else:
        # Imports numpy at the first use of vectors.
        @cached_property
        def vectors(self) -> VectorIndex:
            from memservice_sqlite.vectors import SqliteVectorIndex

            return SqliteVectorIndex()


def file_of(uri: str) -> Path:
    """The absolute path of the file that `uri` names. Raises `ConfigurationError` with an example
    of a valid URI."""
    try:
        url = make_url(uri)
    except ArgumentError as error:
        raise ConfigurationError(
            f"{uri!r} is not a URI; write sqlite:///memory.db or sqlite:////var/lib/memory.db"
        ) from error
    if not url.database or url.database.startswith((":memory:", "file:")):
        raise ConfigurationError(
            f"{uri!r} names no file. The server and its worker are separate processes that "
            "share one file: write sqlite:///memory.db (in the "
            "working directory) or sqlite:////var/lib/memory.db (absolute), or memory:// "
            "for a single process without persistence."
        )
    if url.query:
        raise ConfigurationError(
            f"{uri!r} has options ({', '.join(url.query)}), but a SQLite URI takes none; "
            "use the DB_ settings"
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


def config_of(settings: Settings) -> ConnectionConfig:
    """`settings` as `SqliteSettings` loads them."""
    return ConnectionConfig(
        file_of(settings["uri"]),
        settings["pool_timeout"],
        settings["synchronous"],
        settings["statement_timeout_seconds"],
    )


def open_storage(settings: Settings) -> SqliteStorage:
    """`settings` as `SqliteSettings` loads them."""
    options: dict[str, Any] = dict(settings)
    config = config_of(settings)
    pooled = options["pool_class"] != "null"
    return SqliteStorage(
        config,
        SqliteDialect(
            config,
            pool_size=options["pool_size"],
            max_overflow=options["max_overflow"],
            pooled=pooled,
        ),
    )
