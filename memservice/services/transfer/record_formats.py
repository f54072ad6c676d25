"""The exported fields of each record: which identify a row, and which refer to other rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import fields

from memservice.domain import records as r
from memservice.spi.schema import BY_RECORD

REFERENCES: Mapping[str, type[Any]] = {
    "session_key": r.Session,
    "peer_key": r.Peer,
    "author_key": r.Peer,
    "observer_key": r.Peer,
    "observed_key": r.Peer,
    "owner_key": r.Peer,
    "scope_key": r.Peer,
    "message_key": r.Message,
    "endpoint_key": r.WebhookEndpoint,
}
"""Field name → record whose key the field contains, in any record. In a file it contains the
uid."""


class RecordFormat(Struct, frozen=True, dict=True):
    """One kind of row in the file."""

    name: str
    """The value of `type` in its lines."""
    record: type[Any]
    identity: tuple[str, ...] = ("uid",)
    """Fields that identify a row, including references."""
    other_references: tuple[tuple[str, type[Any]], ...] = ()
    many: tuple[tuple[str, type[Any]], ...] = ()
    """Fields with a list of keys."""
    derived: frozenset[str] = frozenset()
    """Fields that are not exported; import computes them."""
    added: frozenset[str] = frozenset()
    """Fields that exports of older releases do not have. They are null then."""

    def complete(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """The line with every field, if only `added` ones are missing."""
        return {**dict.fromkeys(self.added), **line}

    @cached_property
    def references(self) -> dict[str, type[Any]]:
        names = set(self.record.__struct_fields__)
        common = {
            name: record
            for name, record in REFERENCES.items()
            if name in names and name not in self.derived
        }
        return common | dict(self.other_references)

    @cached_property
    def lists(self) -> dict[str, type[Any]]:
        return dict(self.many)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The fields with the slug of a row that another field refers to."""
        return tuple(field for field in self.plain if f"{field}_key" in self.references)

    @cached_property
    def times(self) -> tuple[str, ...]:
        """The fields that are times, or null."""
        return tuple(
            field.name
            for field in fields(self.record)
            if datetime in (field.type, *get_args(field.type))
        )

    @cached_property
    def plain(self) -> tuple[str, ...]:
        """The fields that are exported unchanged."""
        other = {"key", "workspace_key", *self.references, *self.lists, *self.derived}
        return tuple(name for name in self.record.__struct_fields__ if name not in other)


def _format(record: type[Any], *identity: str, **how: Any) -> RecordFormat:
    return RecordFormat(BY_RECORD[record].name, record, identity or ("uid",), **how)


WORKSPACE = _format(r.Workspace)
SPACE = _format(r.Space, "kind", "embedder", "dimension")
TASK = _format(r.Task, derived=frozenset({"unit"}))
ENDPOINT = _format(r.WebhookEndpoint)
DELIVERY = _format(r.Delivery)
KEY = _format(r.ApiKey, derived=frozenset({"workspace_uid", "peer_uid", "session_uid"}))

ROWS: tuple[RecordFormat, ...] = (
    _format(r.Peer),
    _format(r.PeerName, "peer_key", "token"),
    _format(
        r.Session,
        derived=frozenset({"message_count", "token_total", "revision", "free_positions"}),
    ),
    _format(r.Member, "session_key", "peer_key"),
    _format(r.ScopeSession, "scope_key", "session_key"),
    _format(r.Message, added=frozenset({"stored_at"})),
    _format(r.IdempotencyKey, "session_key", "digest", many=(("message_keys", r.Message),)),
    _format(r.Summary, "session_key", "kind", derived=frozenset({"message_uid"})),
    _format(r.Collection, "observer_key", "observed_key", derived=frozenset({"explicit_count"})),
    _format(r.Card, "observer_key", "target"),
    _format(
        r.Conclusion,
        other_references=(("superseded_by", r.Conclusion),),
        many=(("message_keys", r.Message),),
        derived=frozenset({"collection_key"}),
        added=frozenset({"superseded_at", "restored_at"}),
    ),
    _format(r.NamedCollection),
    _format(r.Document, other_references=(("collection_key", r.NamedCollection),)),
    _format(r.Metamessage),
)
"""Always exported, parents before children. A workspace's spaces and their vectors follow, then its
tasks."""

SECRET: tuple[RecordFormat, ...] = (ENDPOINT, DELIVERY, KEY)
"""Exported only with secrets: endpoints and their deliveries, and the keys of the workspace."""

NOT_IN_ROWS: frozenset[type[Any]] = frozenset(
    {
        r.Workspace,
        r.Lease,
        r.Usage,
        r.Fact,
        r.Space,
        r.Task,
        r.ConsoleMember,
        r.ConsoleLink,
        r.BrowserSession,
        r.SignInFailures,
        r.AuditEntry,
        r.Erasure,
    }
)
"""Records that do not belong to one workspace, or have their own position in the file."""

VECTOR = "vectors"
"""The type of a line with the vector of a row."""

SPACED: Mapping[str, type[Any]] = {
    "message": r.Message,
    "conclusion": r.Conclusion,
    "document": r.Document,
}
"""Kind of a space → the record of its rows."""

FORMATS: Mapping[str, RecordFormat] = {
    record_format.name: record_format for record_format in (WORKSPACE, *ROWS, SPACE, *SECRET, TASK)
}
"""`type` of a line → its format."""


def name_of(field: str) -> str:
    """The name in the file of a field that refers to another row, or to several."""
    if field.endswith("_keys"):
        return f"{field[:-5]}_uids"
    return f"{field[:-4]}_uid" if field.endswith("_key") else field
