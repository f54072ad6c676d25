"""SQLite's implementation of `memservice_sql.dialect`."""

from __future__ import annotations

import json
import os
import pwd
import re
import sqlite3
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.pool import NullPool
from sqlalchemy.types import TypeEngine

from memservice.domain.errors import Conflict, Damaged, SchemaVersionError, Unavailable
from memservice.spi.base import TransientConflict
from memservice_sql.dialect import JsonLeaf, SqlDialect
from memservice_sql.elastic_pool import ElasticPool
from memservice_sql.statements import Cursor, Slots
from memservice_sql.types import to_text
from memservice_sqlite import json_conditions, json_text
from memservice_sqlite.connections import ConnectionConfig, Watch, cannot_change
from memservice_sqlite.deadline import TimedConnection
from memservice_sqlite.log_copies import LogCopies
from memservice_sqlite.writer_lock import WriterLock

if TYPE_CHECKING:
    from memservice_sqlite.reclaiming import Pages

MIGRATION_SECONDS = 120
"""How long to wait while another process migrates."""
MAX_DAMAGE_MESSAGES = 3

_UNIQUE = re.compile(r"UNIQUE constraint failed: (.*)")
_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: "stayed locked by another process",
    sqlite3.SQLITE_LOCKED: "stayed locked",
    sqlite3.SQLITE_PROTOCOL: "stayed locked by another process",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full",
    sqlite3.SQLITE_IOERR: "could not be read or written: is its disk full, or damaged?",
    sqlite3.SQLITE_CANTOPEN: "could not be opened",
    sqlite3.SQLITE_READONLY: "may not be written to",
    sqlite3.SQLITE_PERM: "may not be used by this user",
    sqlite3.SQLITE_AUTH: "may not be used by this user",
    sqlite3.SQLITE_INTERRUPT: "took too long to answer",
    sqlite3.SQLITE_NOMEM: "could not be used for lack of memory",
}
_DAMAGED = {
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_NOTADB: "is not a SQLite database, or its beginning is damaged",
}


class _Compiler(SQLiteCompiler):
    """With hints after the names of tables."""

    def get_from_hint_text(self, table: Any, text: str | None) -> str | None:
        return text


class Compiling(SQLiteDialect_pysqlite):
    """Compiles the statements of `memservice_sql`."""

    statement_compiler = _Compiler
    supports_statement_cache = True


