"""The storage in a PostgreSQL database, and how it is opened."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa

from memservice.domain.errors import SchemaVersionError
from memservice.spi.capabilities import Capability
from memservice.spi.storage import Finding, ReplicaReads, Transaction
from memservice_postgres import health, vector_schema
from memservice_postgres.connections import ConnectionConfig, config_of, driver_of
from memservice_postgres.dialect import PostgresDialect, sqlalchemy_dialect
from memservice_postgres.notifier import Notifier
from memservice_postgres.replica import Replica
from memservice_postgres.text import PostgresTextIndex
from memservice_postgres.vector_indexes import SpaceIndexes
from memservice_sql.storage import SqlStorage

if TYPE_CHECKING:
    from memservice.spi.providers import Settings
    from memservice.spi.vectors import VectorIndex

T = TypeVar("T")

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
        replica: tuple[str, PostgresDialect] | None = None,
    ) -> None:
        """`indexes`: None if vectors are stored elsewhere. `replica`: its name for messages, and
        its connections."""
        super().__init__(dialect, sqlalchemy_dialect, config.name)
        self._require_unicode = dialect.require_unicode
        self._max_connections = dialect.max_connections
        self._log = log
        self._pooler_reported = False
        self._texts = PostgresTextIndex()
        self.text = self._texts
        self._notifier = Notifier(config, super().announce, log)
        self._indexes = indexes
        self._replica_engines: dict[int, sa.Engine] = {}
        self._replica_dialect = replica[1] if replica is not None else None
        self._replica = (
            Replica(replica[0], self._replica_engine, lambda: self.engine, log)
            if replica is not None
            else None
        )

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

    def reading(self, fn: Callable[[], T]) -> T:
        return fn() if self._replica is None else self._replica.reading(fn)

    def replica_reads(self) -> ReplicaReads | None:
        return None if self._replica is None else self._replica.reads()

    def write(self, fn: Callable[[Transaction], T]) -> T:
        if self._replica is not None:
            self._replica.stop_reading()  # its next read has to see this write
        return super().write(fn)

    def _connection_for_reading(self) -> AbstractContextManager[sa.Connection]:
        if self._replica is None:
            return super()._connection_for_reading()
        return self._replica_or_primary(self._replica)

    @contextmanager
    def _replica_or_primary(self, replica: Replica) -> Iterator[sa.Connection]:
        with replica.connection() as connection:
            if connection is not None:
                yield connection
                return
        with super()._connection_for_reading() as connection:
            yield connection

    def _replica_engine(self) -> sa.Engine:
        """As `engine`, of the replica."""
        assert self._replica_dialect is not None
        pid = os.getpid()
        if pid not in self._replica_engines:
            self._replica_engines.setdefault(pid, self._replica_dialect.engine())
        return self._replica_engines[pid]

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
                        f"The database {self._location} has no table for vectors yet, or that of "
                        "an older release. Upgrade it with: memservice db upgrade"
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
        self._texts.sweep()
        vectors = self.__dict__.get("vectors")
        if vectors is not None:
            vectors.sweep()
        with self._noticing(), self.translated(), self.engine.connect() as connection:
            with self._dialect.transaction(connection, writing=False):
                driver = driver_of(connection)
                findings = [*health.writable(driver)]
                if thorough:
                    findings += [*health.pooler(driver, self._location), *health.checksums(driver)]
                    findings += health.connections(driver, self._max_connections)
        if self._replica is not None:
            with self.translated():
                findings += self._replica.examine()
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
        replica = self._replica_engines.pop(os.getpid(), None)
        if replica is not None:
            replica.dispose()


def config_of_settings(settings: Settings, uri: str | None = None) -> ConnectionConfig:
    """`settings` as `PostgresSettings` loads them; `uri` instead of theirs."""
    return config_of(
        uri or settings["uri"],
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
    replica = None
    if options["read_connection_uri"]:
        read_config = config_of_settings(settings, options["read_connection_uri"])
        replica = read_config.name, _dialect(read_config, options)
    indexes = (
        SpaceIndexes(
            config, log, half=options["half_precision"], max_memory_mb=options["index_memory_mb"]
        )
        if options["vectors"]
        else None
    )
    return PostgresStorage(config, _dialect(config, options), log, indexes, replica)


def _dialect(config: ConnectionConfig, options: Settings) -> PostgresDialect:
    return PostgresDialect(
        config,
        pool_size=options["pool_size"],
        max_overflow=options["max_overflow"],
        recycle=options["pool_recycle"],
        lifo=options["pool_use_lifo"],
        pre_ping=options["pool_pre_ping"],
        pooled=options["pool_class"] != "null",
    )
