"""The names by which callers may filter each resource, and the fields of records they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from memservice.domain.records import ACTIVE, LEVELS


class Kind(StrEnum):
    TEXT = "text"
    NUMBER = "number"
    TIME = "time"
    JSON = "json"
    LIST = "list"


class Stored(Struct, frozen=True):
    """A field of the record."""

    field: str
    kind: Kind = Kind.TEXT
    choices: tuple[str, ...] = ()
    """Equality with any other value is an error."""


class Fixed(Struct, frozen=True):
    """A text that is the same for every row in reach of the filter: `value`, or the slug of the
    route's workspace."""

    value: str | None = None
    choices: tuple[str, ...] = ()


class Flag(Struct, frozen=True):
    """A boolean, never null: true if the record's `field` is `when`."""

    field: str
    when: str


Column = Stored | Fixed | Flag


class Resource(Struct, frozen=True):
    name: str
    """Its name in error messages."""
    columns: Mapping[str, Column] = field(default_factory=dict)
    raw: bool = False
    """Whether stored names of columns are allowed too. It changes only the text of an error."""

    @property
    def needs_workspace(self) -> bool:
        return any(
            isinstance(column, Fixed) and column.value is None for column in self.columns.values()
        )


_CREATED_AT = Stored("created_at", Kind.TIME)
_METADATA = Stored("metadata", Kind.JSON)
_INTERNAL = Stored("internal", Kind.JSON)
_WORKSPACE = Fixed()

WORKSPACE = Resource(
    "Workspace", {"id": Stored("slug"), "created_at": _CREATED_AT, "metadata": _METADATA}
)

PEER = Resource(
    "Peer",
    {
        "id": Stored("slug"),
        "workspace_id": _WORKSPACE,
        "created_at": _CREATED_AT,
        "metadata": _METADATA,
    },
)

SESSION = Resource(
    "Session",
    {
        "id": Stored("slug"),
        "workspace_id": _WORKSPACE,
        "is_active": Flag("state", ACTIVE),
        "created_at": _CREATED_AT,
        "metadata": _METADATA,
    },
)

MESSAGE = Resource(
    "Message",
    {
        "peer_id": Stored("author"),
        "session_id": Stored("session"),
        "workspace_id": _WORKSPACE,
        "token_count": Stored("tokens", Kind.NUMBER),
        "created_at": _CREATED_AT,
        "metadata": _METADATA,
    },
)

CONCLUSION = Resource(
    "Conclusion",
    {
        "id": Stored("uid"),
        "content": Stored("content"),
        "observer_id": Stored("observer"),
        "observer": Stored("observer"),
        "observed_id": Stored("observed"),
        "observed": Stored("observed"),
        "session_id": Stored("session"),
        "session_name": Stored("session"),
        "workspace_id": _WORKSPACE,
        "workspace_name": _WORKSPACE,
        "level": Stored("level", choices=LEVELS),
        "times_derived": Stored("times_derived", Kind.NUMBER),
        "source_ids": Stored("source_ids", Kind.LIST),
        # Callers of generations 2 and 3 see the service's notes on a conclusion (premises,
        # pattern …) as its metadata.
        "metadata": _INTERNAL,
        "internal_metadata": _INTERNAL,
        "created_at": _CREATED_AT,
        "deleted_at": Stored("deleted_at", Kind.TIME),
        # Searches find a conclusion as soon as it is stored, so there is one state only.
        "sync_state": Fixed("synced", choices=("synced", "pending", "failed")),
    },
    raw=True,
)
