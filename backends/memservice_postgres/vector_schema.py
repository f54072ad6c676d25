"""The table of vectors. It is not in the migrations, because it is optional: it needs the extension
pgvector."""

from __future__ import annotations

import re

import psycopg

from memservice.domain.errors import ConfigurationError
from memservice_postgres.connections import Driver

MIN_VERSION = (0, 8)
"""The first version of pgvector that continues a search if a filter removes too many hits."""

_ALTERNATIVE = (
    'Or store vectors elsewhere: set VECTOR_STORE_TYPE, and DB_OPTIONS to {"vectors": false}.'
)

TRIGGER = "memservice_new_vector_version"
"""The name of the trigger, and of its function."""
PARTS = 64
"""Parts of the state of each space. A connection changes one of them."""
_RANDOM = "hashtextextended(gen_random_uuid()::text, 0)"

_STATEMENTS = (
    # The column has no dimension: each space has its own, named by its index
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
    # A vector that fits into a page is stored in its row: reading it from another page takes longer
    # than comparing it.
    "ALTER TABLE vectors ALTER COLUMN vector SET STORAGE EXTERNAL",
    "ALTER TABLE vectors SET (toast_tuple_target = 8160)",
    # Another random number whenever a row is written, also by an older release, so that a process
    # recognises the vectors that it has in memory (`memservice_postgres.vector_cache`). A sequence
    # would give a number again after a failover or a restore. Rows of older stores have none, since
    # one for each would mean writing the whole table.
    "ALTER TABLE vectors ADD COLUMN IF NOT EXISTS version BIGINT",
    f"ALTER TABLE vectors ALTER COLUMN version SET DEFAULT {_RANDOM}",
    # A random number of the last change of a space's vectors by each of several parts of the
    # connections, so that writers do not wait for each other's commit.
    """
    CREATE TABLE IF NOT EXISTS vector_states (
        space_key BIGINT NOT NULL,
        part SMALLINT NOT NULL,
        revision BIGINT NOT NULL,
        PRIMARY KEY (space_key, part)
    ) WITH (fillfactor = 50)
    """,
    f"""
    CREATE OR REPLACE FUNCTION {TRIGGER}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            NEW.version := {_RANDOM};
            INSERT INTO vector_states (space_key, part, revision)
            VALUES (NEW.space_key, pg_backend_pid() % {PARTS}, NEW.version)
            ON CONFLICT (space_key, part) DO UPDATE SET revision = excluded.revision;
            RETURN NEW;
        END
    $$
    """,  # noqa: S608 - constants
    f"""
    CREATE OR REPLACE TRIGGER {TRIGGER} BEFORE UPDATE ON vectors
        FOR EACH ROW EXECUTE FUNCTION {TRIGGER}()
    """,
    "DROP INDEX IF EXISTS vectors_pair",
    (
        "CREATE INDEX IF NOT EXISTS vectors_pair_version ON vectors (space_key, observed_key, "
        "observer_key) INCLUDE (row_key, version)"
    ),
    "CREATE INDEX IF NOT EXISTS vectors_session ON vectors (space_key, session_key)",
    "CREATE INDEX IF NOT EXISTS vectors_author ON vectors (space_key, author_key)",
)


def exists(driver: Driver) -> bool:
    """Whether the tables of this release exist in the store's own schema. The search path may
    include others."""
    return bool(
        driver.execute(
            "SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attname = 'version' AND attrelid = "
            "to_regclass(format('%I.vectors', current_schema()))) AND "
            "to_regclass(format('%I.vector_states', current_schema())) IS NOT NULL"
        ).fetchall()[0][0]
    )


def ensure(driver: Driver, location: str) -> None:
    """Create missing objects, in the connection's transaction. Raises `ConfigurationError` with
    instructions if pgvector is not available."""
    ensure_extension(driver, location)
    for statement in _STATEMENTS:
        driver.execute(statement)  # pyrefly: ignore[no-matching-overload]  # constants


def ensure_extension(driver: Driver, location: str) -> None:
    """Create pgvector if it is missing, in the connection's transaction. Raises as `ensure`
    does."""
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
                f"{_ALTERNATIVE}"
            )
        # In `public`, if this user may create there, so that every store of the database can use
        # it.
        may_use_public = (
            "SELECT 'public' FROM pg_namespace WHERE nspname = 'public' AND "
            "has_schema_privilege(oid, 'CREATE')"
        )
        try:
            driver.execute(
                "CREATE EXTENSION vector SCHEMA public"
                if _one(driver, may_use_public)
                else "CREATE EXTENSION vector"
            )
        except psycopg.errors.InsufficientPrivilege as error:
            raise ConfigurationError(
                f"This user may not add the extension pgvector to the database {location}. "
                "As the database's owner or a superuser, run there: "
                f"CREATE EXTENSION vector; then run: memservice db upgrade. {_ALTERNATIVE}"
            ) from error
    elif _one(driver, "SELECT to_regtype('vector')::text") is None:
        schema = _one(
            driver,
            "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'",
        )
        raise ConfigurationError(
            f"The database {location} has pgvector in the schema {schema}, which is not in "
            "the search path of this store. As the extension's owner or a superuser, run "
            "there: ALTER EXTENSION vector SET SCHEMA public; then run: memservice db "
            f"upgrade. {_ALTERNATIVE}"
        )
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < MIN_VERSION:
        raise ConfigurationError(
            f"The database {location} has pgvector {version}; this needs "
            f"{'.'.join(map(str, MIN_VERSION))} or newer. Install that on "
            "its server, "
            "then run there: ALTER EXTENSION vector UPDATE; and: memservice db upgrade. "
            f"{_ALTERNATIVE}"
        )


def _one(driver: Driver, sql: str) -> str | None:
    row = driver.execute(sql.encode()).fetchone()
    return None if row is None or row[0] is None else str(row[0])
