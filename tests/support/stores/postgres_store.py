"""PostgreSQL stores for tests."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

from memservice_postgres.settings import PostgresSettings
from memservice_postgres.storage import PostgresStorage, open_storage
from support.stores.postgres_server import execute, new_database

log = logging.getLogger("memservice.test")


def opened(uri: str, **settings: Any) -> PostgresStorage:
    """The store in that database, as it is."""
    return open_storage(PostgresSettings().load({"uri": uri, **settings}), log)


def migrated(uri: str, **settings: Any) -> PostgresStorage:
    storage = opened(uri, **settings)
    storage.migrate()
    return storage


@cache
def template() -> str:
    """An empty store, migrated once: copying a database is faster than migrating for each test."""
    uri = new_database()
    migrated(uri).close()
    return uri


def new_store() -> str:
    """The URI of a new, empty, migrated store."""
    return new_database(template())


_EMPTY = """
DO $$
DECLARE one RECORD; filled BOOLEAN;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR one IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
        AND relkind = 'r'
    AND relname <> 'alembic_version' LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', one.relname) INTO filled;
        IF filled THEN EXECUTE format('DELETE FROM %I', one.relname); END IF;
    END LOOP;
END $$
"""


def empty(uri: str) -> None:
    """Take every row out of a store: much faster than a new one."""
    execute(uri, _EMPTY)
