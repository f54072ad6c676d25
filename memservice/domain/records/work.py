"""Background tasks, vector spaces, receipts of erasures, and facts about the store."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct, field

from memservice.domain.records.conversations import JsonObject

PENDING, DONE, FAILED, HELD = "pending", "done", "failed", "held"
"""States of a task. A `failed` task stays until it is retried or purged."""

IMMEDIATELY = datetime(1970, 1, 1, tzinfo=UTC)
"""`not_before` of a task without a delay: it is due by every clock, even one that is behind the
clock of the process that stored it."""

NEVER = datetime(9000, 1, 1, tzinfo=UTC)
"""`not_before` of a task that never becomes due by time alone."""

BUILDING, RETIRED = "building", "retired"
"""States of a vector space besides active: not used by queries yet, and not used any more."""

ACCEPTED, ERASING, FINISHED = "accepted", "erasing", "done"
"""Stored states of an erasure. One whose task has failed is shown as `failed`
(`memservice.services.erasure.receipts`)."""


class Task(Struct, frozen=True):
    """One piece of background work, stored in the transaction that causes it."""

    uid: str
    unit: str
    """The work unit: tasks of one unit run one after the other, in key order, under one lease."""
    kind: str
    not_before: datetime
    """`IMMEDIATELY`, unless it waits for a timer, for batching, or after a failure."""
    created_at: datetime
    key: int = 0
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
    finished_at: datetime | None = None

    @property
    def due_since(self) -> datetime:
        """When it became due, or will become due."""
        return max(self.created_at, self.not_before)


class Lease(Struct, frozen=True):
    """The claim of a worker on a unit. `number` rises at each claim, so earlier holders cannot
    commit results."""

    unit: str
    owner: str
    number: int
    expires_at: datetime
    key: int = 0


class Space(Struct, frozen=True):
    """A vector space: rows of one kind in one workspace, embedded by one embedder. Vectors of
    different spaces are never compared."""

    workspace_key: int
    kind: str
    """`message`, `conclusion` or `document`."""
    embedder: str
    dimension: int
    state: str
    """`building`, `active` or `retired`; one active per (workspace, kind)."""
    created_at: datetime
    key: int = 0


class Erasure(Struct, frozen=True):
    """The receipt of one erasure: what was asked for, and what came of it. It has ids and counts,
    no erased text, and outlives its workspace."""

    uid: str
    kind: str
    """`message`, `peer`, `session` or `workspace`; for retention `messages` or `conclusions`."""
    workspace: str
    workspace_uid: str
    target: str
    """The id that the caller named: the slug of a peer, session or workspace, the uid of a
    message."""
    requested_by: str
    """`key UID`, `member UID`, or another actor such as `admin` or `retention`."""
    task_uid: str
    created_at: datetime
    key: int = 0
    workspace_key: int | None = None
    session: str | None = None
    """Slug of the session, where the erasure concerns one."""
    target_uid: str | None = None
    """The uid of the erased row, by which an import recognises it; None for retention."""
    options: JsonObject = field(default_factory=dict)
    state: str = ACCEPTED
    counts: JsonObject = field(default_factory=dict)
    """Number of erased rows by table, when it is done."""
    finished_at: datetime | None = None


class Usage(Struct, frozen=True):
    """One call of a model or an embedder."""

    day: str
    """UTC day of `created_at`, `2024-05-17`: the unit of sums and budgets."""
    task: str
    """The purpose of the call (`ModelCall.purpose`)."""
    provider: str
    model: str
    outcome: str
    created_at: datetime
    key: int = 0
    workspace_key: int | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    duration_ms: int = 0
    reasoning_tokens: int = 0
    """Of `output_tokens`, those of reasoning; 0 where the provider does not count them."""


class Fact(Struct, frozen=True):
    """A fact about the store itself, for instance the token counter of its counts."""

    name: str
    value: str
    key: int = 0
