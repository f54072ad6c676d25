"""The indexes of the tables: those of unique fields, and those of `INDEXES`, by which rows are
looked up."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Index, MetaData, Table

from memservice.domain import records as r
from memservice.spi.schema import TABLES as SPECS
from memservice.spi.schema import TableSpec

INDEXES: dict[str, tuple[tuple[str, ...], ...]] = {
    "workspaces": (
        ("slug", "state"),
        ("v1_name", "state"),
        ("created_at", "key"),
    ),
    "peers": (("workspace_key", "created_at", "key"),),
    "peer_names": (("peer_key",),),
    "sessions": (
        ("workspace_key", "created_at", "key"),
        ("workspace_key", "state"),
        ("owner_key", "created_at", "key"),
    ),
    "members": (
        ("workspace_key",),
        ("peer_key", "session_key"),
    ),
    "messages": (
        ("workspace_key", "key"),
        ("session_key", "tokens_through", "seq"),
        ("author_key", "key"),
        ("session_key", "author_key", "key"),
    ),
    "idempotency_keys": (
        ("workspace_key",),
        ("created_at",),
    ),
    "summaries": (("workspace_key",),),
    "collections": (
        ("workspace_key",),
        ("observed_key",),
    ),
    "cards": (("workspace_key",),),
    "conclusions": (
        ("workspace_key", "state", "created_at", "key"),
        ("workspace_key", "observed", "state", "created_at", "key"),
        ("collection_key", "state", "level", "fingerprint"),
        ("observer_key", "observed_key", "state", "created_at", "key"),
        ("session_key", "state"),
    ),
    "named_collections": (("workspace_key", "created_at", "key"),),
    "documents": (
        ("workspace_key",),
        ("owner_key",),
        ("collection_key", "created_at", "key"),
    ),
    "metamessages": (
        ("workspace_key",),
        ("owner_key", "created_at", "key"),
        ("session_key", "created_at", "key"),
        ("message_key", "created_at", "key"),
    ),
    "tasks": (
        ("workspace_key", "kind", "state", "session_key", "unit"),
        ("workspace_key", "key"),
    ),
    "scope_sessions": (
        ("workspace_key",),
        ("session_key",),
    ),
    "webhook_endpoints": (("workspace_key", "created_at", "key"),),
    "deliveries": (
        ("workspace_key",),
        ("endpoint_key", "key"),
        ("created_at",),
    ),
    "api_keys": (
        ("created_at", "key"),
        ("workspace", "session"),
    ),
    "usage": (
        ("workspace_key", "day"),
        ("day",),
        ("created_at",),
    ),
    "console_members": (("created_at", "key"),),
    "console_links": (
        ("expires_at",),
        ("member_uid",),
    ),
    "browser_sessions": (
        ("member_uid", "created_at", "key"),
        ("key_uid",),
        ("expires_at",),
    ),
    "sign_in_failures": (("last_at",),),
    "audit_entries": (
        ("created_at", "key"),
        ("actor_uid", "created_at", "key"),
    ),
    "erasures": (
        ("workspace_key", "created_at", "key"),
        ("created_at", "key"),
        ("target_uid",),
        ("task_uid",),
    ),
}
"""By name of the table."""
INDEXES_OF_STATES = (
    ("conclusions", ("key", "deleted_at"), r.DELETED),
    ("tasks", ("unit", "key", "not_before"), r.PENDING),
    ("tasks", ("not_before", "key"), r.PENDING),
    ("tasks", ("finished_at",), r.DONE),
    ("tasks", ("finished_at",), r.FAILED),
    ("tasks", ("unit", "key"), r.FAILED),
)
"""Table, fields, and the state of the rows that the index has."""
INDEXES_OF_VALUES = (("conclusions", ("workspace_key", "restored_at"), "restored_at"),)
"""Table, fields, and the column in which the rows have a value that the index has."""

# Conditions are named for SQLite alone. SQLAlchemy imports a dialect that is named, and that of
# PostgreSQL takes 46 ms in each process. The databases have what the migrations create.


def add_indexes(metadata: MetaData) -> None:
    """Add the indexes to the tables of the records."""
    for spec in SPECS:
        _add_unique(metadata.tables[spec.name], spec)
    for name, indexes in INDEXES.items():
        for fields in indexes:
            _add(metadata.tables[name], fields, fields)
    for name, fields, state in INDEXES_OF_STATES:
        table = metadata.tables[name]
        _add(table, fields, (state, *fields), table.c.state == state)
    for name, fields, column in INDEXES_OF_VALUES:
        table = metadata.tables[name]
        _add(table, fields, fields, table.c[column].is_not(None))


def _add_unique(table: Table, spec: TableSpec) -> None:
    for unique in spec.unique:
        condition = table.c.state.not_in(unique.unless_state) if unique.unless_state else None
        Index(
            f"uq_{spec.name}_{'_'.join(unique.fields)}",
            *(table.c[field] for field in unique.fields),
            unique=True,
            sqlite_where=condition,
        )


def _add(
    table: Table,
    fields: tuple[str, ...],
    words: tuple[str, ...],
    condition: sa.ColumnElement[bool] | None = None,
) -> None:
    """An index on `fields`, with `words` in its name, of the rows that fulfil the condition."""
    Index(
        f"ix_{table.name}_{'_'.join(words)}",
        *(table.c[field] for field in fields),
        sqlite_where=condition,
    )
