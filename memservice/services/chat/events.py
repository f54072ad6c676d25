"""Events of chat questions for operators."""

from __future__ import annotations

from collections.abc import Iterator

from memservice.services.chat.evidence import Gathered
from memservice.services.events import agent as agent_events
from memservice.spi.reasoner import Answered, AnswerRequest
from memservice.telemetry.events import DialecticCompleted, Event

CATEGORY = "dialectic"


def rounds(request: AnswerRequest, answered: Answered) -> Iterator[Event]:
    """One event for each round of a model with tools, even if the question was not answered in the
    end."""
    yield from agent_events.of_steps(
        answered.steps,
        run_id=request.origin.run_id or "",
        parent_category=CATEGORY,
        agent_type=CATEGORY,
        workspace_name=request.origin.workspace or "",
        peer_name=request.asker,
    )


def completed(
    request: AnswerRequest,
    gathered: Gathered,
    answered: Answered,
    session_id: str | None,
    seconds: float,
) -> Event:
    """The event of the complete answer."""
    return DialecticCompleted(
        run_id=request.origin.run_id or "",
        workspace_name=request.origin.workspace or "",
        peer_name=request.asker,
        session_name=session_id,
        reasoning_level=request.level,
        total_iterations=len(answered.steps),
        prefetched_conclusion_count=len(gathered.conclusions),
        tool_calls_count=sum(len(step.uses) for step in answered.steps),
        total_duration_ms=seconds * 1000,
        input_tokens=answered.spent.input_tokens,
        output_tokens=answered.spent.output_tokens,
        cache_read_tokens=answered.spent.cache_read_tokens,
        cache_creation_tokens=answered.spent.cache_write_tokens,
        hit_input_token_cap=answered.hit_input_cap,
    )
