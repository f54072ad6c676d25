"""The rows that memservice stores: plain frozen records, the same on every backend.

Conventions
* `key` is the row's integer key, assigned by the storage at `put` (0 = not stored yet); foreign
  keys are keys.
* `uid` is the public 21-character id; `slug` the immutable name that generations 2 and 3 call `id`;
  `v1_name` the mutable one.
* A field named after a row without a suffix (`session`, `author`, `observer` …) is that row's
  **slug**, copied at insert: slugs never change, so reads need no join. The field with the suffix
  `_key` is the foreign key.
* Times are timezone-aware UTC datetimes.
* JSON columns hold plain dicts and lists; treat them as immutable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

JsonObject = dict[str, Any]

ACTIVE, ARCHIVED, DELETING = "active", "archived", "deleting"
"""States of a session. A workspace is either active or being deleted."""

PEER, SCOPE, ERASED = "peer", "scope", "erased"
"""Kinds of peer. A scope is a hidden peer named `scope.<name>` that observes sessions and writes no
messages. An erased one is named `erased.<uid>` until its last row is erased."""

SCOPE_PREFIX, ERASED_PREFIX = "scope.", "erased."

EXPLICIT, DEDUCTIVE, INDUCTIVE, CONTRADICTION = (
    "explicit",
    "deductive",
    "inductive",
    "contradiction",
)
LEVELS = (EXPLICIT, DEDUCTIVE, INDUCTIVE, CONTRADICTION)

LIVE, SUPERSEDED, DELETED = "live", "superseded", "deleted"
"""States of a conclusion."""

SHORT, LONG = "short", "long"
"""Kinds of summary."""

PENDING, DONE, FAILED, HELD = "pending", "done", "failed", "held"
"""States of a task. A `failed` task stays until it is retried or purged."""


BUILDING, RETIRED = "building", "retired"
"""States of a vector space besides active: not used by queries yet, and not used any more."""

PAUSED = "paused"
"""State of a webhook endpoint that failed too often. All others are active."""


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
class Collection:
    """The conclusions of one peer (the observer) about another (the observed), and when they were
    last consolidated."""

    key: int = 0
    workspace_key: int
    observer_key: int
    observed_key: int
    observer: str
    observed: str
    explicit_count: int = 0
    """Live explicit conclusions."""
    explicit_at_last_dream: int = 0
    last_dream_at: datetime | None = None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The peer card of `observer` about `target`. The target need not exist as a peer."""

    key: int = 0
    workspace_key: int
    observer_key: int
    target: str
    lines: list[str]
    given: list[str] = field(default_factory=list)
    """The lines that a caller wrote, a part of `lines`. The service replaces its own lines only."""
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    key: int = 0
    uid: str
    workspace_key: int
    collection_key: int
    observer_key: int
    observed_key: int
    session_key: int | None = None
    observer: str
    observed: str
    session: str | None = None
    content: str
    fingerprint: str
    """Digest of the trimmed, case-folded content: equal fingerprints are exact duplicates."""
    level: str = EXPLICIT
    state: str = LIVE
    superseded_by: int | None = None
    deleted_at: datetime | None = None
    times_derived: int = 1
    source_ids: list[str] | None = None
    """Uids of the conclusions that this one is based on; null for explicit ones."""
    message_keys: list[int] = field(default_factory=list)
    """Keys of the source messages, repetitions in the same words included."""
    internal: JsonObject = field(default_factory=dict)
    """premises, sources, pattern_type, confidence, copied_from … ; filterable as `metadata` in
    generations 2 and 3."""
    metadata: JsonObject = field(default_factory=dict)
    """Free-form metadata of a generation 1 document."""
    reasoner: str = "api"
    model: str | None = None
    said_at: datetime
    """When the newest message that it was concluded from was sent; without one, the time of the
    row. A later repetition does not change it."""
    created_at: datetime
    superseded_at: datetime | None = None
    """When it was superseded; null while it is live, and where the time is not known."""
    restored_at: datetime | None = None
    """When it was last made live again. The spans in which it was superseded before are the
    `lapses`."""

    @property
    def lapses(self) -> list[tuple[datetime, datetime]]:
        """The spans in which it was superseded before it was restored, oldest first: the start is
        in the span, the end is not."""
        return [
            (datetime.fromisoformat(start), datetime.fromisoformat(end))
            for start, end in self.internal.get("lapses", ())
        ]

    @property
    def kind(self) -> str | None:
        """What it is about (`domain.derived_rules.STATEMENT_KINDS`), where that is known."""
        kind = self.internal.get("kind")
        return kind if isinstance(kind, str) else None

    @property
    def when(self) -> JsonObject | None:
        """The time that it is about: `start` and `end` in ISO 8601, as exact as they are known;
        None where there is none."""
        when = self.internal.get("when")
        return when if isinstance(when, dict) else None

    @property
    def certainty(self) -> str | None:
        """`hedged` or `hypothetical`; None for a plain statement."""
        certainty = self.internal.get("certainty")
        return certainty if isinstance(certainty, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCollection:
    """A generation 1 collection with a name of its own."""

    key: int = 0
    uid: str
    workspace_key: int
    owner_key: int
    name: str
    metadata: JsonObject = field(default_factory=dict)
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document of a generation 1 named collection."""

    key: int = 0
    uid: str
    workspace_key: int
    owner_key: int
    collection_key: int
    content: str
    metadata: JsonObject = field(default_factory=dict)
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
class Task:
    """One piece of background work, stored in the transaction that causes it."""

    key: int = 0
    uid: str
    unit: str
    """The work unit: tasks of one unit run one after the other, in key order, under one lease."""
    kind: str
    workspace_key: int | None = None
    session_key: int | None = None
    observer_key: int | None = None
    observed_key: int | None = None
    message_key: int | None = None
    payload: JsonObject = field(default_factory=dict)
    state: str = PENDING
    attempts: int = 0
    last_error: str | None = None
    outcome: JsonObject = field(default_factory=dict)
    """Counts of its results; also of a task without results."""
    request_id: str | None = None
    """Id of the request that caused it, to connect the logs of both."""
    not_before: datetime
    """`IMMEDIATELY`, unless it waits for a timer, for batching, or after a failure."""
    created_at: datetime
    finished_at: datetime | None = None

    @property
    def due_since(self) -> datetime:
        """When it became due, or will become due."""
        return max(self.created_at, self.not_before)


IMMEDIATELY = datetime(1970, 1, 1, tzinfo=UTC)
"""`not_before` of a task without a delay: it is due by every clock, even one that is behind the
clock of the process that stored it."""
NEVER = datetime(9000, 1, 1, tzinfo=UTC)
"""`not_before` of a task that never becomes due by time alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The claim of a worker on a unit. `number` rises at each claim, so earlier holders cannot
    commit results."""

    key: int = 0
    unit: str
    owner: str
    number: int
    expires_at: datetime


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A vector space: rows of one kind in one workspace, embedded by one embedder. Vectors of
    different spaces are never compared."""

    key: int = 0
    workspace_key: int
    kind: str
    """`message`, `conclusion` or `document`."""
    embedder: str
    dimension: int
    state: str
    """`building`, `active` or `retired`; one active per (workspace, kind)."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEndpoint:
    key: int = 0
    uid: str
    workspace_key: int
    url: str
    secret: str = field(repr=False)
    state: str = ACTIVE
    """`active`, or `paused` after too many failures."""
    failures: int = 0
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One attempt to deliver an event to an endpoint."""

    key: int = 0
    uid: str
    workspace_key: int
    endpoint_key: int
    event_uid: str
    """The same for every attempt to deliver one event; receivers detect repetitions by it."""
    event: str
    """Its type on the wire."""
    body: str
    attempt: int
    status: int | None = None
    error: str | None = None
    duration_ms: int | None = None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key minted by this service. The token itself is not stored."""

    key: int = 0
    uid: str
    """The token's `jti`; for a revoked token without one, the digest of its signed part
    (`jwt_signing.digest`)."""
    label: str | None = None
    admin: bool = False
    workspace: str | None = None
    peer: str | None = None
    session: str | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    created_at: datetime
    workspace_uid: str | None = None
    """The uid of `workspace`; so with the next two. None while there is no such row: the key is
    then for the first one that gets the name."""
    peer_uid: str | None = None
    session_uid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One call of a model or an embedder."""

    key: int = 0
    workspace_key: int | None = None
    day: str
    """UTC day of `created_at`, `2024-05-17`: the unit of sums and budgets."""
    task: str
    """The purpose of the call (`ModelCall.purpose`)."""
    provider: str
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    duration_ms: int = 0
    outcome: str
    created_at: datetime
    reasoning_tokens: int = 0
    """Of `output_tokens`, those of reasoning; 0 where the provider does not count them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact about the store itself, for instance the token counter of its counts."""

    key: int = 0
    name: str
    value: str


ACCEPTED, ERASING, FINISHED = "accepted", "erasing", "done"
"""Stored states of an erasure. One whose task has failed is shown as `failed`
(`memservice.services.erasure.receipts`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The receipt of one erasure: what was asked for, and what came of it. It has ids and counts,
    no erased text, and outlives its workspace."""

    key: int = 0
    uid: str
    kind: str
    """`message`, `peer`, `session` or `workspace`; for retention `messages` or `conclusions`."""
    workspace_key: int | None = None
    workspace: str
    workspace_uid: str
    session: str | None = None
    """Slug of the session, where the erasure concerns one."""
    target: str
    """The id that the caller named: the slug of a peer, session or workspace, the uid of a
    message."""
    target_uid: str | None = None
    """The uid of the erased row, by which an import recognises it; None for retention."""
    requested_by: str
    """`key UID`, `member UID`, or another actor such as `admin` or `retention`."""
    options: JsonObject = field(default_factory=dict)
    state: str = ACCEPTED
    task_uid: str
    counts: JsonObject = field(default_factory=dict)
    """Number of erased rows by table, when it is done."""
    created_at: datetime
    finished_at: datetime | None = None


OWNER, OPERATOR, READER = "owner", "operator", "reader"
"""Roles of a member of the console; `memservice.services.auth.permissions` defines what each may
do."""

DEACTIVATED = "deactivated"
"""State of a member of the console who may not sign in. All others are active."""

SET_UP, INVITATION, NEW_PASSWORD = "set-up", "invitation", "new-password"
"""Kinds of one-time link. The first two create a member; the last one sets a new password of a
member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleMember:
    """A person's account at the console. (A `Member` is a peer's membership of a session.)"""

    key: int = 0
    uid: str
    name: str
    """The name for signing in: an e-mail address or another name, NFKC and case-folded."""
    password_hash: str
    """argon2id, in the library's own notation."""
    role: str
    workspaces: list[JsonObject] | None = None
    """The only workspaces that the member may open, each `{"id": slug, "uid": uid}`; None: all."""
    state: str = ACTIVE
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleLink:
    """A one-time link. Its token is not stored."""

    key: int = 0
    uid: str
    digest: str
    """Keyed hash of the token."""
    kind: str
    role: str | None = None
    """The role of the member that the link creates."""
    workspaces: list[JsonObject] | None = None
    """The workspaces of the member that the link creates."""
    member_uid: str | None = None
    """The uid of the member whose password it sets."""
    created_by: str | None = None
    """The uid of the member who created the link; None: the command line."""
    expires_at: datetime
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    """One sign-in, of a member or with an API key. Only the cookie has its id, which is not
    stored."""

    key: int = 0
    uid: str
    """Names the session on pages. It gives no access."""
    digest: str
    """Keyed hash of the id."""
    member_uid: str | None = None
    claims: JsonObject | None = None
    """The claims of the API key, as in its token; None for a member."""
    key_uid: str | None = None
    """The uid of the API key; the token's digest if it has no id."""
    address: str
    client: str
    """The browser's `User-Agent`."""
    expires_at: datetime
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInFailures:
    """Failed attempts to sign in, of one account, address or known browser."""

    key: int = 0
    subject: str
    """`account:`, `address:` or `browser:`, and a digest."""
    failures: int
    paused_until: datetime
    """Attempts before this time are rejected without a check."""
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One action in the console: actor, action, address and time. Never changed."""

    key: int = 0
    uid: str
    actor: str
    """The name of the member, `key …`, or another actor such as the command line."""
    actor_uid: str | None = None
    """The uid of the member or key."""
    action: str
    """The action as `noun.verb`: `member.invite`."""
    target: str | None = None
    """The object of the action."""
    workspace: str | None = None
    address: str | None = None
    detail: JsonObject = field(default_factory=dict)
    created_at: datetime
