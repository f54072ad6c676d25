"""Stores for the tests of the indexes: a file with the search tables only, whose statements are
noted, and the whole storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Engine, create_engine, event

from memservice.spi.rows import Rows
from memservice.spi.storage import Storage, Transaction
from memservice_sqlite import search_schema
from memservice_sqlite.settings import SqliteSettings
from memservice_sqlite.storage import open_storage

T = TypeVar("T")


class SqliteFile:
    def __init__(self, path: Path) -> None:
        self.engine: Engine = create_engine(f"sqlite:///{path}")
        self.statements: list[str] = []
        event.listen(self.engine, "connect", _configure)
        event.listen(
            self.engine,
            "connect",
            lambda driver, record: driver.set_trace_callback(self._note),
        )
        with self.transaction("BEGIN IMMEDIATE") as connection:
            if not connection.exec_driver_sql(
                "SELECT 1 FROM sqlite_master WHERE name = 'text_rows'"
            ).first():
                search_schema.create(connection)

    def _note(self, statement: str) -> None:
        if not statement.startswith("--"):  # those of FTS5 itself
            self.statements.append(statement)

    @contextmanager
    def transaction(self, begin: str) -> Iterator[Connection]:
        with self.engine.connect() as connection:
            connection.exec_driver_sql(begin)
            try:
                yield connection
            except BaseException:
                connection.exec_driver_sql("ROLLBACK")
                raise
            connection.exec_driver_sql("COMMIT")

    def write(self, fn: Callable[[Transaction], T]) -> T:
        with self.transaction("BEGIN IMMEDIATE") as connection:
            return fn(view_of(connection))

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        with self.transaction("BEGIN") as connection:
            yield view_of(connection)

    def close(self) -> None:
        self.engine.dispose()


def open_whole(path: Path) -> Storage:
    """The SQLite storage itself, migrated."""
    storage = open_storage(
        SqliteSettings().load(
            {"uri": f"sqlite:///{path}", "pool_timeout": 30, "synchronous": "normal"}
        )
    )
    storage.migrate()
    return storage


def view_of(connection: Connection) -> Transaction:
    return Transaction(cast(Rows, SimpleNamespace(connection=connection)))


def _configure(connection: Any, record: object) -> None:
    connection.isolation_level = None
    for pragma in ("journal_mode = wal", "synchronous = off", "busy_timeout = 10000"):
        connection.execute(f"PRAGMA {pragma}")
