"""The storage: connections, transactions and the schema, for any `SqlDialect`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import sqlalchemy as sa

from memservice.domain.errors import SchemaVersionError, Unavailable
from memservice.spi.base import BaseStorage
from memservice.spi.storage import PoolState, Transaction
from memservice_sql.dialect import SqlDialect
from memservice_sql.rows import SqlRows, Store
from memservice_sql.schema_version import HEAD, HISTORY, newer_schema_message, schema_problem
from memservice_sql.statements import Statements
from memservice_sql.transaction import SqlTransaction

_VERSION: sa.Select[Any] = sa.select(sa.column("version_num")).select_from(
    sa.table("alembic_version")
)

VERSION_SECONDS = 1.0
"""How often a writing process checks whether a newer release has migrated the store."""


class SqlStorage(BaseStorage):
    """`memservice.spi.storage.Storage` in an SQL database. Each process opens its connections at
    first use."""

    def __init__(self, dialect: SqlDialect, sqlalchemy_dialect: sa.Dialect, location: str) -> None:
        """`location` names the database in messages, without a password."""
        super().__init__()
        self._dialect = dialect
        self._store = Store(dialect, sqlalchemy_dialect)
        self._location = location
        self._engines: dict[int, sa.Engine] = {}
        self._closed = False
        self._next_version_check = float("-inf")

    @property
    def statements(self) -> Statements:
        """The statements compiled so far."""
        return self._store.statements

    @property
    def engine(self) -> sa.Engine:
        """This process's engine. An engine inherited by a fork is neither used nor closed: its
        connections belong to the parent."""
        if self._closed:
            raise Unavailable(f"the database {self._location} was closed")
        pid = os.getpid()
        engine = self._engines.get(pid)
        # No lock: a lock that another thread holds when the process forks is never released. At
        # worst two engines are created, which opens no connections.
        return (
            engine if engine is not None else self._engines.setdefault(pid, self._dialect.engine())
        )

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with (
            self.translated(),
            self._dialect.writer_turn() as turn,
            self.engine.connect() as connection,
            self._dialect.transaction(connection, writing=True),
        ):
            self._require_version(connection)
            yield SqlTransaction(SqlRows(self._store, connection, read_only=False, turn=turn))

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        with self.translated(), ExitStack() as stack:
            rows = SqlRows(self._store, self._reading(stack), read_only=True, is_snapshot=True)

            @contextmanager
            def pause() -> Iterator[None]:
                stack.close()
                try:
                    yield
                finally:
                    with self.translated():
                        rows.use_connection(self._reading(stack))

            yield SqlTransaction(rows, pause)

    @contextmanager
    def read_committed(self) -> Iterator[Transaction]:
        with (
            self._noticing(),
            self.translated(),
            self._connection_for_reading() as connection,
            self._dialect.statements(connection),
        ):
            yield SqlTransaction(SqlRows(self._store, connection, read_only=True))

    def _connection_for_reading(self) -> AbstractContextManager[sa.Connection]:
        return self.engine.connect()

    def _reading(self, stack: ExitStack) -> sa.Connection:
        """A connection in a read-only transaction; `stack` closes both."""
        connection = stack.enter_context(self._connection_for_reading())
        stack.enter_context(self._dialect.transaction(connection, writing=False))
        return connection

    def check(self) -> None:
        problem = schema_problem(self.schema_version(), self._location)
        if problem is not None:
            raise SchemaVersionError(problem)

    def schema_version(self) -> str | None:
        # In a transaction: behind a connection pooler, the search path is set only there.
        with (
            self.translated(),
            self.engine.connect() as connection,
            self._dialect.transaction(connection, writing=False),
        ):
            return self._version(connection)

    def migrate(self) -> None:
        if self.schema_version() == HEAD:
            return
        with (
            self.translated(),
            self.engine.connect() as connection,
            self._dialect.migration(connection),
        ):
            # Check again: another process may have migrated while this one waited.
            version = self._version(connection)
            if version == HEAD:
                return
            if version is None:
                from memservice_sql.creating import create

                create(connection, self._dialect)
                return
            if version not in HISTORY:
                raise SchemaVersionError(newer_schema_message(version, self._location))
            from memservice_sql.migrating import upgrade

            upgrade(connection, self._dialect)

    def pool(self) -> PoolState | None:
        engine = self._engines.get(os.getpid())
        pool = None if engine is None else engine.pool
        if not isinstance(pool, sa.QueuePool):
            return None
        return PoolState(pool.checkedout(), pool.checkedin(), pool.size(), max(0, pool.overflow()))

    def close(self) -> None:
        self._closed = True
        engine = self._engines.pop(os.getpid(), None)
        if engine is not None:
            engine.dispose()
        self._dialect.close()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Translate errors of the driver and the connection pool to memservice's, with the original
        as cause."""
        try:
            yield
        except sa.exc.TimeoutError as error:
            raise Unavailable(f"all connections to {self._location} are in use") from error
        except (self._dialect.driver_error, sa.exc.DBAPIError) as error:
            driver_error: Any = error.orig if isinstance(error, sa.exc.DBAPIError) else error
            meaning = self._dialect.translate(driver_error)
            if meaning is None:
                raise
            raise meaning from driver_error

    def _require_version(self, connection: sa.Connection) -> None:
        """Raise `SchemaVersionError` if a newer release has migrated the store: a process of an
        older release must stop writing. Checked once a second."""
        if time.monotonic() < self._next_version_check:
            return
        problem = schema_problem(connection.execute(_VERSION).scalar(), self._location)
        if problem is not None:
            raise SchemaVersionError(problem)
        self._next_version_check = time.monotonic() + VERSION_SECONDS

    def _version(self, connection: sa.Connection) -> str | None:
        if not sa.inspect(connection).has_table("alembic_version", schema=self._dialect.schema):
            return None
        version: str | None = connection.execute(_VERSION).scalar()
        return version
