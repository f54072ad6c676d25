"""PostgreSQL stores for tests."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

from memservice_postgres.settings import PostgresSettings
from memservice_postgres.storage import PostgresStorage, open_storage
from support.stores.postgres_server import (
    administer,
    connect,
    disconnect,
    drop_database,
    execute,
    new_database,
    new_name,
    uri_of,
)

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
    """The URI of a new, empty, migrated store. Call `drop_store` at the end."""
    return _unused.pop() if _unused else new_database(template())


_unused: list[str] = []
"""Empty stores that tests of this process have finished with. To copy and to delete a database
takes 0.2 s of CPU, and to use it once more 0.03 s."""


def drop_store(uri: str) -> None:
    """Delete the store, or let the next test use it under another name: if it is small, and nothing
    but its rows differs from an empty one."""
    disconnect(uri)
    try:
        with connect(uri) as connection:
            is_usable = _is_as_migrated(connection)
            if is_usable:
                connection.execute(_EMPTY)
                connection.execute(_RESTART)
    except psycopg.Error:
        is_usable = False
    if not is_usable:
        drop_database(uri)
        return
    name = new_name()
    administer(f"ALTER DATABASE {make_url(uri).database} RENAME TO {name}")
    _unused.append(uri_of(name))


SLACK = 2**20
"""Bytes by which a store may have grown: deleted rows take space, and time to skip."""


def _is_as_migrated(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    description, size = _description(connection)
    expected, expected_size = _description_of_empty()
    return description == expected and size <= expected_size + SLACK


def _description(connection: psycopg.Connection[tuple[object, ...]]) -> tuple[str, int]:
    """A digest of all but the rows, and the size."""
    (row,) = connection.execute(_DESCRIPTION).fetchall()
    return str(row[0]), int(str(row[1]))


@cache
def _description_of_empty() -> tuple[str, int]:
    uri = new_database(template())
    with connect(uri) as connection:
        description = _description(connection)
    drop_database(uri)
    return description


_DESCRIPTION = """
WITH named AS (
    SELECT pg_class.* FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname !~ '^(pg_|information_schema$)'
)
SELECT md5(concat_ws('/',
    (SELECT string_agg(concat_ws(',', relname, relnamespace, relkind, relowner, relacl, reloptions,
        reltuples), ';' ORDER BY relname, relnamespace) FROM named),
    (SELECT string_agg(concat_ws(',', relname, attname, atttypid, atttypmod, attnotnull,
        attcollation, attstorage, attacl), ';' ORDER BY relname, attnum)
        FROM pg_attribute JOIN named ON named.oid = attrelid),
    (SELECT string_agg(concat_ws(',', indexrelid::regclass, indisvalid, indkey, indpred), ';'
        ORDER BY indexrelid::regclass::text) FROM pg_index JOIN named ON named.oid = indexrelid),
    (SELECT string_agg(concat_ws(',', conname, convalidated, conrelid::regclass), ';'
        ORDER BY conname, conrelid::regclass::text) FROM pg_constraint),
    (SELECT string_agg(concat_ws(',', tgname, tgenabled, relname), ';' ORDER BY tgname, relname)
        FROM pg_trigger JOIN named ON named.oid = tgrelid WHERE NOT tgisinternal),
    (SELECT string_agg(concat_ws(',', proname, prosrc), ';' ORDER BY proname, prosrc)
        FROM pg_proc WHERE oid >= 16384),
    (SELECT string_agg(concat_ws(',', nspname, nspacl), ';' ORDER BY nspname) FROM pg_namespace),
    (SELECT string_agg(concat_ws(',', extname, extversion), ';' ORDER BY extname)
        FROM pg_extension),
    (SELECT concat_ws(',', datacl, datconnlimit, datallowconn) FROM pg_database
        WHERE datname = current_database()),
    (SELECT string_agg(setconfig::text, ';') FROM pg_db_role_setting JOIN pg_database
        ON pg_database.oid = setdatabase WHERE datname = current_database()),
    (SELECT count(*) FROM pg_statistic JOIN named ON named.oid = starelid),
    (SELECT count(*) FROM pg_largeobject_metadata),
    (SELECT string_agg(version_num, ';') FROM public.alembic_version)
)), pg_database_size(current_database())
"""

_RESTART = """
SELECT setval(format('%I.%I', schemaname, sequencename), start_value, false)
FROM pg_sequences WHERE last_value IS NOT NULL
"""

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
