"""One table per record of `memservice.spi.schema`, with the records' field names as column names,
and two tables that index list columns.

* The database assigns keys, and never reuses one.
* A foreign key is a constraint if the child cannot outlive the parent. It is checked at commit, so
  that a transaction can erase rows in any order. References that may outlive their target
  (`superseded_by`, a task's session …) are plain integers.
* Every table has an index that starts with its workspace, so that erasing a workspace scans no
  table.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Column, Index, MetaData, Table

from memservice.domain import records as r
from memservice.spi.schema import TABLES as SPECS
from memservice.spi.schema import TableSpec
from memservice_sql.types import JSON, KEY, TEXT, UtcDateTime

metadata = MetaData(
    naming_convention={"fk": "fk_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"}
)
"""`_unique` and `_index` name the indexes."""


def _text(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, TEXT, nullable=null)


def _int(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, sa.BigInteger, nullable=null)


def _bool(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, sa.Boolean, nullable=null)


def _json(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, JSON, nullable=null)


def _time(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, UtcDateTime, nullable=null)


def _ref(name: str, table: str, *, null: bool = False) -> Column[Any]:
    """A reference to a row that exists as long as the referring row."""
    return Column(
        name,
        KEY,
        sa.ForeignKey(f"{table}.key", deferrable=True, initially="DEFERRED"),
        nullable=null,
    )


def _loose(name: str) -> Column[Any]:
    """A reference to a row that may be erased first."""
    return Column(name, KEY, nullable=True)


def _workspace() -> Column[Any]:
    return _ref("workspace_key", "workspaces")


def _table(name: str, *columns: Column[Any]) -> Table:
    return Table(
        name,
        metadata,
        Column("key", KEY, primary_key=True, autoincrement=True),
        *columns,
        sqlite_autoincrement=True,
    )


workspaces = _table(
    "workspaces",
    _text("uid"),
    _text("slug"),
    _text("v1_name"),
    _text("state"),
    _json("metadata"),
    _json("configuration"),
    _time("created_at"),
)
peers = _table(
    "peers",
    _text("uid"),
    _workspace(),
    _text("slug"),
    _text("v1_name"),
    _text("v1_role", null=True),
    _text("kind"),
    _json("metadata"),
    _json("configuration"),
    _time("created_at"),
)
peer_names = _table("peer_names", _workspace(), _ref("peer_key", "peers"), _text("token"))
sessions = _table(
    "sessions",
    _text("uid"),
    _workspace(),
    _text("slug"),
    _ref("owner_key", "peers", null=True),
    _text("state"),
    _json("metadata"),
    _json("configuration"),
    _int("message_count"),
    _int("token_total"),
    _time("created_at"),
    Column("revision", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    Column("free_positions", sa.BigInteger, nullable=False, server_default=sa.text("0")),
)
members = _table(
    "members",
    _workspace(),
    _ref("session_key", "sessions"),
    _ref("peer_key", "peers"),
    _text("session"),
    _text("peer"),
    _text("kind"),
    _bool("observe_me", null=True),
    _bool("observe_others", null=True),
    _time("joined_at"),
    _int("joined_seq"),
    _time("left_at", null=True),
    _int("left_seq", null=True),
)
messages = _table(
    "messages",
    _text("uid"),
    _workspace(),
    _ref("session_key", "sessions"),
    _ref("author_key", "peers"),
    _text("session"),
    _text("author"),
    _int("seq"),
    _text("content"),
    _json("metadata"),
    _json("internal"),
    _int("tokens"),
    _int("tokens_through"),
    _time("created_at"),
    _time("stored_at", null=True),
)
idempotency_keys = _table(
    "idempotency_keys",
    _workspace(),
    _ref("session_key", "sessions"),
    _text("digest"),
    _text("request"),
    _json("message_keys"),
    _time("created_at"),
)
summaries = _table(
    "summaries",
    _workspace(),
    _ref("session_key", "sessions"),
    _text("kind"),
    _text("content"),
    Column("message_key", KEY, nullable=False),
    _text("message_uid"),
    _int("tokens"),
    _text("reasoner"),
    _text("model", null=True),
    _time("created_at"),
)
collections = _table(
    "collections",
    _workspace(),
    _ref("observer_key", "peers"),
    _ref("observed_key", "peers"),
    _text("observer"),
    _text("observed"),
    _int("explicit_count"),
    _int("explicit_at_last_dream"),
    _time("last_dream_at", null=True),
    _time("created_at"),
)
cards = _table(
    "cards",
    _workspace(),
    _ref("observer_key", "peers"),
    _text("target"),
    _json("lines"),
    _json("given"),
    _time("updated_at"),
)
conclusions = _table(
    "conclusions",
    _text("uid"),
    _workspace(),
    _ref("collection_key", "collections"),
    Column("observer_key", KEY, nullable=False),
    Column("observed_key", KEY, nullable=False),
    _ref("session_key", "sessions", null=True),
    _text("observer"),
    _text("observed"),
    _text("session", null=True),
    _text("content"),
    _text("fingerprint"),
    _text("level"),
    _text("state"),
    _loose("superseded_by"),
    _time("deleted_at", null=True),
    _int("times_derived"),
    _json("source_ids", null=True),
    _json("message_keys"),
    _json("internal"),
    _json("metadata"),
    _text("reasoner"),
    _text("model", null=True),
    _time("said_at"),
    _time("created_at"),
    _time("superseded_at", null=True),
    _time("restored_at", null=True),
)
named_collections = _table(
    "named_collections",
    _text("uid"),
    _workspace(),
    _ref("owner_key", "peers"),
    _text("name"),
    _json("metadata"),
    _time("created_at"),
)
documents = _table(
    "documents",
    _text("uid"),
    _workspace(),
    _ref("owner_key", "peers"),
    _ref("collection_key", "named_collections"),
    _text("content"),
    _json("metadata"),
    _time("created_at"),
)
metamessages = _table(
    "metamessages",
    _text("uid"),
    _workspace(),
    _ref("owner_key", "peers"),
    _ref("session_key", "sessions", null=True),
    _ref("message_key", "messages", null=True),
    _text("label"),
    _text("content"),
    _json("metadata"),
    _time("created_at"),
)
tasks = _table(
    "tasks",
    _text("uid"),
    _text("unit"),
    _text("kind"),
    _loose("workspace_key"),
    _loose("session_key"),
    _loose("observer_key"),
    _loose("observed_key"),
    _loose("message_key"),
    _json("payload"),
    _text("state"),
    _int("attempts"),
    _text("last_error", null=True),
    _json("outcome"),
    _text("request_id", null=True),
    _time("not_before"),
    _time("created_at"),
    _time("finished_at", null=True),
)
leases = _table("leases", _text("unit"), _text("owner"), _int("number"), _time("expires_at"))
scope_sessions = _table(
    "scope_sessions",
    _workspace(),
    _ref("scope_key", "peers"),
    _ref("session_key", "sessions"),
    _text("session"),
    _text("state"),
    _int("docs_copied", null=True),
    _time("updated_at"),
)
spaces = _table(
    "spaces",
    _workspace(),
    _text("kind"),
    _text("embedder"),
    _int("dimension"),
    _text("state"),
    _time("created_at"),
)
webhook_endpoints = _table(
    "webhook_endpoints",
    _text("uid"),
    _workspace(),
    _text("url"),
    _text("secret"),
    _text("state"),
    _int("failures"),
    _time("created_at"),
)
deliveries = _table(
    "deliveries",
    _text("uid"),
    _workspace(),
    Column("endpoint_key", KEY, nullable=False),
    _text("event_uid"),
    _text("event"),
    _text("body"),
    _int("attempt"),
    _int("status", null=True),
    _text("error", null=True),
    _int("duration_ms", null=True),
    _time("created_at"),
)
api_keys = _table(
    "api_keys",
    _text("uid"),
    _text("label", null=True),
    _bool("admin"),
    _text("workspace", null=True),
    _text("peer", null=True),
    _text("session", null=True),
    _time("expires_at", null=True),
    _time("revoked_at", null=True),
    _time("last_used_at", null=True),
    _time("created_at"),
    _text("workspace_uid", null=True),
    _text("peer_uid", null=True),
    _text("session_uid", null=True),
)
usage = _table(
    "usage",
    _loose("workspace_key"),
    _text("day"),
    _text("task"),
    _text("provider"),
    _text("model"),
    _int("input_tokens"),
    _int("output_tokens"),
    _int("cache_read_tokens"),
    _int("cache_write_tokens"),
    _int("duration_ms"),
    _text("outcome"),
    _time("created_at"),
    Column("reasoning_tokens", sa.BigInteger, nullable=False, server_default=sa.text("0")),
)
facts = _table("facts", _text("name"), _text("value"))
console_members = _table(
    "console_members",
    _text("uid"),
    _text("name"),
    _text("password_hash"),
    _text("role"),
    _json("workspaces", null=True),
    _text("state"),
    _time("created_at"),
)
console_links = _table(
    "console_links",
    _text("uid"),
    _text("digest"),
    _text("kind"),
    _text("role", null=True),
    _json("workspaces", null=True),
    _text("member_uid", null=True),
    _text("created_by", null=True),
    _time("expires_at"),
    _time("created_at"),
)
browser_sessions = _table(
    "browser_sessions",
    _text("uid"),
    _text("digest"),
    _text("member_uid", null=True),
    _json("claims", null=True),
    _text("key_uid", null=True),
    _text("address"),
    _text("client"),
    _time("expires_at"),
    _time("created_at"),
)
sign_in_failures = _table(
    "sign_in_failures",
    _text("subject"),
    _int("failures"),
    _time("paused_until"),
    _time("last_at"),
)
audit_entries = _table(
    "audit_entries",
    _text("uid"),
    _text("actor"),
    _text("actor_uid", null=True),
    _text("action"),
    _text("target", null=True),
    _text("workspace", null=True),
    _text("address", null=True),
    _json("detail"),
    _time("created_at"),
)
erasures = _table(
    "erasures",
    _text("uid"),
    _text("kind"),
    _loose("workspace_key"),
    _text("workspace"),
    _text("workspace_uid"),
    _text("session", null=True),
    _text("target"),
    _text("target_uid", null=True),
    _text("requested_by"),
    _json("options"),
    _text("state"),
    _text("task_uid"),
    _json("counts"),
    _time("created_at"),
    _time("finished_at", null=True),
)


class ListTable(Struct, frozen=True):
    """The elements of a list column, one row each, so that `Holds` can use an index."""

    owner: Table
    field: str
    table: Table
    parent: Column[Any]
    item: Column[Any]
    kind: type


def _list_table(
    name: str, owner: Table, field: str, parent: str, item: Column[Any], kind: type
) -> ListTable:
    up = Column(
        parent,
        KEY,
        sa.ForeignKey(owner.c.key, ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    )
    table = Table(name, metadata, up, item, sqlite_with_rowid=False)
    Index(f"ix_{name}_{item.name}", item, up)
    return ListTable(owner, field, table, up, item, kind)


conclusion_sources = _list_table(
    "conclusion_sources",
    conclusions,
    "source_ids",
    "conclusion_key",
    Column("source_uid", TEXT, primary_key=True),
    str,
)
conclusion_messages = _list_table(
    "conclusion_messages",
    conclusions,
    "message_keys",
    "conclusion_key",
    Column("message_key", KEY, primary_key=True, autoincrement=False),
    int,
)
LIST_TABLES: dict[str, tuple[ListTable, ...]] = {
    "conclusions": (conclusion_sources, conclusion_messages)
}
"""By name of the owning table."""


# Conditions are named for SQLite alone. SQLAlchemy imports a dialect that is named, and that of
# PostgreSQL takes 46 ms in each process. `memservice_sql.creating` uses them for both.


def _unique(spec: TableSpec) -> None:
    table = metadata.tables[spec.name]
    for unique in spec.unique:
        condition = table.c.state.not_in(unique.unless_state) if unique.unless_state else None
        Index(
            f"uq_{spec.name}_{'_'.join(unique.fields)}",
            *(table.c[field] for field in unique.fields),
            unique=True,
            sqlite_where=condition,
        )


def _index(table: Table, *fields: str, state: str | None = None, filled: str | None = None) -> None:
    """An index on `fields`; with `state`, of the rows in that state only; with `filled`, of the
    rows with a value in that column only."""
    condition: sa.ColumnElement[bool] | None = None
    if state is not None:
        condition = table.c.state == state
    elif filled is not None:
        condition = table.c[filled].is_not(None)
    Index(
        f"ix_{table.name}_{'_'.join(fields if state is None else (state, *fields))}",
        *(table.c[field] for field in fields),
        sqlite_where=condition,
    )


for _spec in SPECS:
    _unique(_spec)

_index(workspaces, "slug", "state")
_index(workspaces, "v1_name", "state")
_index(workspaces, "created_at", "key")
_index(peers, "workspace_key", "created_at", "key")
_index(peer_names, "peer_key")
_index(sessions, "workspace_key", "created_at", "key")
_index(sessions, "workspace_key", "state")
_index(sessions, "owner_key", "created_at", "key")
_index(members, "workspace_key")
_index(members, "peer_key", "session_key")
_index(messages, "workspace_key", "key")
_index(messages, "session_key", "tokens_through", "seq")
_index(messages, "author_key", "key")
_index(messages, "session_key", "author_key", "key")
_index(idempotency_keys, "workspace_key")
_index(idempotency_keys, "created_at")
_index(summaries, "workspace_key")
_index(collections, "workspace_key")
_index(collections, "observed_key")
_index(cards, "workspace_key")
_index(conclusions, "workspace_key", "state", "created_at", "key")
_index(conclusions, "workspace_key", "observed", "state", "created_at", "key")
_index(conclusions, "collection_key", "state", "level", "fingerprint")
_index(conclusions, "observer_key", "observed_key", "state", "created_at", "key")
_index(conclusions, "session_key", "state")
_index(conclusions, "key", "deleted_at", state=r.DELETED)
_index(conclusions, "workspace_key", "restored_at", filled="restored_at")
_index(named_collections, "workspace_key", "created_at", "key")
_index(documents, "workspace_key")
_index(documents, "owner_key")
_index(documents, "collection_key", "created_at", "key")
_index(metamessages, "workspace_key")
_index(metamessages, "owner_key", "created_at", "key")
_index(metamessages, "session_key", "created_at", "key")
_index(metamessages, "message_key", "created_at", "key")
_index(tasks, "unit", "key", "not_before", state=r.PENDING)
_index(tasks, "not_before", "key", state=r.PENDING)
_index(tasks, "workspace_key", "kind", "not_before", "key", state=r.PENDING)
_index(tasks, "finished_at", state=r.DONE)
_index(tasks, "finished_at", state=r.FAILED)
_index(tasks, "workspace_key", "kind", "state", "session_key", "unit")
_index(tasks, "workspace_key", "key")
_index(tasks, "unit", "key", state=r.FAILED)
_index(scope_sessions, "workspace_key")
_index(scope_sessions, "session_key")
_index(webhook_endpoints, "workspace_key", "created_at", "key")
_index(deliveries, "workspace_key")
_index(deliveries, "endpoint_key", "key")
_index(deliveries, "created_at")
_index(api_keys, "created_at", "key")
_index(api_keys, "workspace", "session")
_index(usage, "workspace_key", "day")
_index(usage, "day")
_index(usage, "created_at")
_index(console_members, "created_at", "key")
_index(console_links, "expires_at")
_index(console_links, "member_uid")
_index(browser_sessions, "member_uid", "created_at", "key")
_index(browser_sessions, "key_uid")
_index(browser_sessions, "expires_at")
_index(sign_in_failures, "last_at")
_index(audit_entries, "created_at", "key")
_index(erasures, "workspace_key", "created_at", "key")
_index(erasures, "created_at", "key")
_index(erasures, "target_uid")
_index(erasures, "task_uid")
_index(audit_entries, "actor_uid", "created_at", "key")

BY_RECORD: dict[type[Any], Table] = {spec.record: metadata.tables[spec.name] for spec in SPECS}
