"""Events for operators: calls of models."""

from __future__ import annotations

from memservice.spi.llm import ModelCall
from memservice.telemetry.bus import Events
from memservice.telemetry.events import EmbeddingCallCompleted, Event, LlmCallCompleted

CATEGORIES = {
    "deriver": "representation",
    "dialectic": "dialectic",
    "dream": "dream",
    "summary": "summary",
}
"""First word of a call's purpose → category of the event for the work as a whole."""


class CallEvents:
    """A listener of calls."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def __call__(self, call: ModelCall) -> None:
        if self._events.has_listeners:
            self._events.emit(_of_embedder(call) if call.embedding else _of_model(call))


def category_of(call: ModelCall) -> str | None:
    return CATEGORIES.get(call.purpose.partition(".")[0])


def _is_final(call: ModelCall) -> bool:
    return call.outcome != "error" or call.attempt >= call.attempts


def _of_model(call: ModelCall) -> Event:
    return LlmCallCompleted(
        workspace_name=call.workspace,
        call_purpose=call.purpose,
        parent_category=category_of(call),
        transport=call.transport,
        model=call.model,
        effective_max_output_tokens=call.max_output_tokens,
        provider_input_tokens=call.input_tokens,
        provider_output_tokens=call.output_tokens,
        cache_read_tokens=call.cache_read_tokens,
        cache_creation_tokens=call.cache_write_tokens,
        finish_reason=call.finish_reason,
        outcome=call.outcome,
        is_final_attempt=_is_final(call),
        error_class=call.error_class,
        attempt=call.attempt,
        retry_attempts=call.attempts,
        was_fallback=call.is_fallback,
        duration_ms=call.duration_ms,
        has_tools=call.has_tools,
        tool_call_count=call.tool_call_count,
        was_stream=call.is_stream,
        run_id=call.run_id,
        iteration=call.iteration,
    )


def _of_embedder(call: ModelCall) -> Event:
    return EmbeddingCallCompleted(
        workspace_name=call.workspace,
        call_purpose=call.purpose,
        parent_category=category_of(call),
        provider=call.transport,
        model=call.model,
        input_count=call.input_count,
        input_tokens_estimate=call.input_tokens,
        duration_ms=call.duration_ms,
        outcome=call.outcome,
        is_final_attempt=_is_final(call),
        error_class=call.error_class,
        run_id=call.run_id,
    )
