"""A store of each kind, for tests that run on all of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from pathlib import Path

import pytest

from memservice.spi.storage import Storage
from memservice_memory.storage import MemoryStorage
from memservice_sql.storage import SqlStorage
from memservice_sqlite import connections

STORAGES = ("sqlite", "memory", "postgres")
DIALECTS = ("sqlite", "postgres")
make_empty_file = connections._make
"""What the product does where there is no file; see `sharing.copy_new_stores`."""


@contextmanager
def migrated_on(dialect: str, folder: Path) -> Iterator[SqlStorage]:
    """An empty store in an SQL database, opened."""
    from support.stores import postgres_store, sqlite_store

    with store_of(dialect, folder) as uri:
        opened = (
            postgres_store.migrated(uri)
            if dialect == "postgres"
            else sqlite_store.migrated(folder / "memory.db")
        )
        yield opened
        opened.close()


@contextmanager
def store_of(storage: str, folder: Path) -> Iterator[str]:
    """The URI of an empty store of that kind, with its tables; on PostgreSQL it is dropped
    afterwards."""
    if storage != "postgres":
        yield "memory://" if storage == "memory" else sqlite_store_at(folder / "memory.db")
        return
    from support.stores.postgres_server import drop_database
    from support.stores.postgres_store import new_store

    uri = new_store()
    yield uri
    drop_database(uri)


@contextmanager
def undone(storage: Storage) -> Iterator[None]:
    """What is written within to a store in memory is undone afterwards. It costs nothing, since a
    commit replaces the moment that readers see, and it keeps a store small that many tests share:
    this storage reads all rows for each question."""
    if not isinstance(storage, MemoryStorage):
        yield
        return
    before = storage._snapshot
    try:
        yield
    finally:
        # a thread that ends on its own, for instance that which notes when keys were used, may be
        # writing
        with storage._writer_lock:
            storage._snapshot = before


def copy_contents(source: Storage, target: Storage) -> None:
    """Give a new store in memory what another one holds. It costs nothing, since no commit changes
    what is stored: each replaces it."""
    assert isinstance(source, MemoryStorage)
    assert isinstance(target, MemoryStorage)
    target._snapshot = source._snapshot
    for record, keys in source._keys.items():
        target._keys[record] = copy(keys)


@cache
def empty_store() -> bytes:
    """The file of an empty SQLite store. To copy it takes a hundredth of the time that it takes to
    migrate."""
    from support.stores import sqlite_store

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "_make", make_empty_file)
        path = Path(folder, "template.db")
        sqlite_store.migrated(path).close()
        return path.read_bytes()


def sqlite_store_at(path: Path) -> str:
    """The URI of the SQLite store in that file, which is made, empty and migrated, unless it is
    there."""
    if not path.exists():
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(empty_store())
    return f"sqlite:///{path}"
