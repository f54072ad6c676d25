"""Workspaces, peers, sessions, messages, and what sums messages up."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

JsonObject = dict[str, Any]

ACTIVE, ARCHIVED, DELETING = "active", "archived", "deleting"
"""States of a session. A workspace is either active or being deleted."""

PEER, SCOPE, ERASED = "peer", "scope", "erased"
"""Kinds of peer. A scope is a hidden peer named `scope.<name>` that observes sessions and writes no
messages. An erased one is named `erased.<uid>` until its last row is erased."""

SCOPE_PREFIX, ERASED_PREFIX = "scope.", "erased."

SHORT, LONG = "short", "long"
"""Kinds of summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    key: int = 0
    uid: str
    slug: str
    v1_name: str
    state: str = ACTIVE
    metadata: JsonObject = field(default_factory=dict)
    configuration: JsonObject = field(default_factory=dict)
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    key: int = 0
    uid: str
    workspace_key: int
    slug: str
    v1_name: str
    v1_role: str | None = None
    """`assistant` marks the hidden author of generation 1's `is_user: false` messages."""
    kind: str = PEER
    metadata: JsonObject = field(default_factory=dict)
    configuration: JsonObject = field(default_factory=dict)
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerName:
    """One word by which queries may name a peer (a case-folded token of its slug or of
    `metadata.name`)."""

    key: int = 0
    workspace_key: int
    peer_key: int
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    key: int = 0
    uid: str
    workspace_key: int
    slug: str
    owner_key: int | None = None
    """The peer that owns a session created by generation 1; null for other sessions."""
    state: str = ACTIVE
    metadata: JsonObject = field(default_factory=dict)
    configuration: JsonObject = field(default_factory=dict)
    message_count: int = 0
    """Position of the newest message. The `seq` of messages are exactly 1..message_count, but for
    `free_positions`."""
    token_total: int = 0
    """Sum of the messages' `tokens`, equal to the newest message's `tokens_through`."""
    created_at: datetime
    revision: int = 0
    """How often stored messages of the session were changed, moved or erased. With the same
    revision, the first n messages are the same."""
    free_positions: int = 0
    """Positions up to `message_count` that have no message: those of erased messages until a task
    has closed the gaps, and those that an import fills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One peer's membership of one session. The row stays after the peer leaves (with
    `left_at`)."""

    key: int = 0
    workspace_key: int
    session_key: int
    peer_key: int
    session: str
    peer: str
    kind: str = PEER
    """The peer's kind: scopes are members too, and most reads leave them out."""
    observe_me: bool | None = None
    observe_others: bool | None = None
    joined_at: datetime
    joined_seq: int = 0
    """The session's newest message when it joined (0: there was none). The peer was present for the
    later ones."""
    left_at: datetime | None = None
    left_seq: int | None = None
    """The session's newest message when it left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    key: int = 0
    uid: str
    workspace_key: int
    session_key: int
    author_key: int
    session: str
    author: str
    seq: int
    """Position in the session, dense from 1. A position, not an identity."""
    content: str
    metadata: JsonObject = field(default_factory=dict)
    internal: JsonObject = field(default_factory=dict)
    """The service's own notes on the message (facts of the uploaded file); in no response."""
    tokens: int
    tokens_through: int
    """Sum of `tokens` over seq 1..seq."""
    created_at: datetime
    """The caller's value, for display and time filters. Nothing is ordered by it."""
    stored_at: datetime | None = None
    """When it was stored; null for messages that were stored before releases recorded it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """A request that stored messages under a key chosen by the caller. A repetition stores
    nothing."""

    key: int = 0
    workspace_key: int
    session_key: int
    digest: str
    """Digest of the caller's key."""
    request: str
    """Digest of the request: a different request under the same key is an error."""
    message_keys: list[int]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The newest summary of a session, one per kind. It covers seq 1 to the covered message's
    seq."""

    key: int = 0
    workspace_key: int
    session_key: int
    kind: str
    content: str
    message_key: int
    message_uid: str
    tokens: int
    reasoner: str
    model: str | None = None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Metamessage:
    """A generation 1 annotation of a user, a session or a message."""

    key: int = 0
    uid: str
    workspace_key: int
    owner_key: int
    session_key: int | None = None
    message_key: int | None = None
    label: str
    content: str
    metadata: JsonObject = field(default_factory=dict)
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSession:
    """Progress of a scope's copy of one session's conclusions (`pending`, `completed`,
    `failed`)."""

    key: int = 0
    workspace_key: int
    scope_key: int
    session_key: int
    session: str
    state: str
    docs_copied: int | None = None
    updated_at: datetime
