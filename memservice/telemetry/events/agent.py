"""Events of models that use tools. All events of one answer or one dream have the same `run_id`."""

from __future__ import annotations

from typing import Literal

from memservice.telemetry.events.base import Event


class AgentIteration(Event, frozen=True, kw_only=True):
    """One round: a model call, and the tools that it called."""

    TYPE = "agent.iteration"
    VERSION = 2
    CATEGORY = "agent"
    HIGH_VOLUME = True
    RESOURCE = ("run_id", "agent_type", "iteration")

    run_id: str
    parent_category: str
    """`dialectic` or `dream`."""
    agent_type: str
    workspace_name: str
    observer: str | None = None
    observed: str | None = None
    peer_name: str | None = None
    iteration: int
    """From 1."""
    tool_calls: tuple[str, ...]
    """Names of tools, in order."""
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int


class AgentToolCallCompleted(Event, frozen=True, kw_only=True):
    """A tool call of a model has completed."""

    TYPE = "agent.tool.call.completed"
    CATEGORY = "agent"
    HIGH_VOLUME = True
    RESOURCE = ("run_id", "agent_type", "iteration", "tool_call_seq")

    run_id: str
    iteration: int
    tool_call_seq: int
    """Index of the call in its round, from 0."""
    provider_tool_call_id: str | None = None
    parent_category: str
    agent_type: str
    workspace_name: str
    tool_name: str
    duration_ms: float
    is_error: bool
    result_chars: int
    result_chars_before_truncation: int | None = None
    result_tokens_estimate: int
    was_truncated: bool
    query_tokens: int | None = None
    top_k: int | None = None
    results_count: int | None = None
    used_embedding: bool | None = None
    embedding_query_count: int


class _ToolEffect(Event, frozen=True, kw_only=True):
    """Of a tool call that changed what is stored about a pair of peers."""

    CATEGORY = "agent"
    RESOURCE = ("run_id", "agent_type", "iteration")

    run_id: str
    iteration: int
    parent_category: str
    agent_type: str
    workspace_name: str
    observer: str
    observed: str


class ConclusionsCreated(_ToolEffect, frozen=True, kw_only=True):
    """A model's tool call created conclusions."""

    TYPE = "agent.tool.conclusions.created"
    VERSION = 2

    conclusion_count: int
    levels: tuple[str, ...]


class ConclusionsDeleted(_ToolEffect, frozen=True, kw_only=True):
    """A model's tool call superseded conclusions."""

    TYPE = "agent.tool.conclusions.deleted"
    VERSION = 3

    conclusion_count: int
    levels: tuple[str, ...]


class PeerCardUpdated(_ToolEffect, frozen=True, kw_only=True):
    """A model's tool call rewrote a peer card."""

    TYPE = "agent.tool.peer_card.updated"
    VERSION = 2

    facts_count: int


class SummaryCreated(Event, frozen=True, kw_only=True):
    """A summary of a session was stored."""

    TYPE = "agent.tool.summary.created"
    VERSION = 3
    CATEGORY = "agent"
    RESOURCE = ("workspace_name", "session_name", "summary_type", "message_id")

    run_id: str | None = None
    iteration: int | None = None
    parent_category: str
    agent_type: str
    workspace_name: str
    session_name: str
    message_id: str
    """The last message that the summary covers."""
    message_count: int
    message_seq_in_session: int
    summary_type: Literal["short", "long"]
    input_tokens: int
    output_tokens: int
    previous_summary_tokens: int
    message_tokens: int
    prompt_scaffold_tokens: int
