"""Events for operators: rounds of a model with tools, and its tool calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memservice.domain import tokens
from memservice.spi.toolbox import Step
from memservice.telemetry.events import AgentIteration, AgentToolCallCompleted, Event

CHARS_PER_TOKEN = 4
"""For estimates; results of tools are not counted exactly."""
VECTOR_TOOLS = ("search_memory", "search_messages", "search_messages_temporal")


def of_steps(
    steps: Sequence[Step],
    *,
    run_id: str,
    parent_category: str,
    agent_type: str,
    workspace_name: str,
    observer: str | None = None,
    observed: str | None = None,
    peer_name: str | None = None,
) -> Iterator[Event]:
    """The events in order: each tool call, then the round that it belongs to."""
    for iteration, step in enumerate(steps, 1):
        for index, use in enumerate(step.uses):
            query = use.input.get("query")
            limit = use.input.get("limit")
            embeds = use.name in VECTOR_TOOLS and use.error is None
            yield AgentToolCallCompleted(
                run_id=run_id,
                iteration=iteration,
                tool_call_seq=index,
                provider_tool_call_id=use.call_id,
                parent_category=parent_category,
                agent_type=agent_type,
                workspace_name=workspace_name,
                tool_name=use.name,
                duration_ms=use.duration_ms,
                is_error=use.error is not None,
                result_chars=use.result_chars,
                result_chars_before_truncation=use.full_chars,
                result_tokens_estimate=use.result_chars // CHARS_PER_TOKEN,
                was_truncated=use.result_chars < use.full_chars,
                query_tokens=tokens.count(query) if isinstance(query, str) else None,
                top_k=limit if isinstance(limit, int) else None,
                results_count=use.results,
                used_embedding=embeds,
                embedding_query_count=int(embeds),
            )
        yield AgentIteration(
            run_id=run_id,
            parent_category=parent_category,
            agent_type=agent_type,
            workspace_name=workspace_name,
            observer=observer,
            observed=observed,
            peer_name=peer_name,
            iteration=iteration,
            tool_calls=tuple(use.name for use in step.uses),
            input_tokens=step.input_tokens,
            output_tokens=step.output_tokens,
            cache_read_tokens=step.cache_read_tokens,
            cache_creation_tokens=step.cache_write_tokens,
        )