class SqliteDialect(SqlDialect):
    driver_error = sqlite3.Error
    survives_errors = True
    inserts_whole = False

    def __init__(
        self,
        config: ConnectionConfig,
        *,
        pool_size: int = 10,
        max_overflow: int = 20,
        pooled: bool = True,
    ) -> None:
        self._config = config
        self._pool: dict[str, Any] = {"poolclass": NullPool}
        if pooled:
            # `transaction` ends every transaction that it begins, so returned connections are
            # clean. The one returned last has the warmest cache.
            size = min(pool_size, _Pool.max_kept)
            self._pool = {
                "poolclass": _Pool,
                "pool_size": size,
                "max_overflow": pool_size - size + max_overflow,
                "pool_timeout": config.lock_seconds,
                "pool_use_lifo": True,
            }
        self._writer_lock = WriterLock(config.path, config.lock_seconds)
        self._log_copies = LogCopies(config)
        self._watch = Watch(config)
        self._inserts: dict[str, str] = {}
        self._pages: Pages | None = None

    def engine(self) -> sa.Engine:
        return sa.create_engine(
            "sqlite://",
            creator=self._config.connect,
            pool_reset_on_return=None,
            hide_parameters=True,  # errors may be logged, and are stored with tasks
            json_serializer=json_text.write,
            json_deserializer=json_text.read,
            **self._pool,
        )

    @contextmanager
    def writer_turn(self) -> Iterator[None]:
        self._renew_after_fork()
        with self._writer_lock:
            yield
        self._log_copies.committed()

    def _renew_after_fork(self) -> None:
        """Locks and connections of the parent process must not be used."""
        if self._writer_lock.pid != os.getpid():
            self._writer_lock = WriterLock(self._config.path, self._config.lock_seconds)
            self._log_copies = LogCopies(self._config)

    @contextmanager
    def transaction(self, connection: sa.Connection, *, writing: bool) -> Iterator[None]:
        # IMMEDIATE: SQLite does not wait for the lock when a transaction changes from reading to
        # writing; the statement fails at once.
        driver = _driver(connection)
        if writing:
            self._config.require()
        driver.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
        # Writes have no time limit: an interrupted write has to be repeated as a whole.
        driver.clock.limit(None if writing else self._config.statement_seconds)
        try:
            yield
            driver.execute("COMMIT")
            if writing:
                self._config.require()  # else the write is lost with the old file
        finally:
            driver.clock.limit(None)
            if driver.in_transaction:
                driver.execute("ROLLBACK")

    @contextmanager
    def statements(self, connection: sa.Connection) -> Iterator[None]:
        clock = _driver(connection).clock
        clock.limit(self._config.statement_seconds)
        try:
            yield
        finally:
            clock.limit(None)

    @contextmanager
    def migration(self, connection: sa.Connection) -> Iterator[None]:
        driver = _driver(connection)
        driver.execute(f"PRAGMA busy_timeout={MIGRATION_SECONDS * 1_000}")
        try:
            with self.transaction(connection, writing=True):
                yield
        finally:
            driver.execute(f"PRAGMA busy_timeout={int(self._config.lock_seconds * 1_000)}")

    def translate(self, error: Exception) -> Exception | None:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:
            return None
        if code == sqlite3.SQLITE_BUSY_SNAPSHOT:
            return TransientConflict(str(error))
        if code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
            return Conflict("an object that this refers to was deleted at the same time")
        if str(error).startswith(("no such table", "no such column")):
            return SchemaVersionError(
                f"The database {self._config.path} lacks tables ({error}). Create them "
                "with: memservice db upgrade"
            )
        damage = _DAMAGED.get(code & 0xFF)
        if damage is not None:
            return Damaged(f"The database {self._config.path} {damage} ({error})")
        meaning = _UNAVAILABLE.get(code & 0xFF)
        path = self._config.path
        if code & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) and cannot_change(
            path if path.exists() else path.parent
        ):
            meaning = "is on a read-only file system: it can be read and exported, but not served"
        elif code & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            meaning = f"{meaning}: {_rights_needed(path)}"
        return None if meaning is None else Unavailable(f"the database {path} {meaning} ({error})")

    def broken_unique(self, error: Exception) -> tuple[str, tuple[str, ...]] | None:
        match = _UNIQUE.fullmatch(str(error)) if isinstance(error, sqlite3.IntegrityError) else None
        if match is None:
            return None
        columns = [column.split(".") for column in match[1].split(", ")]
        return columns[0][0], tuple(name for _, name in columns)

    def insert(
        self, cursor: Cursor, table: sa.Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> list[int]:
        sql = self._insert(table, columns)
        keys: list[int] = []
        for row in rows:
            cursor.execute(sql, row)
            keys.append(cursor.lastrowid)
        return keys

    def insert_unless_there(
        self, cursor: Cursor, table: sa.Table, columns: Sequence[str], row: Sequence[Any]
    ) -> int | None:
        cursor.execute(f"{self._insert(table, columns)} ON CONFLICT DO NOTHING", row)
        return cursor.lastrowid if cursor.rowcount else None

    def _insert(self, table: sa.Table, columns: Sequence[str]) -> str:
        sql = self._inserts.get(table.name)
        if sql is None:
            from sqlalchemy.dialects import sqlite

            sql = self._inserts[table.name] = str(
                sa.insert(table).compile(dialect=sqlite.dialect(), column_keys=list(columns))
            )
        return sql

    def affected(self, cursor: Cursor) -> int:
        # The driver does not count for statements that begin with WITH.
        return (
            cursor.rowcount
            if cursor.rowcount >= 0
            else int(cursor.execute("SELECT changes()", ()).fetchone()[0])
        )

    def list_value(self, values: Sequence[Any]) -> str:
        return _encode_list(values)

    def one_of(self, column: sa.ColumnElement[Any], slots: Slots) -> sa.ColumnElement[bool]:
        each = sa.func.json_each(slots.take(sa.Text())).table_valued("value")
        return column.in_(sa.select(each.c.value))

    def in_query(
        self, column: sa.ColumnElement[Any], query: sa.Select[Any]
    ) -> sa.ColumnElement[bool]:
        return column.in_(query)

    def by_key(self, query: sa.Select[Any], table: sa.Table) -> sa.Select[Any]:
        # Without it, SQLite prefers an index on several other columns of the condition, however
        # many rows it has to read from it.
        return query.with_hint(table, "NOT INDEXED")

    def by_index(
        self, query: sa.Select[*tuple[Any, ...]], table: sa.FromClause, name: str
    ) -> sa.Select[*tuple[Any, ...]]:
        # Without it, SQLite looks up keys in the table itself.
        return query.with_hint(table, f"INDEXED BY {name}")

    def value_rows(self, slots: Slots, types: Sequence[TypeEngine[Any]]) -> sa.CTE:
        each = sa.func.json_each(slots.take(sa.Text())).table_valued("value")
        columns = [
            sa.func.json_extract(each.c.value, f"$[{n}]", type_=type_).label(f"v{n}")
            for n, type_ in enumerate(types)
        ]
        return sa.select(*columns).cte().prefix_with("MATERIALIZED")

    def day(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
        return sa.func.substr(column, 1, 10, type_=sa.Text)

    def substring(self, column: sa.ColumnElement[Any], slots: Slots) -> sa.ColumnElement[bool]:
        return sa.func.instr(json_conditions.folded(column), slots.take(sa.Text())) > 0

    def json_values(self, leaf: JsonLeaf) -> tuple[Hashable, Sequence[Any]]:
        parts = json_conditions.parts(leaf)
        return tuple(shape for shape, _ in parts), [
            value for _, values in parts for value in values
        ]

    def json_condition(
        self, column: sa.ColumnElement[Any], shape: Any, slots: Slots
    ) -> sa.ColumnElement[bool]:
        text = sa.type_coerce(column, sa.Text())
        return sa.and_(*[json_conditions.condition(text, part, slots) for part in shape])

    def create_indexes(self, connection: sa.Connection) -> None:
        from memservice_sqlite import search_schema

        search_schema.create(connection)

    def changed_elsewhere(self) -> bool:
        """Whether another connection committed since this thread's previous call. Idle workers call
        this many times a second."""
        if self._watch.pid != os.getpid():
            self._watch = Watch(self._config)
        return self._watch.changed()

    def damage(self, connection: sa.Connection) -> list[str]:
        """Errors in the structure of the file or of the text index, at most
        `MAX_DAMAGE_MESSAGES`. Reads the whole file; other writers wait while the text index is
        checked. Raises the driver's error for an unreadable page."""
        driver = _driver(connection)
        errors = [
            str(message)
            for (message,) in driver.execute(f"PRAGMA quick_check({MAX_DAMAGE_MESSAGES})")
            if message != "ok"
        ]
        if not errors:
            with self.writer_turn():
                driver.execute("BEGIN IMMEDIATE")
                try:
                    driver.execute("INSERT INTO text_index (text_index) VALUES ('integrity-check')")
                finally:
                    driver.execute("ROLLBACK")
        return errors

    def reclaim(self, connection: sa.Connection, *, thorough: bool, erasure: bool) -> bool:
        from memservice_sqlite import reclaiming

        self._config.require()
        self._renew_after_fork()
        # So that little is left to copy when the log is truncated, while other writers wait.
        self._log_copies.copy()
        with self.writer_turn():
            if self._pages is None:
                self._pages = reclaiming.Pages(self._config.path, self._config.connect)
            driver = _driver(connection)
            return reclaiming.step(driver, self._pages, thorough=thorough, erasure=erasure)

    def copy_metadata(self, connection: sa.Connection) -> None:
        """There is no faster form: the column itself is tested."""

    def spread_merges(self, connection: sa.Connection) -> None:
        from memservice_sqlite import text_merges

        text_merges.configure(connection)

    def sample_texts(self, connection: sa.Connection) -> None:
        """FTS5 counts the rows with a term without reading them."""

    def order_texts(self, connection: sa.Connection) -> None:
        from memservice_sqlite import search_schema

        connection.exec_driver_sql(search_schema.ORDER)

    def index_positions(self, connection: sa.Connection) -> None:
        from memservice_sqlite import search_schema

        for statement in search_schema.POSITIONS:
            connection.exec_driver_sql(statement)

    def index_terms(self, connection: sa.Connection) -> None:
        """Another index tells quickly in which session a text is."""

    def close(self) -> None:
        if self._watch.pid == os.getpid():
            self._watch.close()
        if self._log_copies.pid == os.getpid():
            self._log_copies.close()
        if self._writer_lock.pid == os.getpid():
            self._writer_lock.close()


class _Pool(ElasticPool):
    """Connections are opened in a millisecond, and each keeps 2 to 3 MB of pages and statements."""

    max_kept = 2
    idle_seconds = 10.0


_encode_list = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=to_text
).encode
"""Encodes lists of values and of rows; times as `to_text` does."""


def _driver(connection: sa.Connection) -> TimedConnection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, TimedConnection)
    return driver


def _rights_needed(path: Path) -> str:
    """What the user of this process needs, for a file that cannot be opened or written to."""
    uid = os.getuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:  # a container may run as a user without a name
        user = f"number {uid}"
    return (
        f"the user {user} must be able to write to it and to its directory {path.parent}, where "
        "SQLite creates files"
    )
