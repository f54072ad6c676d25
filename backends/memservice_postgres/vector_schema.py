"""The table of vectors. Apart from the migrations, since a database may do without: it needs the
extension pgvector."""

from __future__ import annotations

import re

import psycopg

from memservice.domain.errors import ConfigurationError
from memservice_postgres.connections import Driver

OLDEST = (0, 8)
"""pgvector that goes on searching when a filter took too many hits away."""

_WITHOUT = 'Or keep vectors elsewhere: set VECTOR_STORE_TYPE, and DB_OPTIONS to {"vectors": false}.'

_STATEMENTS = (
    # Of several dimensions: a space has one, so its index names it
    # (`memservice_postgres.vector_indexes`).
    """
    CREATE TABLE IF NOT EXISTS vectors (
        space_key BIGINT NOT NULL,
        row_key BIGINT NOT NULL,
        session_key BIGINT,
        author_key BIGINT,
        observer_key BIGINT,
        observed_key BIGINT,
        level TEXT COLLATE "C",
        at TIMESTAMPTZ,
        vector VECTOR NOT NULL,
        PRIMARY KEY (space_key, row_key)
    )
    """,
    # As long as it fits into a page, a vector stays with its row: fetching it from elsewhere takes
    # longer than comparing it.
    "ALTER TABLE vectors ALTER COLUMN vector SET STORAGE EXTERNAL",
    "ALTER TABLE vectors SET (toast_tuple_target = 8160)",
    "CREATE INDEX IF NOT EXISTS vectors_pair ON vectors (space_key, observed_key, observer_key)",
    "CREATE INDEX IF NOT EXISTS vectors_session ON vectors (space_key, session_key)",
    "CREATE INDEX IF NOT EXISTS vectors_author ON vectors (space_key, author_key)",
)


def exists(driver: Driver) -> bool:
    """In the store's own schema: others of the database may be in the search path as well."""
    return bool(
        driver.execute(
            "SELECT to_regclass(format('%I.vectors', current_schema())) IS NOT NULL"
        ).fetchall()[0][0]
    )


def ensure(driver: Driver, location: str) -> None:
    """Create what is missing, in the connection's transaction. Raises `ConfigurationError`, saying
    what to do, without pgvector."""
    version = _one(driver, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    if version is None:
        version = _one(
            driver, "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"
        )
        if version is None:
            raise ConfigurationError(
                f"The server of the database {location} does not have the extension "
                "pgvector. Install it there (on Debian: apt install "
                "postgresql-<version>-pgvector), then run: memservice db upgrade. "
                f"{_WITHOUT}"
            )
        # Where every store of the database sees it, if that may be.
        common = (
            "SELECT 'public' FROM pg_namespace WHERE nspname = 'public' AND "
            "has_schema_privilege(oid, 'CREATE')"
        )
        try:
            driver.execute(
                "CREATE EXTENSION vector SCHEMA public"
                if _one(driver, common)
                else "CREATE EXTENSION vector"
            )
        except psycopg.errors.InsufficientPrivilege as error:
            raise ConfigurationError(
                f"This user may not add the extension pgvector to the database {location}. "
                "Let its owner or a superuser run there: "
                f"CREATE EXTENSION vector; then run: memservice db upgrade. {_WITHOUT}"
            ) from error
    elif _one(driver, "SELECT to_regtype('vector')::text") is None:
        where = _one(
            driver,
            "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'",
        )
        raise ConfigurationError(
            f"The database {location} has pgvector in the schema {where}, which this store "
            "does not see. Let its owner or a superuser run "
            "there: ALTER EXTENSION vector SET SCHEMA public; then run: memservice db "
            f"upgrade. {_WITHOUT}"
        )
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
        raise ConfigurationError(
            f"The database {location} has pgvector {version}; this needs "
            f"{'.'.join(map(str, OLDEST))} or newer. Install that on "
            "its server, "
            "then run there: ALTER EXTENSION vector UPDATE; and: memservice db upgrade. "
            f"{_WITHOUT}"
        )
    for statement in _STATEMENTS:
        driver.execute(statement)


def _one(driver: Driver, sql: str) -> str | None:
    found = driver.execute(sql.encode()).fetchone()
    return None if found is None or found[0] is None else str(found[0])
