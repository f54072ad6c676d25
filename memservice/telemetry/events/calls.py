"""Events of single calls of models and embedders, and of their texts.

The last three, of the category `trace`, contain users' texts. They are sent only if
`TELEMETRY_TRACE_PAYLOADS_ENABLED` is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memservice.telemetry.events.base import Event

Outcome = Literal["success", "error", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmCallCompleted(Event):
    """One attempt to call a language model ended."""

    TYPE = "llm.call.completed"
    CATEGORY = "llm"
    HIGH_VOLUME = True
    RESOURCE = ("workspace_name", "call_purpose", "run_id", "iteration", "attempt", "duration_ms")

    workspace_name: str | None = None
    call_purpose: str | None = None
    parent_category: str | None = None
    transport: str
    provider_label: str | None = None
    model: str
    effective_max_output_tokens: int
    provider_input_tokens: int
    provider_output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int
    finish_reason: str | None = None
    outcome: Outcome
    is_final_attempt: bool
    error_class: str | None = None
    attempt: int
    retry_attempts: int
    was_fallback: bool
    duration_ms: float
    has_tools: bool
    tool_call_count: int
    was_stream: bool
    run_id: str | None = None
    iteration: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingCallCompleted(Event):
    """One attempt to call an embedder ended."""

    TYPE = "embedding.call.completed"
    CATEGORY = "llm"
    HIGH_VOLUME = True
    RESOURCE = ("workspace_name", "call_purpose", "run_id", "input_count", "duration_ms")

    workspace_name: str | None = None
    call_purpose: str | None = None
    parent_category: str | None = None
    provider: str
    model: str
    input_count: int
    input_tokens_estimate: int
    duration_ms: float
    outcome: Outcome
    is_final_attempt: bool
    error_class: str | None = None
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmCallTraced(Event):
    """The content of a language-model call. Its texts are in `TraceContent` events, referenced by
    hash."""

    TYPE = "llm.call.traced"
    CATEGORY = "trace"
    RESOURCE = ("trace_id", "span_id", "step_seq", "attempt")

    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    iteration: int | None = None
    step_seq: int
    attempt: int
    was_fallback: bool
    parent_event_id: str | None = None
    call_purpose: str | None = None
    parent_category: str | None = None
    session_id: str | None = None
    transport: str
    provider_label: str | None = None
    model: str
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
    provider_input_tokens: int
    provider_output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int
    was_truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingCallTraced(Event):
    """A call of an embedder in the same run as language-model calls."""

    TYPE = "embedding.call.traced"
    CATEGORY = "trace"
    RESOURCE = ("trace_id", "span_id", "step_seq", "attempt")

    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    iteration: int | None = None
    step_seq: int
    attempt: int
    session_id: str | None = None
    call_purpose: str | None = None
    parent_category: str | None = None
    provider: str
    model: str
    provider_input_tokens: int
    provider_output_tokens: int
    input_count: int
    was_truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceContent(Event):
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
