"""The tables of full text and vectors, in the same file and transactions as their rows."""

from __future__ import annotations

from sqlalchemy import Connection

ORDER = "CREATE INDEX IF NOT EXISTS text_rows_order ON text_rows (workspace_key, kind)"
"""To find the newest texts of a workspace among those of all others. Each index of SQLite ends with
the id of the row."""

POSITIONS = (
    "CREATE INDEX messages_places ON messages (key, session_key, seq)",
    "CREATE INDEX messages_neighbours ON messages (session_key, seq, key, author_key, tokens)",
)
"""Each with all columns that positions need, so that the table is not read."""

STATEMENTS = (
    # One row per indexed text; `id` = row_key * 4 + the code of its kind
    # (`memservice_sqlite.text`). Few columns, because filters join this table.
    """
    CREATE TABLE text_rows (
        id INTEGER PRIMARY KEY,
        workspace_key INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        session_key INTEGER,
        author_key INTEGER,
        observer_key INTEGER,
        observed_key INTEGER,
        level TEXT,
        at INTEGER
    )
    """,
    "CREATE INDEX text_rows_place ON text_rows (workspace_key, kind, session_key)",
    ORDER,
    # The terms of each text, " term=count term=count ": read for the returned rows, and to delete
    # exactly its postings.
    (
        "CREATE TABLE text_terms (id INTEGER PRIMARY KEY, length INTEGER NOT NULL, terms TEXT "
        "NOT NULL)"
    ),
    # Postings only: terms are analysed before, so no text is stored, and no query uses positions.
    # The ascii tokenizer does not change characters outside ASCII; `text.token` encodes all others
    # as letters, digits and "_".
    """
    CREATE VIRTUAL TABLE text_index
    USING fts5(terms, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '_'")
    """,
    "CREATE VIRTUAL TABLE text_vocabulary USING fts5vocab(text_index, row)",
    # `revision` and `removal` are random numbers of the last change, and of the last that removed
    # texts (`memservice_sql.text_cache`).
    """
    CREATE TABLE text_statistics (
        workspace_key INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        documents INTEGER NOT NULL,
        length INTEGER NOT NULL,
        revision BIGINT NOT NULL DEFAULT 0,
        removal BIGINT NOT NULL DEFAULT 0,
        PRIMARY KEY (workspace_key, kind)
    ) WITHOUT ROWID
    """,
    # Rows are never updated: a new vector has a new key, so new vectors are a range of keys. 0
    # stands for no observer and for no observed peer.
    """
    CREATE TABLE vectors (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        space_key INTEGER NOT NULL,
        row_key INTEGER NOT NULL,
        session_key INTEGER,
        author_key INTEGER,
        observer_key INTEGER NOT NULL,
        observed_key INTEGER NOT NULL,
        level TEXT,
        at INTEGER,
        vector BLOB NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX vectors_row ON vectors (space_key, row_key)",
    "CREATE INDEX vectors_space ON vectors (space_key)",
    "CREATE INDEX vectors_pair ON vectors (space_key, observer_key, observed_key)",
    """
    CREATE TABLE vector_tombstones (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        space_key INTEGER NOT NULL,
        observer_key INTEGER NOT NULL,
        observed_key INTEGER NOT NULL,
        vector_key INTEGER NOT NULL
    )
    """,
    "CREATE INDEX vector_tombstones_space ON vector_tombstones (space_key)",
    # A trigger, so that every deletion reaches the caches of other processes.
    """
    CREATE TRIGGER vectors_buried AFTER DELETE ON vectors
    BEGIN
        INSERT INTO vector_tombstones (space_key, observer_key, observed_key, vector_key)
        VALUES (old.space_key, old.observer_key, old.observed_key, old.key);
    END
    """,
)


def create(connection: Connection) -> None:
    """Create the tables, in the connection's transaction. Raises `OperationalError` if they
    exist."""
    for statement in STATEMENTS:
        connection.exec_driver_sql(statement)
