"""PostgreSQL's implementation of `memservice_sql.dialect`."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.pool import NullPool
from sqlalchemy.types import TypeEngine

from memservice.domain.errors import ConfigurationError
from memservice.spi.fair_locks import FairLocks
from memservice.spi.waiting import about_to_wait
from memservice_postgres import errors, json_conditions
from memservice_postgres.committing import commit
from memservice_postgres.connections import (
    ConnectionConfig,
    Driver,
    driver_of,
    execute_directly,
    in_transaction,
    is_alive,
)
from memservice_postgres.json_text import encode, encode_rows, read
from memservice_postgres.waiting_pool import WaitingPool
from memservice_sql.dialect import JsonLeaf, SqlDialect
from memservice_sql.row_turns import Turn
from memservice_sql.statements import Cursor, Executor, Slots
from memservice_sql.tables import metadata

MIGRATION_SECONDS = 120
"""How long to wait while another process migrates."""
MIGRATION_LOCK = 0x6D656D73657276
"""The number of the advisory lock for migrations. The same in all releases."""

_BEGIN = {True: b"BEGIN", False: b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"}

_LISTED = "FROM json_array_elements(%s::json) WITH ORDINALITY AS given (v, place) ORDER BY place"

sqlalchemy_dialect: sa.Dialect = PGDialect_psycopg(  # type: ignore[no-untyped-call]
    paramstyle="format", json_serializer=encode, json_deserializer=read
)
"""Compiles the statements of `memservice_sql`."""


class PostgresDialect(SqlDialect):
    driver_error = psycopg.Error
    survives_errors = False
    inserts_whole = True

    def __init__(
        self,
        config: ConnectionConfig,
        *,
        pool_size: int = 10,
        max_overflow: int = 20,
        recycle: float = 300.0,
        lifo: bool = True,
        pre_ping: bool = True,
        pooled: bool = True,
    ) -> None:
        self._config = config
        self.schema = config.schema
        self._pre_ping = pre_ping and pooled
        self.max_connections = pool_size + max_overflow + 1 if pooled else 0
        """Maximum connections of one process: its pool's, and the one for notifications. 0: no
        pool, so there is no limit."""
        self._pool: dict[str, Any] = {"poolclass": NullPool}
        if pooled:
            self._pool = {
                "poolclass": WaitingPool,
                "pool_size": pool_size,
                "max_overflow": max_overflow,
                "pool_timeout": config.lock_seconds,
                "pool_recycle": recycle,
                "pool_use_lifo": lifo,
            }
        self._row_locks = FairLocks()
        self._inserts: dict[tuple[str, bool, bool], str] = {}
        self._unique: dict[str | None, tuple[str, tuple[str, ...]]] = {
            index.name: (table.name, tuple(index.columns.keys()))
            for table in metadata.tables.values()
            for index in table.indexes
        }

    def engine(self) -> sa.Engine:
        engine = sa.create_engine(
            "postgresql+psycopg://",
            creator=self._config.connect,
            pool_reset_on_return=None,  # `transaction` ends every transaction that it begins
            use_native_hstore=False,  # detecting it costs each connection a query
            hide_parameters=True,  # errors may be logged, and are stored with tasks
            json_deserializer=read,
            **self._pool,
        )
        if self._pre_ping:
            sa.event.listen(engine, "checkout", _check)
            sa.event.listen(engine, "checkin", _record_use)
        return engine

    def writer_turn(self) -> Turn:
        return Turn(self._row_locks)

    @contextmanager
    def transaction(self, connection: sa.Connection, *, writing: bool) -> Iterator[None]:
        driver = driver_of(connection)
        if self._config.is_distant:
            about_to_wait()
        try:
            execute_directly(driver, _BEGIN[writing] + driver.settings)
            try:
                yield
                if writing:
                    commit(driver, self._config)
                else:
                    execute_directly(driver, b"COMMIT")
            finally:
                if in_transaction(driver):
                    execute_directly(driver, b"ROLLBACK")
        finally:
            if driver.closed:
                connection.invalidate()

    @contextmanager
    def statements(self, connection: sa.Connection) -> Iterator[None]:
        driver = driver_of(connection)
        if driver.pooler:  # it applies settings within transactions only
            with self.transaction(connection, writing=False):
                yield
            return
        if self._config.is_distant:
            about_to_wait()
        try:
            yield
        finally:
            if driver.closed:
                connection.invalidate()

    def require_unicode(self, driver: Driver) -> None:
        encoding = driver.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise ConfigurationError(
                f"The database {self._config.name} has the encoding {encoding}, which "
                "cannot store all texts. "
                "Create one with: createdb --encoding UTF8 --template template0 memservice"
            )

    @contextmanager
    def migration(self, connection: sa.Connection) -> Iterator[None]:
        driver = driver_of(connection)
        with self.transaction(connection, writing=True):
            execute_directly(
                driver,
                (
                    "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = "
                    f"'{MIGRATION_SECONDS}s'"
                ).encode(),
            )
            execute_directly(driver, f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})".encode())
            self.require_unicode(driver)
            if self._config.schema != "public":
                execute_directly(
                    driver, f'CREATE SCHEMA IF NOT EXISTS "{self._config.schema}"'.encode()
                )
            yield

    def translate(self, error: Exception) -> Exception | None:
        return errors.meaning(error, self._config.name)

    def broken_unique(self, error: Exception) -> tuple[str, tuple[str, ...]] | None:
        return (
            self._unique.get(error.diag.constraint_name)
            if isinstance(error, psycopg.errors.UniqueViolation)
            else None
        )

    def reader(self, connection: sa.Connection) -> Executor:
        return driver_of(connection).reader

    def insert(
        self, cursor: Cursor, table: sa.Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> list[int]:
        several = len(rows) > 1
        values = [encode_rows(rows)] if several else rows[0]
        keys = _keys(cursor, self._insert(table, columns, several=several, yields=True), values)
        if len(keys) == len(rows):
            return keys
        # Some row exists already. The statement did not fail, so the transaction is usable. Run it
        # again to get the error that names the constraint.
        if keys:
            cursor.execute(f'DELETE FROM "{table.name}" WHERE key = ANY(%s)', [keys])  # noqa: S608 - a table of ours
        cursor.execute("SAVEPOINT inserting", ())
        try:
            keys = _keys(
                cursor, self._insert(table, columns, several=several, yields=False), values
            )
        except psycopg.Error:
            cursor.execute("ROLLBACK TO inserting", ())
            raise
        finally:
            cursor.execute("RELEASE inserting", ())
        return keys

    def insert_unless_there(
        self, cursor: Cursor, table: sa.Table, columns: Sequence[str], row: Sequence[Any]
    ) -> int | None:
        keys = _keys(cursor, self._insert(table, columns, several=False, yields=True), row)
        return keys[0] if keys else None

    def _insert(
        self, table: sa.Table, columns: Sequence[str], *, several: bool, yields: bool
    ) -> str:
        """An INSERT of one row (a parameter for each column) or `several` (one JSON text). With
        `yields`, it skips rows that violate a unique constraint."""
        insert_key = (table.name, several, yields)
        if insert_key not in self._inserts:
            names = [table.c[name] for name in columns]
            types = {
                column.name: column.type.compile(sqlalchemy_dialect).removesuffix(' COLLATE "C"')
                for column in names
            }
            column_list = ", ".join(f'"{name}"' for name in types)
            if several:
                # Keys are assigned in the order of the list.
                columns_sql = ", ".join(
                    f"(v->>{n})::{type_}" for n, type_ in enumerate(types.values())
                )
                source = f"SELECT {columns_sql} {_LISTED}"
            else:
                source = f"VALUES ({', '.join(f'%s::{type_}' for type_ in types.values())})"
            conflict = " ON CONFLICT DO NOTHING" if yields else ""
            self._inserts[insert_key] = (
                f'INSERT INTO "{table.name}" ({column_list}) {source}{conflict} RETURNING key'
            )
        return self._inserts[insert_key]

    def affected(self, cursor: Cursor) -> int:
        return cursor.rowcount

    def list_value(self, values: Sequence[Any]) -> Any:
        return encode_rows(values) if values and isinstance(values[0], tuple) else list(values)

    def one_of(self, column: sa.ColumnElement[Any], slots: Slots) -> sa.ColumnElement[bool]:
        return column == sa.any_(slots.take(postgresql.ARRAY(_bare(column.type))))

    def in_query(
        self, column: sa.ColumnElement[Any], query: sa.Select[Any]
    ) -> sa.ColumnElement[bool]:
        # With IN, all rows are read and compared.
        return column == sa.any_(sa.func.array(query.scalar_subquery()))

    def value_rows(self, slots: Slots, types: Sequence[TypeEngine[Any]]) -> sa.CTE:
        each = sa.func.json_array_elements(
            sa.cast(slots.take(sa.Text()), sa.JSON), type_=sa.JSON
        ).column_valued("v")
        columns = [
            sa.cast(each.op("->>")(sa.literal_column(f"{n}")), _bare(type_)).label(f"v{n}")
            for n, type_ in enumerate(types)
        ]
        return sa.select(*columns).cte().prefix_with("MATERIALIZED")

    def day(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
        return sa.func.to_char(sa.func.timezone("UTC", column), "YYYY-MM-DD", type_=sa.Text)

    def substring(self, column: sa.ColumnElement[Any], slots: Slots) -> sa.ColumnElement[bool]:
        return sa.func.strpos(json_conditions.folded(column), slots.take(sa.Text())) > 0

    def json_values(self, leaf: JsonLeaf) -> tuple[Hashable, Sequence[Any]]:
        return json_conditions.parts(leaf)

    def json_condition(
        self, column: sa.ColumnElement[Any], shape: Any, slots: Slots
    ) -> sa.ColumnElement[bool]:
        return json_conditions.condition(column, shape, slots)

    def create_indexes(self, connection: sa.Connection) -> None:
        from memservice_postgres import search_schema

        search_schema.create(connection)

    def copy_metadata(self, connection: sa.Connection) -> None:
        from memservice_postgres import search_schema

        connection.exec_driver_sql(search_schema.METADATA_COPY)

    def spread_merges(self, connection: sa.Connection) -> None:
        """The index bounds it itself (`gin_pending_list_limit`)."""

    def sample_texts(self, connection: sa.Connection) -> None:
        from memservice_postgres import search_schema

        for statement in search_schema.SAMPLE:
            connection.exec_driver_sql(statement)

    def order_texts(self, connection: sa.Connection) -> None:
        from memservice_postgres import search_schema

        connection.exec_driver_sql(search_schema.ORDER)

    def index_positions(self, connection: sa.Connection) -> None:
        from memservice_postgres import search_schema

        for statement in search_schema.POSITIONS:
            connection.exec_driver_sql(statement)

    def index_terms(self, connection: sa.Connection) -> None:
        from memservice_postgres import search_schema

        for statement in search_schema.TERMS:
            connection.exec_driver_sql(statement)

    def close(self) -> None:
        """There is nothing to release."""


def _keys(cursor: Cursor, sql: str, values: Sequence[Any]) -> list[int]:
    cursor.execute(sql, values)
    return sorted(row[0] for row in cursor.fetchall())


def _bare(type_: TypeEngine[Any]) -> TypeEngine[Any]:
    """The type without a collation: the column's collation applies."""
    return sa.Text() if isinstance(type_, sa.Text) else type_


def _check(driver: Any, record: Any, fairy: Any) -> None:
    if not is_alive(driver, record):
        raise sa.exc.DisconnectionError("the connection was closed")


def _record_use(driver: Any, record: Any) -> None:
    record.info["used"] = time.monotonic()
