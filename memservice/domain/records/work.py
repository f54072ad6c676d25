"""Background tasks, vector spaces, receipts of erasures, and facts about the store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

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
