"""A store of each kind, for tests that run on all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memservice_sql.storage import SqlStorage

STORAGES = ("sqlite", "memory", "postgres")
DIALECTS = ("sqlite", "postgres")


@contextmanager
def migrated_on(dialect: str, folder: Path) -> Iterator[SqlStorage]:
    """An empty store in an SQL database, opened."""
    from backends import postgres_store, sqlite_store

    with store_of(dialect, folder) as uri:
        opened = postgres_store.migrated(uri) if dialect == "postgres" else sqlite_store.migrated(folder / "memory.db")
        yield opened
        opened.close()


@contextmanager
def store_of(storage: str, folder: Path) -> Iterator[str]:
    """The URI of an empty store of that kind; on PostgreSQL its tables are there, and it is dropped afterwards."""
    if storage != "postgres":
        yield "memory://" if storage == "memory" else f"sqlite:///{folder}/memory.db"
        return
    from backends.postgres_server import drop_database
    from backends.postgres_store import new_store

    uri = new_store()
    yield uri
    drop_database(uri)
