"""Events of the pipelines: inputs and results of one run. Durations are in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from memservice.telemetry.events.base import Event


class RepresentationCompleted(Event, frozen=True, kw_only=True):
    """Conclusions were derived from messages of one peer, for all its observers."""

    TYPE = "representation.completed"
    VERSION = 2
    CATEGORY = "representation"
    RESOURCE = ("workspace_name", "session_name", "observed", "latest_message_id")

    workspace_name: str
    session_name: str
    observed: str
    queue_items_processed: int
    earliest_message_id: str
    latest_message_id: str
    message_count: int
    explicit_conclusion_count: int
    context_preparation_ms: float
    llm_call_ms: float
    total_duration_ms: float
    input_tokens: int
    """Tokens of the messages from which conclusions were derived."""
    total_input_tokens: int
    """Tokens of the whole model input."""
    output_tokens: int
    queued_message_count: int
    prompt_message_count: int
    prompt_message_tokens: int
    extra_context_message_count: int
    extra_context_tokens: int
    prompt_scaffold_tokens: int
    exact_dup_in_batch_count: int
    exact_dup_existing_count: int
    semantic_dup_rejected_count: int
    semantic_dup_replaced_count: int
    batch_max_tokens: int
    max_input_tokens: int
    was_flush_enabled: bool
    hit_batch_token_cap: bool
    hit_input_token_cap: bool
    observer_count: int
    failed_observer_count: int


class DialecticCompleted(Event, frozen=True, kw_only=True):
    """A question was answered."""

    TYPE = "dialectic.completed"
    VERSION = 2
    CATEGORY = "dialectic"
    RESOURCE = ("run_id",)

    run_id: str
    workspace_name: str
    peer_name: str | None = None
    """None: the question was about the whole workspace."""
    session_name: str | None = None
    reasoning_level: str
    total_iterations: int
    prefetched_conclusion_count: int
    tool_calls_count: int
    total_duration_ms: float
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int
    hit_input_token_cap: bool


class DreamRun(Event, frozen=True, kw_only=True):
    """The conclusions of one peer about another were consolidated."""

    TYPE = "dream.run"
    VERSION = 2
    CATEGORY = "dream"
    RESOURCE = ("run_id",)

    run_id: str
    workspace_name: str
    session_name: str | None = None
    observer: str
    observed: str
    specialists_run: tuple[str, ...]
    deduction_success: bool
    induction_success: bool
    surprisal_enabled: bool
    surprisal_conclusion_count: int
    total_iterations: int
    total_input_tokens: int
    total_output_tokens: int
    total_duration_ms: float
    dream_type: str | None = None
    enabled_types_count: int
    trigger_reason: str | None = None
    delay_reason: str | None = None
    documents_since_last_dream_at_schedule: int | None = None
    document_threshold: int | None = None


class DreamSpecialist(Event, frozen=True, kw_only=True):
    """One phase of a dream."""

    TYPE = "dream.specialist"
    VERSION = 2
    CATEGORY = "dream"
    RESOURCE = ("run_id", "specialist_type")

    run_id: str
    specialist_type: str
    workspace_name: str
    observer: str
    observed: str
    iterations: int
    tool_calls_count: int
    input_tokens: int
    output_tokens: int
    duration_ms: float
    success: bool
    created_observation_count: int
    deleted_observation_count: int
    created_counts_by_level: Mapping[str, int] = field(default_factory=dict)
    deleted_counts_by_level: Mapping[str, int] = field(default_factory=dict)
    peer_card_updated: bool
    search_tool_calls_count: int
    error_class: str | None = None


class DeletionCompleted(Event, frozen=True, kw_only=True):
    """A deleted object was erased, with everything that belonged to it."""

    TYPE = "deletion.completed"
    CATEGORY = "deletion"
    RESOURCE = ("workspace_name", "deletion_type", "resource_id")

    workspace_name: str
    deletion_type: Literal["workspace", "session", "observation"]
    resource_id: str
    success: bool
    peers_deleted: int
    sessions_deleted: int
    messages_deleted: int
    conclusions_deleted: int
    error_message: str | None = None


class ErasureCompleted(Event, frozen=True, kw_only=True):
    """An erasure with a receipt has ended, also one by retention. What was erased is not named: the
    receipt does that."""

    TYPE = "erasure.completed"
    CATEGORY = "deletion"
    RESOURCE = ("erasure_id",)

    workspace_name: str
    erasure_id: str
    erasure_type: str
    """The `kind` of the receipt."""
    success: bool
    peers_deleted: int
    sessions_deleted: int
    messages_deleted: int
    conclusions_deleted: int
    error_class: str | None = None


class SyncVectorsCompleted(Event, frozen=True, kw_only=True):
    """Vectors outside the storage were reconciled with it."""

    TYPE = "reconciliation.sync_vectors.completed"
    CATEGORY = "reconciliation"
    RESOURCE = ()

    documents_synced: int
    documents_failed: int
    documents_cleaned: int
    message_embeddings_synced: int
    message_embeddings_failed: int
    total_duration_ms: float


class CleanupStaleItemsCompleted(Event, frozen=True, kw_only=True):
    """Old finished work was erased. Emitted only if at least one queue item was erased."""

    TYPE = "reconciliation.cleanup_stale_items.completed"
    CATEGORY = "reconciliation"
    RESOURCE = ()

    documents_cleaned: int
    queue_items_cleaned: int
    total_duration_ms: float
