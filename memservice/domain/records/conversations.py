"""Workspaces, peers, sessions, messages, and what sums messages up."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, field

JsonObject = dict[str, Any]

ACTIVE, ARCHIVED, DELETING = "active", "archived", "deleting"
"""States of a session. A workspace is either active or being deleted."""

PEER, SCOPE, ERASED = "peer", "scope", "erased"
"""Kinds of peer. A scope is a hidden peer named `scope.<name>` that observes sessions and writes no
messages. An erased one is named `erased.<uid>` until its last row is erased."""

SCOPE_PREFIX, ERASED_PREFIX = "scope.", "erased."

SHORT, LONG = "short", "long"
"""Kinds of summary."""


class Workspace(Struct, frozen=True):
    uid: str
    slug: str
    v1_name: str
    created_at: datetime
    key: int = 0
    state: str = ACTIVE
    metadata: JsonObject = field(default_factory=dict)
    configuration: JsonObject = field(default_factory=dict)


class Peer(Struct, frozen=True):
    uid: str
    workspace_key: int
    slug: str
    v1_name: str
    created_at: datetime
    key: int = 0
    v1_role: str | None = None
    """`assistant` marks the hidden author of generation 1's `is_user: false` messages."""
    kind: str = PEER
    metadata: JsonObject = field(default_factory=dict)
    configuration: JsonObject = field(default_factory=dict)


class PeerName(Struct, frozen=True):
    """One word by which queries may name a peer (a case-folded token of its slug or of
    `metadata.name`)."""

    workspace_key: int
    peer_key: int
    token: str
    key: int = 0


class Session(Struct, frozen=True):
    uid: str
    workspace_key: int
    slug: str
    created_at: datetime
    key: int = 0
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
    revision: int = 0
    """How often stored messages of the session were changed, moved or erased. With the same
    revision, the first n messages are the same."""
    free_positions: int = 0
    """Positions up to `message_count` that have no message: those of erased messages until a task
    has closed the gaps, and those that an import fills."""


class Member(Struct, frozen=True):
    """One peer's membership of one session. The row stays after the peer leaves (with
    `left_at`)."""

    workspace_key: int
    session_key: int
    peer_key: int
    session: str
    peer: str
    joined_at: datetime
    key: int = 0
    kind: str = PEER
    """The peer's kind: scopes are members too, and most reads leave them out."""
    observe_me: bool | None = None
    observe_others: bool | None = None
    joined_seq: int = 0
    """The session's newest message when it joined (0: there was none). The peer was present for the
    later ones."""
    left_at: datetime | None = None
    left_seq: int | None = None
    """The session's newest message when it left."""


class Message(Struct, frozen=True):
    uid: str
    workspace_key: int
    session_key: int
    author_key: int
    session: str
    author: str
    seq: int
    """Position in the session, dense from 1. A position, not an identity."""
    content: str
    tokens: int
    tokens_through: int
    """Sum of `tokens` over seq 1..seq."""
    created_at: datetime
    """The caller's value, for display and time filters. Nothing is ordered by it."""
    key: int = 0
    metadata: JsonObject = field(default_factory=dict)
    internal: JsonObject = field(default_factory=dict)
    """The service's own notes on the message (facts of the uploaded file); in no response."""
    stored_at: datetime | None = None
    """When it was stored; null for messages that were stored before releases recorded it."""


class IdempotencyKey(Struct, frozen=True):
    """A request that stored messages under a key chosen by the caller. A repetition stores
    nothing."""

    workspace_key: int
    session_key: int
    digest: str
    """Digest of the caller's key."""
    request: str
    """Digest of the request: a different request under the same key is an error."""
    message_keys: list[int]
    created_at: datetime
    key: int = 0


class Summary(Struct, frozen=True):
    """The newest summary of a session, one per kind. It covers seq 1 to the covered message's
    seq."""

    workspace_key: int
    session_key: int
    kind: str
    content: str
    message_key: int
    message_uid: str
    tokens: int
    reasoner: str
    created_at: datetime
    key: int = 0
    model: str | None = None


class Metamessage(Struct, frozen=True):
    """A generation 1 annotation of a user, a session or a message."""

    uid: str
    workspace_key: int
    owner_key: int
    label: str
    content: str
    created_at: datetime
    key: int = 0
    session_key: int | None = None
    message_key: int | None = None
    metadata: JsonObject = field(default_factory=dict)


class ScopeSession(Struct, frozen=True):
    """Progress of a scope's copy of one session's conclusions (`pending`, `completed`,
    `failed`)."""

    workspace_key: int
    scope_key: int
    session_key: int
    session: str
    state: str
    updated_at: datetime
    key: int = 0
    docs_copied: int | None = None
