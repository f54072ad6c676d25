"""What only this database has: folding, indexes into JSON, and the tables of full text, in the same
database as the rows they describe."""

from __future__ import annotations

from sqlalchemy import Connection

FOLDINGS = ("pg_unicode_fast", "und-x-icu", "pg_c_utf8")
"""Collations that know the lower case of all of Unicode, the best first: of PostgreSQL 18, of one
built with ICU, of 17."""

_KNOWN = "SELECT collname FROM pg_collation WHERE collname = ANY(%s) AND collencoding IN (-1, 6)"

STATEMENTS = (
    # Listings that callers filter by metadata, of rows that are many and seldom written. Messages
    # are filtered within a session instead: an index on each message's metadata would cost every
    # write more than it saves there.
    "CREATE INDEX ix_sessions_metadata ON sessions USING gin ((metadata::jsonb) jsonb_path_ops)",
    "CREATE INDEX ix_peers_metadata ON peers USING gin ((metadata::jsonb) jsonb_path_ops)",
    # One row per indexed text. `terms` are written as `memservice_postgres.text` does, `counts`
    # says how often each occurs.
    """
    CREATE TABLE text_rows (
        id BIGINT PRIMARY KEY,
        workspace_key BIGINT NOT NULL,
        kind SMALLINT NOT NULL,
        session_key BIGINT,
        author_key BIGINT,
        observer_key BIGINT,
        observed_key BIGINT,
        level TEXT COLLATE "C",
        at TIMESTAMPTZ,
        length INTEGER NOT NULL,
        counts SMALLINT[] NOT NULL,
        terms TEXT[] COLLATE "C" NOT NULL
    )
    """,
    "CREATE INDEX text_rows_place ON text_rows (workspace_key, kind, session_key)",
    # With a short list of pending entries (kB): it makes writes a third cheaper, but every search,
    # of whichever workspace, reads all of it.
    (
        "CREATE INDEX text_rows_terms ON text_rows USING gin (terms) WITH (fastupdate = on, "
        "gin_pending_list_limit = 256)"
    ),
    # Each workspace's statistics, in several parts, so that writers do not wait for each other's
    # commit; a reader adds them up.
    """
    CREATE TABLE text_statistics (
        workspace_key BIGINT NOT NULL,
        kind SMALLINT NOT NULL,
        part SMALLINT NOT NULL,
        documents BIGINT NOT NULL,
        length BIGINT NOT NULL,
        PRIMARY KEY (workspace_key, kind, part)
    ) WITH (fillfactor = 50)
    """,
)


def create(connection: Connection) -> None:
    """Create all of it, in the connection's transaction."""
    known = set(connection.exec_driver_sql(_KNOWN, (list(FOLDINGS),)).scalars())
    collation = next((f' COLLATE "{name}"' for name in FOLDINGS if name in known), "")
    # The last sigma of a word is told apart by no filter
    # (`memservice.domain.filters.jsontext.fold`).
    connection.exec_driver_sql(
        "CREATE FUNCTION memservice_fold(folded TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE "
        "STRICT PARALLEL SAFE "
        f"AS $$ SELECT lower(replace(folded, 'Σ', 'σ'){collation}) $$"
    )
    for statement in STATEMENTS:
        connection.exec_driver_sql(statement)
