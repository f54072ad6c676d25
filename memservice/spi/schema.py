"""The tables of a storage and their unique constraints."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from memservice.domain import records as r


class Unique(Struct, frozen=True):
    """No two rows agree on all `fields`. Rows with a null among them are exempt, as are rows whose
    state is in `unless_state`."""

    fields: tuple[str, ...]
    unless_state: tuple[str, ...] = ()


class TableSpec(Struct, frozen=True):
    name: str
    record: type[Any]
    unique: tuple[Unique, ...] = ()


def _u(*fields: str, unless: tuple[str, ...] = ()) -> Unique:
    return Unique(fields, unless)


TABLES: tuple[TableSpec, ...] = (
    TableSpec(
        "workspaces",
        r.Workspace,
        (_u("uid"), _u("slug", unless=(r.DELETING,)), _u("v1_name", unless=(r.DELETING,))),
    ),
    TableSpec(
        "peers", r.Peer, (_u("uid"), _u("workspace_key", "slug"), _u("workspace_key", "v1_name"))
    ),
    TableSpec("peer_names", r.PeerName, (_u("workspace_key", "token", "peer_key"),)),
    TableSpec("sessions", r.Session, (_u("uid"), _u("workspace_key", "slug"))),
    TableSpec("members", r.Member, (_u("session_key", "peer_key"),)),
    TableSpec("messages", r.Message, (_u("uid"), _u("session_key", "seq"))),
    TableSpec("idempotency_keys", r.IdempotencyKey, (_u("session_key", "digest"),)),
    TableSpec("summaries", r.Summary, (_u("session_key", "kind"),)),
    TableSpec("collections", r.Collection, (_u("observer_key", "observed_key"),)),
    TableSpec("cards", r.Card, (_u("observer_key", "target"),)),
    TableSpec("conclusions", r.Conclusion, (_u("uid"),)),
    TableSpec("named_collections", r.NamedCollection, (_u("uid"), _u("owner_key", "name"))),
    TableSpec("documents", r.Document, (_u("uid"),)),
    TableSpec("metamessages", r.Metamessage, (_u("uid"),)),
    TableSpec("tasks", r.Task, (_u("uid"),)),
    TableSpec("leases", r.Lease, (_u("unit"),)),
    TableSpec("scope_sessions", r.ScopeSession, (_u("scope_key", "session_key"),)),
    TableSpec("spaces", r.Space, (_u("workspace_key", "kind", "embedder", "dimension"),)),
    TableSpec("webhook_endpoints", r.WebhookEndpoint, (_u("uid"), _u("workspace_key", "url"))),
    TableSpec("deliveries", r.Delivery, (_u("uid"),)),
    TableSpec("api_keys", r.ApiKey, (_u("uid"),)),
    TableSpec("usage", r.Usage),
    TableSpec("console_members", r.ConsoleMember, (_u("uid"), _u("name"))),
    TableSpec("console_links", r.ConsoleLink, (_u("uid"), _u("digest"))),
    TableSpec("browser_sessions", r.BrowserSession, (_u("uid"), _u("digest"))),
    TableSpec("sign_in_failures", r.SignInFailures, (_u("subject"),)),
    TableSpec("audit_entries", r.AuditEntry, (_u("uid"),)),
    TableSpec("erasures", r.Erasure, (_u("uid"),)),
    TableSpec("facts", r.Fact, (_u("name"),)),
)

BY_RECORD: dict[type[Any], TableSpec] = {spec.record: spec for spec in TABLES}
