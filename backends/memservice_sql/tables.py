"""One table per record of `memservice.spi.schema`, with the records' field names as column names,
and two tables that index list columns.

* The database assigns keys, and never reuses one.
* A foreign key is a constraint if the child cannot outlive the parent. It is checked at commit, so
  that a transaction can erase rows in any order. References that may outlive their target
  (`superseded_by`, a task's session …) are plain integers.
* Every table has an index that starts with its workspace (`memservice_sql.indexes`), so that
  erasing a workspace scans no table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Index, MetaData, Table

from memservice.spi.schema import TABLES as SPECS
from memservice_sql.columns import (
    boolean,
    integer,
    json,
    loose_reference,
    reference,
    text,
    time,
    workspace_reference,
)
from memservice_sql.indexes import add_indexes
from memservice_sql.types import KEY, TEXT

metadata = MetaData(
    naming_convention={"fk": "fk_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"}
)
"""`memservice_sql.indexes` names the indexes."""


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
    text("uid"),
    text("slug"),
    text("v1_name"),
    text("state"),
    json("metadata"),
    json("configuration"),
    time("created_at"),
)
peers = _table(
    "peers",
    text("uid"),
    workspace_reference(),
    text("slug"),
    text("v1_name"),
    text("v1_role", null=True),
    text("kind"),
    json("metadata"),
    json("configuration"),
    time("created_at"),
)
peer_names = _table(
    "peer_names", workspace_reference(), reference("peer_key", "peers"), text("token")
)
sessions = _table(
    "sessions",
    text("uid"),
    workspace_reference(),
    text("slug"),
    reference("owner_key", "peers", null=True),
    text("state"),
    json("metadata"),
    json("configuration"),
    integer("message_count"),
    integer("token_total"),
    time("created_at"),
    Column("revision", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    Column("free_positions", sa.BigInteger, nullable=False, server_default=sa.text("0")),
)
members = _table(
    "members",
    workspace_reference(),
    reference("session_key", "sessions"),
    reference("peer_key", "peers"),
    text("session"),
    text("peer"),
    text("kind"),
    boolean("observe_me", null=True),
    boolean("observe_others", null=True),
    time("joined_at"),
    integer("joined_seq"),
    time("left_at", null=True),
    integer("left_seq", null=True),
)
messages = _table(
    "messages",
    text("uid"),
    workspace_reference(),
    reference("session_key", "sessions"),
    reference("author_key", "peers"),
    text("session"),
    text("author"),
    integer("seq"),
    text("content"),
    json("metadata"),
    json("internal"),
    integer("tokens"),
    integer("tokens_through"),
    time("created_at"),
    time("stored_at", null=True),
)
idempotency_keys = _table(
    "idempotency_keys",
    workspace_reference(),
    reference("session_key", "sessions"),
    text("digest"),
    text("request"),
    json("message_keys"),
    time("created_at"),
)
summaries = _table(
    "summaries",
    workspace_reference(),
    reference("session_key", "sessions"),
    text("kind"),
    text("content"),
    Column("message_key", KEY, nullable=False),
    text("message_uid"),
    integer("tokens"),
    text("reasoner"),
    text("model", null=True),
    time("created_at"),
)
collections = _table(
    "collections",
    workspace_reference(),
    reference("observer_key", "peers"),
    reference("observed_key", "peers"),
    text("observer"),
    text("observed"),
    integer("explicit_count"),
    integer("explicit_at_last_dream"),
    time("last_dream_at", null=True),
    time("created_at"),
)
cards = _table(
    "cards",
    workspace_reference(),
    reference("observer_key", "peers"),
    text("target"),
    json("lines"),
    json("given"),
    time("updated_at"),
)
conclusions = _table(
    "conclusions",
    text("uid"),
    workspace_reference(),
    reference("collection_key", "collections"),
    Column("observer_key", KEY, nullable=False),
    Column("observed_key", KEY, nullable=False),
    reference("session_key", "sessions", null=True),
    text("observer"),
    text("observed"),
    text("session", null=True),
    text("content"),
    text("fingerprint"),
    text("level"),
    text("state"),
    loose_reference("superseded_by"),
    time("deleted_at", null=True),
    integer("times_derived"),
    json("source_ids", null=True),
    json("message_keys"),
    json("internal"),
    json("metadata"),
    text("reasoner"),
    text("model", null=True),
    time("said_at"),
    time("created_at"),
    time("superseded_at", null=True),
    time("restored_at", null=True),
)
named_collections = _table(
    "named_collections",
    text("uid"),
    workspace_reference(),
    reference("owner_key", "peers"),
    text("name"),
    json("metadata"),
    time("created_at"),
)
documents = _table(
    "documents",
    text("uid"),
    workspace_reference(),
    reference("owner_key", "peers"),
    reference("collection_key", "named_collections"),
    text("content"),
    json("metadata"),
    time("created_at"),
)
metamessages = _table(
    "metamessages",
    text("uid"),
    workspace_reference(),
    reference("owner_key", "peers"),
    reference("session_key", "sessions", null=True),
    reference("message_key", "messages", null=True),
    text("label"),
    text("content"),
    json("metadata"),
    time("created_at"),
)
tasks = _table(
    "tasks",
    text("uid"),
    text("unit"),
    text("kind"),
    loose_reference("workspace_key"),
    loose_reference("session_key"),
    loose_reference("observer_key"),
    loose_reference("observed_key"),
    loose_reference("message_key"),
    json("payload"),
    text("state"),
    integer("attempts"),
    text("last_error", null=True),
    json("outcome"),
    text("request_id", null=True),
    time("not_before"),
    time("created_at"),
    time("finished_at", null=True),
)
leases = _table("leases", text("unit"), text("owner"), integer("number"), time("expires_at"))
scope_sessions = _table(
    "scope_sessions",
    workspace_reference(),
    reference("scope_key", "peers"),
    reference("session_key", "sessions"),
    text("session"),
    text("state"),
    integer("docs_copied", null=True),
    time("updated_at"),
)
spaces = _table(
    "spaces",
    workspace_reference(),
    text("kind"),
    text("embedder"),
    integer("dimension"),
    text("state"),
    time("created_at"),
)
webhook_endpoints = _table(
    "webhook_endpoints",
    text("uid"),
    workspace_reference(),
    text("url"),
    text("secret"),
    text("state"),
    integer("failures"),
    time("created_at"),
)
deliveries = _table(
    "deliveries",
    text("uid"),
    workspace_reference(),
    Column("endpoint_key", KEY, nullable=False),
    text("event_uid"),
    text("event"),
    text("body"),
    integer("attempt"),
    integer("status", null=True),
    text("error", null=True),
    integer("duration_ms", null=True),
    time("created_at"),
)
api_keys = _table(
    "api_keys",
    text("uid"),
    text("label", null=True),
    boolean("admin"),
    text("workspace", null=True),
    text("peer", null=True),
    text("session", null=True),
    time("expires_at", null=True),
    time("revoked_at", null=True),
    time("last_used_at", null=True),
    time("created_at"),
    text("workspace_uid", null=True),
    text("peer_uid", null=True),
    text("session_uid", null=True),
)
usage = _table(
    "usage",
    loose_reference("workspace_key"),
    text("day"),
    text("task"),
    text("provider"),
    text("model"),
    integer("input_tokens"),
    integer("output_tokens"),
    integer("cache_read_tokens"),
    integer("cache_write_tokens"),
    integer("duration_ms"),
    text("outcome"),
    time("created_at"),
    Column("reasoning_tokens", sa.BigInteger, nullable=False, server_default=sa.text("0")),
)
facts = _table("facts", text("name"), text("value"))
console_members = _table(
    "console_members",
    text("uid"),
    text("name"),
    text("password_hash"),
    text("role"),
    json("workspaces", null=True),
    text("state"),
    time("created_at"),
)
console_links = _table(
    "console_links",
    text("uid"),
    text("digest"),
    text("kind"),
    text("role", null=True),
    json("workspaces", null=True),
    text("member_uid", null=True),
    text("created_by", null=True),
    time("expires_at"),
    time("created_at"),
)
browser_sessions = _table(
    "browser_sessions",
    text("uid"),
    text("digest"),
    text("member_uid", null=True),
    json("claims", null=True),
    text("key_uid", null=True),
    text("address"),
    text("client"),
    time("expires_at"),
    time("created_at"),
)
sign_in_failures = _table(
    "sign_in_failures",
    text("subject"),
    integer("failures"),
    time("paused_until"),
    time("last_at"),
)
audit_entries = _table(
    "audit_entries",
    text("uid"),
    text("actor"),
    text("actor_uid", null=True),
    text("action"),
    text("target", null=True),
    text("workspace", null=True),
    text("address", null=True),
    json("detail"),
    time("created_at"),
)
erasures = _table(
    "erasures",
    text("uid"),
    text("kind"),
    loose_reference("workspace_key"),
    text("workspace"),
    text("workspace_uid"),
    text("session", null=True),
    text("target"),
    text("target_uid", null=True),
    text("requested_by"),
    json("options"),
    text("state"),
    text("task_uid"),
    json("counts"),
    time("created_at"),
    time("finished_at", null=True),
)


@dataclass(frozen=True, slots=True)
class ListTable:
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

add_indexes(metadata)

BY_RECORD: dict[type[Any], Table] = {spec.record: metadata.tables[spec.name] for spec in SPECS}
