"""The storage: connections, transactions and the schema, for any `SqlDialect`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import sqlalchemy as sa

from memservice.domain.errors import SchemaVersionError, Unavailable
from memservice.spi.base import BaseStorage
from memservice.spi.storage import PoolState, Transaction
from memservice_sql.dialect import SqlDialect
from memservice_sql.rows import SqlRows, Store
from memservice_sql.schema_version import HEAD, HISTORY, complaint, newer
from memservice_sql.statements import Statements
from memservice_sql.transaction import SqlTransaction

_VERSION: sa.Select[Any] = sa.select(sa.column("version_num")).select_from(
    sa.table("alembic_version")
)

VERSION_SECONDS = 1.0
"""How often a writing process looks whether a newer release has migrated the store meanwhile."""


class SqlStorage(BaseStorage):
    """`memservice.spi.storage.Storage` in an SQL database. Connections are opened at first use, by
    each process for itself."""

    def __init__(self, dialect: SqlDialect, sqlalchemy_dialect: sa.Dialect, location: str) -> None:
        """`location` names the database in messages, without a password."""
        super().__init__()
        self._dialect = dialect
        self._store = Store(dialect, sqlalchemy_dialect)
        self._place = location
        self._engines: dict[int, sa.Engine] = {}
        self._closed = False
        self._look_at_version = float("-inf")

    @property
    def statements(self) -> Statements:
        """Those that were compiled so far."""
        return self._store.statements

    @property
    def engine(self) -> sa.Engine:
        """This process's. One that was inherited by a fork is neither used nor closed: its
        connections are the parent's."""
        if self._closed:
            raise Unavailable(f"the database {self._place} was closed")
        here = os.getpid()
        found = self._engines.get(here)
        # No lock: one that another thread held when the process forked would never be released. At
        # worst two engines are made, none opened.
        return (
            found if found is not None else self._engines.setdefault(here, self._dialect.engine())
        )

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self.translated(), self._dialect.turn(), self.engine.connect() as connection:
            with self._dialect.transaction(connection, writing=True):
                self._require_version(connection)
                yield SqlTransaction(SqlRows(self._store, connection, read_only=False))

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        with self.translated(), ExitStack() as held:
            rows = SqlRows(self._store, self._reading(held), read_only=True)

            @contextmanager
            def pause() -> Iterator[None]:
                held.close()
                try:
                    yield
                finally:
                    with self.translated():
                        rows.go_on_with(self._reading(held))

            yield SqlTransaction(rows, pause)

    def _reading(self, held: ExitStack) -> sa.Connection:
        """A connection in a transaction that reads, both until `held` ends."""
        connection = held.enter_context(self.engine.connect())
        held.enter_context(self._dialect.transaction(connection, writing=False))
        return connection

    def check(self) -> None:
        wrong = complaint(self.schema_version(), self._place)
        if wrong is not None:
            raise SchemaVersionError(wrong)

    def schema_version(self) -> str | None:
        # In a transaction: behind a connection pooler only there the schema is ours.
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
            # Once more: another process may have migrated while this one waited.
            found = self._version(connection)
            if found == HEAD:
                return
            if found is not None and found not in HISTORY:
                raise SchemaVersionError(newer(found, self._place))
            from memservice_sql.migrating import upgrade

            upgrade(connection, self._dialect)

    def pool(self) -> PoolState | None:
        found = self._engines.get(os.getpid())
        pool = None if found is None else found.pool
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
        """Errors of the driver and of the connection pool as memservice's, with the original as
        cause."""
        try:
            yield
        except sa.exc.TimeoutError as error:
            raise Unavailable(f"all connections to {self._place} are in use") from error
        except (self._dialect.driver_error, sa.exc.DBAPIError) as error:
            found: Any = error.orig if isinstance(error, sa.exc.DBAPIError) else error
            meaning = self._dialect.translate(found)
            if meaning is None:
                raise
            raise meaning from found

    def _require_version(self, connection: sa.Connection) -> None:
        """A process of an older release must not go on writing to what a newer one has migrated.
        Looked at once a second."""
        if time.monotonic() < self._look_at_version:
            return
        wrong = complaint(connection.execute(_VERSION).scalar(), self._place)
        if wrong is not None:
            raise SchemaVersionError(wrong)
        self._look_at_version = time.monotonic() + VERSION_SECONDS

    def _version(self, connection: sa.Connection) -> str | None:
        if not sa.inspect(connection).has_table("alembic_version", schema=self._dialect.schema):
            return None
        found: str | None = connection.execute(_VERSION).scalar()
        return found
