"""The tables of full text and vectors, in the same file and transaction as the rows they
describe."""

from __future__ import annotations

from sqlalchemy import Connection

STATEMENTS = (
    # One row per indexed text; `id` = row_key * 4 + the code of its kind
    # (`memservice_sqlite.text`). Kept narrow: filters join it.
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
    # What each text holds, " term=count term=count ": read for the few rows that are returned, and
    # to delete exactly.
    (
        "CREATE TABLE text_terms (id INTEGER PRIMARY KEY, length INTEGER NOT NULL, terms TEXT "
        "NOT NULL)"
    ),
    # Postings only: terms come analysed, so there is no text to keep, and no positions are asked
    # for. The ascii tokenizer leaves everything outside ASCII alone; `text.token` writes the rest
    # in letters, digits and "_".
    """
    CREATE VIRTUAL TABLE text_index
    USING fts5(terms, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '_'")
    """,
    "CREATE VIRTUAL TABLE text_vocabulary USING fts5vocab(text_index, row)",
    """
    CREATE TABLE text_statistics (
        workspace_key INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        documents INTEGER NOT NULL,
        length INTEGER NOT NULL,
        PRIMARY KEY (workspace_key, kind)
    ) WITHOUT ROWID
    """,
    # Rows are never updated: a new vector is a new key. So "what is new" is a range of keys. A row
    # of no observer has 0 there.
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
    # A trigger, so that no way of deleting leaves the caches of other processes behind.
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
