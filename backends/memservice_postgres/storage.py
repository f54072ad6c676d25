"""The storage in a PostgreSQL database, and how it is opened."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from memservice.domain.errors import SchemaVersionError
from memservice.spi.capabilities import Capability
from memservice.spi.storage import Finding
from memservice_postgres import health, vector_schema
from memservice_postgres.connections import ConnectionConfig, config_of, driver_of
from memservice_postgres.dialect import PostgresDialect, sqlalchemy_dialect
from memservice_postgres.notifier import Notifier
from memservice_postgres.text import PostgresTextIndex
from memservice_postgres.vector_indexes import SpaceIndexes
from memservice_sql.storage import SqlStorage

if TYPE_CHECKING:
    from memservice.spi.providers import Settings
    from memservice.spi.vectors import VectorIndex

CAPABILITIES = frozenset({Capability.SHARED})


class PostgresStorage(SqlStorage):
    name = "postgres"
    capabilities = CAPABILITIES
    attempts_at_taken = 8
    """Concurrent writers can conflict in several rows one after the other: the workspace, the
    session, each peer."""

    def __init__(
        self,
        config: ConnectionConfig,
        dialect: PostgresDialect,
        log: logging.Logger,
        indexes: SpaceIndexes | None,
    ) -> None:
        """`indexes`: None if vectors are stored elsewhere."""
        super().__init__(dialect, sqlalchemy_dialect, config.name)
        self._require_unicode = dialect.require_unicode
        self._max_connections = dialect.max_connections
        self._log = log
        self._pooler_reported = False
        self.text = PostgresTextIndex()
        self._notifier = Notifier(config, super().announce, log)
        self._indexes = indexes

    if TYPE_CHECKING:
        vectors: VectorIndex | None
    else:
        # Imports numpy at the first use of vectors.
        @cached_property
        def vectors(self) -> VectorIndex | None:
            if self._indexes is None:
                return None
            from memservice_postgres.vectors import PostgresVectorIndex

            return PostgresVectorIndex(self._indexes)

    def check(self) -> None:
        self._report_pooler()
        try:
            super().check()
        except SchemaVersionError:
            # Report the encoding first: an upgrade would not make this database usable.
            with self.translated(), self.engine.connect() as connection:
                self._require_unicode(driver_of(connection))
            raise
        if self._indexes is not None:
            with (
                self.translated(),
                self.engine.connect() as connection,
                self._dialect.transaction(connection, writing=False),
            ):
                if not vector_schema.exists(driver_of(connection)):
                    raise SchemaVersionError(
                        f"The database {self._location} has no table for vectors yet. Create "
                        "it with: memservice db upgrade"
                    )

    def migrate(self) -> None:
        super().migrate()
        if self._indexes is None:
            return
        with self.translated(), self.engine.connect() as connection:
            driver = driver_of(connection)
            with self._dialect.transaction(connection, writing=False):
                missing = not vector_schema.exists(driver)
            if missing:
                with self._dialect.migration(connection):
                    vector_schema.ensure(driver, self._location)

    def examine(self, *, thorough: bool = False) -> Sequence[Finding]:
        with self._noticing(), self.translated(), self.engine.connect() as connection:
            with self._dialect.transaction(connection, writing=False):
                driver = driver_of(connection)
                findings = [*health.writable(driver)]
                if thorough:
                    findings += [*health.pooler(driver, self._location), *health.checksums(driver)]
                    findings += health.connections(driver, self._max_connections)
        return (
            findings
            if any(finding.state == "failed" for finding in findings)
            else [*super().examine(thorough=thorough), *findings]
        )

    def _report_pooler(self) -> None:
        if self._pooler_reported:
            return
        with self.translated(), self.engine.connect() as connection:
            for finding in health.pooler(driver_of(connection), self._location):
                self._log.warning("%s; %s", finding.found, finding.advice)
        self._pooler_reported = True

    def announce(self) -> None:
        super().announce()
        self._notifier.notify()

    def wait_for_work(self, timeout: float) -> bool:
        self._notifier.listen()
        return super().wait_for_work(timeout)

    def close(self) -> None:
        self._notifier.close()
        super().close()


def config_of_settings(settings: Settings) -> ConnectionConfig:
    """`settings` as `PostgresSettings` loads them."""
    return config_of(
        settings["uri"],
        schema=settings["schema"],
        connect_seconds=settings["connect_timeout_seconds"],
        lock_seconds=settings["pool_timeout"],
        statement_seconds=settings["statement_timeout_seconds"],
        durable=settings["synchronous"] != "normal",
        prepares=settings["prepared_statements"],
    )


def open_storage(settings: Settings, log: logging.Logger) -> PostgresStorage:
    """`settings` as `PostgresSettings` loads them. Does not connect yet."""
    options: dict[str, Any] = dict(settings)
    config = config_of_settings(settings)
    dialect = PostgresDialect(
        config,
        pool_size=options["pool_size"],
        max_overflow=options["max_overflow"],
        recycle=options["pool_recycle"],
        lifo=options["pool_use_lifo"],
        pre_ping=options["pool_pre_ping"],
        pooled=options["pool_class"] != "null",
    )
    indexes = (
        SpaceIndexes(
            config, log, half=options["half_precision"], max_memory_mb=options["index_memory_mb"]
        )
        if options["vectors"]
        else None
    )
    return PostgresStorage(config, dialect, log, indexes)
