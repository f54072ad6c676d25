"""The storage: two context managers, and what opening it takes. Several processes may open one
file."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

from memservice.domain.errors import SchemaVersionError, Unavailable
from memservice.spi.base import BaseStorage
from memservice.spi.capabilities import Capability
from memservice.spi.storage import Transaction

from .documents import TABLES, ToyRows
from .text import ToyText

VERSION = 1
LOCK_SECONDS = 5.0


class ToyStorage(BaseStorage):
    name = "toybox"
    capabilities = frozenset({Capability.SHARED})
    poll_seconds = 0.2

    def __init__(self, path: str) -> None:
        super().__init__()
        self.text = ToyText()
        self.vectors = None
        self._path = path
        self._closed = False
        self._last_commit = threading.local()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield Transaction(ToyRows(connection, writing=True))
                connection.execute("UPDATE commits SET number = number + 1")
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        with self._connected() as connection:
            connection.execute("BEGIN")
            # the moment is that of the first look
            connection.execute("SELECT number FROM commits").fetchone()
            yield Transaction(ToyRows(connection, writing=False))

    def changed_elsewhere(self) -> bool:
        with self._connected() as connection:
            now = connection.execute("SELECT number FROM commits").fetchone()
        before, self._last_commit.number = getattr(self._last_commit, "number", None), now
        return bool(before != now)

    def check(self) -> None:
        version = self.schema_version()
        if version != str(VERSION):
            raise SchemaVersionError(
                f"the toybox has schema {version or 'none'}, this release needs {VERSION}: "
                "run `memservice db upgrade`"
            )

    def schema_version(self) -> str | None:
        with self._connected() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
        return str(version) if version else None

    def migrate(self) -> None:
        with self._connected() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            # so that of several processes one makes the tables
            connection.execute("BEGIN IMMEDIATE")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > VERSION:
                raise SchemaVersionError(
                    f"the toybox has schema {version}, which is newer than {VERSION}: use "
                    "a newer release"
                )
            if not version:
                for statement in TABLES.split(";"):
                    connection.execute(statement)
                connection.execute("INSERT INTO commits VALUES (0)")
                connection.execute(f"PRAGMA user_version = {VERSION:d}")
            connection.execute("COMMIT")

    def close(self) -> None:
        self._closed = True

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if self._closed:
            raise Unavailable("the toybox is closed")
        try:
            with closing(
                sqlite3.connect(self._path, timeout=LOCK_SECONDS, isolation_level=None)
            ) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                yield connection
        except sqlite3.OperationalError as error:
            raise Unavailable(f"the toybox {self._path} cannot be used now: {error}") from error
