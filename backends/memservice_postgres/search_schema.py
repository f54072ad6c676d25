"""Objects that only this database has: a folding function, indexes on JSON, and the tables of full
text."""

from __future__ import annotations

from sqlalchemy import Connection

from memservice_postgres.json_conditions import COPIED_METADATA

FOLDINGS = ("pg_unicode_fast", "und-x-icu", "pg_c_utf8")
"""Collations that convert all of Unicode to lower case, best first: of PostgreSQL 18, of builds
with ICU, of PostgreSQL 17."""

_AVAILABLE = (
    "SELECT collname FROM pg_collation WHERE collname = ANY(%s) AND collencoding IN (-1, 6)"
)

SESSION_PREFIX = "@"


def _with_session(row: str) -> str:
    """The terms of a text, and its session as one more: the index reads only the postings of both
    to find the texts of a session with a term."""
    session = f"'{SESSION_PREFIX}' || {row}session_key::text"
    return f'array_append({row}terms, ({session}) COLLATE "C")'


INDEXED = _with_session("r.")
"""What is indexed of a text `r`. A condition has to be written exactly so to use the index."""
TERMS = (
    # A short pending list (in kB): it makes writes a third cheaper, but every search in any
    # workspace reads the whole list.
    (
        f"CREATE INDEX text_rows_new ON text_rows USING gin (({_with_session('')})) "
        "WITH (fastupdate = on, gin_pending_list_limit = 256)"
    ),
    # That of an older release, without sessions: searches use it until the new one is complete.
    "DROP INDEX IF EXISTS text_rows_terms",
    "ALTER INDEX text_rows_new RENAME TO text_rows_terms",
    # For the planner, which would know nothing of what is indexed until many texts have changed.
    "ANALYZE text_rows",
)

SAMPLE_SHARE = 32
GROUP_BITS = 6
"""Ids of one group differ in so many of their last bits: it has 16 consecutive messages."""
IS_SAMPLED = f"(hashint8(id >> {GROUP_BITS}) & {SAMPLE_SHARE - 1}) = 0"
"""One group of texts in `SAMPLE_SHARE`, whichever these are. A group is on one or two pages, so all
searches read the same few pages, which stay in the server's memory."""
SAMPLE = (
    "DROP INDEX IF EXISTS text_rows_sample",
    "CREATE INDEX text_rows_sample ON text_rows USING gin (terms) WITH "
    f"(fastupdate = on, gin_pending_list_limit = 64) WHERE {IS_SAMPLED}",
)
"""To estimate how many texts have a frequent term (`memservice_postgres.stored_texts`)."""

ORDER = "CREATE INDEX IF NOT EXISTS text_rows_order ON text_rows (workspace_key, kind, id)"
"""To find the first, the last and the newest texts of a workspace among those of all others."""

POSITIONS = (
    "CREATE INDEX messages_places ON messages (key) INCLUDE (session_key, seq)",
    (
        "CREATE INDEX messages_neighbours ON messages (session_key, seq) "
        "INCLUDE (key, author_key, tokens)"
    ),
)
"""Each with all columns that positions need, so that the table is not read. Included, these cannot
be searched: with old statistics, the planner would look for keys in the whole of the second one."""

STATEMENTS = (
    # For lists that callers filter by metadata, of tables with many rows and few writes. Messages
    # are filtered within a session: an index on their metadata costs each write more than it saves.
    "CREATE INDEX ix_sessions_metadata ON sessions USING gin ((metadata::jsonb) jsonb_path_ops)",
    "CREATE INDEX ix_peers_metadata ON peers USING gin ((metadata::jsonb) jsonb_path_ops)",
    # One row per indexed text. `terms` are prefixed terms (`memservice_postgres.text`); `counts`
    # are the numbers of their occurrences.
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
    ORDER,
    # Each workspace's statistics, in several parts, so that writers do not wait for each other's
    # commit. Readers add the parts up. `revision` and `removal` are random numbers of the last
    # change, and of the last that removed texts (`memservice_sql.text_cache`).
    """
    CREATE TABLE text_statistics (
        workspace_key BIGINT NOT NULL,
        kind SMALLINT NOT NULL,
        part SMALLINT NOT NULL,
        documents BIGINT NOT NULL,
        length BIGINT NOT NULL,
        revision BIGINT NOT NULL DEFAULT 0,
        removal BIGINT NOT NULL DEFAULT 0,
        PRIMARY KEY (workspace_key, kind, part)
    ) WITH (fillfactor = 50)
    """,
)

METADATA_COPY = (
    f"ALTER TABLE messages ADD COLUMN {COPIED_METADATA} JSONB "
    "GENERATED ALWAYS AS (metadata::jsonb) STORED"
)
"""Reading the text anew for each part of a condition takes ten times as long as testing it."""


def create(connection: Connection) -> None:
    """Create all objects, in the connection's transaction."""
    available = set(connection.exec_driver_sql(_AVAILABLE, (list(FOLDINGS),)).scalars())
    collation = next((f' COLLATE "{name}"' for name in FOLDINGS if name in available), "")
    # No filter distinguishes the final sigma of a word
    # (`memservice.domain.filters.jsontext.fold`).
    connection.exec_driver_sql(
        "CREATE FUNCTION memservice_fold(folded TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE "
        "STRICT PARALLEL SAFE "
        f"AS $$ SELECT lower(replace(folded, 'Σ', 'σ'){collation}) $$"
    )
    for statement in STATEMENTS:
        connection.exec_driver_sql(statement)
