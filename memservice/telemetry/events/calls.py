"""Events of single calls of models and embedders, and of their texts.

The last three, of the category `trace`, contain users' texts. They are sent only if
`TELEMETRY_TRACE_PAYLOADS_ENABLED` is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from memservice.telemetry.events.base import Event

Outcome = Literal["success", "error", "cancelled"]


class _CallCompleted(Event, frozen=True, kw_only=True):
    """One attempt to call a model or an embedder ended."""

    CATEGORY = "llm"
    HIGH_VOLUME = True

    workspace_name: str | None = None
    call_purpose: str | None = None
    parent_category: str | None = None
    model: str
    outcome: Outcome
    is_final_attempt: bool
    error_class: str | None = None
    duration_ms: float
    run_id: str | None = None


class LlmCallCompleted(_CallCompleted, frozen=True, kw_only=True):
    """One attempt to call a language model ended."""

    TYPE = "llm.call.completed"
    RESOURCE = ("workspace_name", "call_purpose", "run_id", "iteration", "attempt", "duration_ms")

    transport: str
    provider_label: str | None = None
    effective_max_output_tokens: int
    provider_input_tokens: int
    provider_output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int
    finish_reason: str | None = None
    attempt: int
    retry_attempts: int
    was_fallback: bool
    has_tools: bool
    tool_call_count: int
    was_stream: bool
    iteration: int | None = None


class EmbeddingCallCompleted(_CallCompleted, frozen=True, kw_only=True):
    """One attempt to call an embedder ended."""

    TYPE = "embedding.call.completed"
    RESOURCE = ("workspace_name", "call_purpose", "run_id", "input_count", "duration_ms")

    provider: str
    input_count: int
    input_tokens_estimate: int


class _CallTraced(Event, frozen=True, kw_only=True):
    """A call of a model or an embedder as a step of a run."""

    CATEGORY = "trace"
    RESOURCE = ("trace_id", "span_id", "step_seq", "attempt")

    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    iteration: int | None = None
    step_seq: int
    attempt: int
    call_purpose: str | None = None
    parent_category: str | None = None
    session_id: str | None = None
    model: str
    provider_input_tokens: int
    provider_output_tokens: int
    was_truncated: bool


class LlmCallTraced(_CallTraced, frozen=True, kw_only=True):
    """The content of a language-model call. Its texts are in `TraceContent` events, referenced by
    hash."""

    TYPE = "llm.call.traced"

    was_fallback: bool
    parent_event_id: str | None = None
    transport: str
    provider_label: str | None = None
    input_message_refs: tuple[str, ...]
    system_prompt_ref: str | None = None
    tool_schema_refs: tuple[str, ...]
    tool_choice: str | None = None
    output_content_ref: str | None = None
    output_tool_calls: tuple[Mapping[str, Any], ...]
    output_thinking_ref: str | None = None
    output_signatures: tuple[str, ...]
    raw_response_ref: str | None = None
    finish_reason: str | None = None
    cache_read_tokens: int
    cache_creation_tokens: int


class EmbeddingCallTraced(_CallTraced, frozen=True, kw_only=True):
    """A call of an embedder in the same run as language-model calls."""

    TYPE = "embedding.call.traced"

    provider: str
    input_count: int


class TraceContent(Event, frozen=True, kw_only=True):
    """A text that traced calls refer to."""

    TYPE = "trace.content"
    CATEGORY = "trace"
    RESOURCE = ("content_hash",)

    content_hash: str
    role: str
    content: str
    tool_call_id: str | None = None
    tool_calls: tuple[Mapping[str, Any], ...]
    honcho_authored: bool
    """Whether the service wrote the text (one of its prompts), and not a user."""
