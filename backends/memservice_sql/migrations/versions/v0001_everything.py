"""Everything: workspaces, peers, sessions and messages, conclusions, the tables of generation 1,
background work, keys and ledgers.

Revision 0001, the first.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from memservice_sql.migrations.words import (
    boolean,
    create,
    index,
    integer,
    json,
    loose,
    ref,
    text,
    time,
    unique,
)
from memservice_sql.types import KEY, TEXT

revision = "0001"
down_revision = None


def upgrade() -> None:
    _create_tables()
    _create_list_tables()
    _create_indexes()
    op.get_context().config.attributes["create_indexes"](op.get_bind())  # type: ignore[union-attr]


def _create_tables() -> None:
    create(
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
    )
    create("facts", text("name"), text("value"))
    create("leases", text("unit"), text("owner"), integer("number"), time("expires_at"))
    create(
        "tasks",
        text("uid"),
        text("unit"),
        text("kind"),
        loose("workspace_key", null=True),
        loose("session_key", null=True),
        loose("observer_key", null=True),
        loose("observed_key", null=True),
        loose("message_key", null=True),
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
    create(
        "usage",
        loose("workspace_key", null=True),
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
    )
    create(
        "workspaces",
        text("uid"),
        text("slug"),
        text("v1_name"),
        text("state"),
        json("metadata"),
        json("configuration"),
        time("created_at"),
    )
    create(
        "deliveries",
        text("uid"),
        ref("workspace_key", "workspaces"),
        loose("endpoint_key"),
        text("event_uid"),
        text("event"),
        text("body"),
        integer("attempt"),
        integer("status", null=True),
        text("error", null=True),
        integer("duration_ms", null=True),
        time("created_at"),
    )
    create(
        "peers",
        text("uid"),
        ref("workspace_key", "workspaces"),
        text("slug"),
        text("v1_name"),
        text("v1_role", null=True),
        text("kind"),
        json("metadata"),
        json("configuration"),
        time("created_at"),
    )
    create(
        "spaces",
        ref("workspace_key", "workspaces"),
        text("kind"),
        text("embedder"),
        integer("dimension"),
        text("state"),
        time("created_at"),
    )
    create(
        "webhook_endpoints",
        text("uid"),
        ref("workspace_key", "workspaces"),
        text("url"),
        text("secret"),
        text("state"),
        integer("failures"),
        time("created_at"),
    )
    create(
        "cards",
        ref("workspace_key", "workspaces"),
        ref("observer_key", "peers"),
        text("target"),
        json("lines"),
        json("given"),
        time("updated_at"),
    )
    create(
        "collections",
        ref("workspace_key", "workspaces"),
        ref("observer_key", "peers"),
        ref("observed_key", "peers"),
        text("observer"),
        text("observed"),
        integer("explicit_count"),
        integer("explicit_at_last_dream"),
        time("last_dream_at", null=True),
        time("created_at"),
    )
    create(
        "named_collections",
        text("uid"),
        ref("workspace_key", "workspaces"),
        ref("owner_key", "peers"),
        text("name"),
        json("metadata"),
        time("created_at"),
    )
    create(
        "peer_names", ref("workspace_key", "workspaces"), ref("peer_key", "peers"), text("token")
    )
    create(
        "sessions",
        text("uid"),
        ref("workspace_key", "workspaces"),
        text("slug"),
        ref("owner_key", "peers", null=True),
        text("state"),
        json("metadata"),
        json("configuration"),
        integer("message_count"),
        integer("token_total"),
        time("created_at"),
    )
    create(
        "conclusions",
        text("uid"),
        ref("workspace_key", "workspaces"),
        ref("collection_key", "collections"),
        loose("observer_key"),
        loose("observed_key"),
        ref("session_key", "sessions", null=True),
        text("observer"),
        text("observed"),
        text("session", null=True),
        text("content"),
        text("fingerprint"),
        text("level"),
        text("state"),
        loose("superseded_by", null=True),
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
    )
    create(
        "documents",
        text("uid"),
        ref("workspace_key", "workspaces"),
        ref("owner_key", "peers"),
        ref("collection_key", "named_collections"),
        text("content"),
        json("metadata"),
        time("created_at"),
    )
    create(
        "members",
        ref("workspace_key", "workspaces"),
        ref("session_key", "sessions"),
        ref("peer_key", "peers"),
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
    create(
        "messages",
        text("uid"),
        ref("workspace_key", "workspaces"),
        ref("session_key", "sessions"),
        ref("author_key", "peers"),
        text("session"),
        text("author"),
        integer("seq"),
        text("content"),
        json("metadata"),
        json("internal"),
        integer("tokens"),
        integer("tokens_through"),
        time("created_at"),
    )
    create(
        "idempotency_keys",
        ref("workspace_key", "workspaces"),
        ref("session_key", "sessions"),
        text("digest"),
        text("request"),
        json("message_keys"),
        time("created_at"),
    )
    create(
        "scope_sessions",
        ref("workspace_key", "workspaces"),
        ref("scope_key", "peers"),
        ref("session_key", "sessions"),
        text("session"),
        text("state"),
        integer("docs_copied", null=True),
        time("updated_at"),
    )
    create(
        "summaries",
        ref("workspace_key", "workspaces"),
        ref("session_key", "sessions"),
        text("kind"),
        text("content"),
        loose("message_key"),
        text("message_uid"),
        integer("tokens"),
        text("reasoner"),
        text("model", null=True),
        time("created_at"),
    )
    create(
        "metamessages",
        text("uid"),
        ref("workspace_key", "workspaces"),
        ref("owner_key", "peers"),
        ref("session_key", "sessions", null=True),
        ref("message_key", "messages", null=True),
        text("label"),
        text("content"),
        json("metadata"),
        time("created_at"),
    )


def _create_list_tables() -> None:
    """The elements of list columns, one row each."""
    for name, item in (
        ("conclusion_sources", sa.Column("source_uid", TEXT)),
        ("conclusion_messages", sa.Column("message_key", KEY)),
    ):
        op.create_table(
            name,
            sa.Column("conclusion_key", KEY, nullable=False, autoincrement=False),
            item,
            sa.PrimaryKeyConstraint("conclusion_key", item.name, name=f"pk_{name}"),
            sa.ForeignKeyConstraint(
                ["conclusion_key"],
                ["conclusions.key"],
                name=f"fk_{name}_conclusion_key",
                ondelete="CASCADE",
            ),
            sqlite_with_rowid=False,
        )
        op.create_index(f"ix_{name}_{item.name}", name, [item.name, "conclusion_key"])


def _create_indexes() -> None:
    unique("api_keys", "uid")
    index("api_keys", "created_at", "key")
    unique("facts", "name")
    unique("leases", "unit")
    unique("tasks", "uid")
    index("tasks", "not_before", "key", only="pending")
    index("tasks", "unit", "key", "not_before", only="pending")
    index("tasks", "finished_at", only="done")
    index("tasks", "finished_at", only="failed")
    index("tasks", "workspace_key", "kind", "state", "session_key", "unit")
    index("usage", "created_at")
    index("usage", "day")
    index("usage", "workspace_key", "day")
    unique("workspaces", "slug", but="deleting")
    unique("workspaces", "uid")
    unique("workspaces", "v1_name", but="deleting")
    index("workspaces", "created_at", "key")
    index("workspaces", "slug", "state")
    index("workspaces", "v1_name", "state")
    unique("deliveries", "uid")
    index("deliveries", "created_at")
    index("deliveries", "endpoint_key", "key")
    index("deliveries", "workspace_key")
    unique("peers", "uid")
    unique("peers", "workspace_key", "slug")
    unique("peers", "workspace_key", "v1_name")
    index("peers", "workspace_key", "created_at", "key")
    unique("spaces", "workspace_key", "kind", "embedder", "dimension")
    unique("webhook_endpoints", "uid")
    unique("webhook_endpoints", "workspace_key", "url")
    index("webhook_endpoints", "workspace_key", "created_at", "key")
    unique("cards", "observer_key", "target")
    index("cards", "workspace_key")
    unique("collections", "observer_key", "observed_key")
    index("collections", "observed_key")
    index("collections", "workspace_key")
    unique("named_collections", "owner_key", "name")
    unique("named_collections", "uid")
    index("named_collections", "workspace_key", "created_at", "key")
    unique("peer_names", "workspace_key", "token", "peer_key")
    index("peer_names", "peer_key")
    unique("sessions", "uid")
    unique("sessions", "workspace_key", "slug")
    index("sessions", "owner_key", "created_at", "key")
    index("sessions", "workspace_key", "created_at", "key")
    unique("conclusions", "uid")
    index("conclusions", "observer_key", "observed_key", "state", "created_at", "key")
    index("conclusions", "collection_key", "state", "level", "fingerprint")
    index("conclusions", "key", "deleted_at", only="deleted")
    index("conclusions", "session_key", "state")
    index("conclusions", "workspace_key", "observed", "state", "created_at", "key")
    index("conclusions", "workspace_key", "state", "created_at", "key")
    unique("documents", "uid")
    index("documents", "collection_key", "created_at", "key")
    index("documents", "owner_key")
    index("documents", "workspace_key")
    unique("members", "session_key", "peer_key")
    index("members", "peer_key", "session_key")
    index("members", "workspace_key")
    unique("messages", "session_key", "seq")
    unique("messages", "uid")
    index("messages", "author_key", "key")
    index("messages", "session_key", "tokens_through", "seq")
    index("messages", "workspace_key", "key")
    unique("idempotency_keys", "session_key", "digest")
    index("idempotency_keys", "created_at")
    index("idempotency_keys", "workspace_key")
    unique("scope_sessions", "scope_key", "session_key")
    index("scope_sessions", "session_key")
    index("scope_sessions", "workspace_key")
    unique("summaries", "session_key", "kind")
    index("summaries", "workspace_key")
    unique("metamessages", "uid")
    index("metamessages", "message_key", "created_at", "key")
    index("metamessages", "owner_key", "created_at", "key")
    index("metamessages", "session_key", "created_at", "key")
    index("metamessages", "workspace_key")
