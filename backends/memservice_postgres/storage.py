"""Opening the storage: its database, and what lives in it."""

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
from memservice_postgres.dialect import PostgresDialect, described
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
    """Writers that run at once meet in one row after the other: the workspace, the session, each
    peer."""

    def __init__(
        self,
        config: ConnectionConfig,
        dialect: PostgresDialect,
        log: logging.Logger,
        indexes: SpaceIndexes | None,
    ) -> None:
        """`indexes`: None if vectors are kept elsewhere."""
        super().__init__(dialect, described, config.name)
        self._require_unicode = dialect.require_unicode
        self._own_connections = dialect.most_connections
        self._log = log
        self._told_of_pooler = False
        self.text = PostgresTextIndex()
        self._notifier = Notifier(config, super().announce, log)
        self._indexes = indexes

    if TYPE_CHECKING:
        vectors: VectorIndex | None
    else:
        # numpy is imported by the first who asks for vectors.
        @cached_property
        def vectors(self) -> VectorIndex | None:
            if self._indexes is None:
                return None
            from memservice_postgres.vectors import PostgresVectorIndex

            return PostgresVectorIndex(self._indexes)

    def check(self) -> None:
        self._tell_of_pooler()
        try:
            super().check()
        except SchemaVersionError:
            # No use in upgrading a database that cannot be used.
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
                        f"The database {self._place} has no table of vectors yet. Create "
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
                    vector_schema.ensure(driver, self._place)

    def examine(self, *, thorough: bool = False) -> Sequence[Finding]:
        with self._noticing(), self.translated(), self.engine.connect() as connection:
            with self._dialect.transaction(connection, writing=False):
                driver = driver_of(connection)
                findings = [*health.writable(driver)]
                if thorough:
                    findings += [*health.pooler(driver, self._place), *health.checksums(driver)]
                    findings += health.connections(driver, self._own_connections)
        return (
            findings
            if any(finding.state == "failed" for finding in findings)
            else [*super().examine(thorough=thorough), *findings]
        )

    def _tell_of_pooler(self) -> None:
        if self._told_of_pooler:
            return
        with self.translated(), self.engine.connect() as connection:
            for finding in health.pooler(driver_of(connection), self._place):
                self._log.warning("%s; %s", finding.found, finding.advice)
        self._told_of_pooler = True

    def announce(self) -> None:
        super().announce()
        self._notifier.notify()

    def wait_for_work(self, timeout: float) -> bool:
        self._notifier.listen()
        return super().wait_for_work(timeout)

    def close(self) -> None:
        self._notifier.close()
        super().close()


def open_storage(settings: Settings, log: logging.Logger) -> PostgresStorage:
    """`settings` as `PostgresSettings` loads them. Connects to nothing yet."""
    given: dict[str, Any] = dict(settings)
    config = config_of(
        given["uri"],
        schema=given["schema"],
        connect_seconds=given["connect_timeout_seconds"],
        lock_seconds=given["pool_timeout"],
        statement_seconds=given["statement_timeout_seconds"],
        durable=given["synchronous"] != "normal",
        prepares=given["prepared_statements"],
    )
    dialect = PostgresDialect(
        config,
        pool_size=given["pool_size"],
        max_overflow=given["max_overflow"],
        recycle=given["pool_recycle"],
        lifo=given["pool_use_lifo"],
        pre_ping=given["pool_pre_ping"],
        pooled=given["pool_class"] != "null",
    )
    indexes = (
        SpaceIndexes(
            config, log, half=given["half_precision"], most_memory_mb=given["index_memory_mb"]
        )
        if given["vectors"]
        else None
    )
    return PostgresStorage(config, dialect, log, indexes)
