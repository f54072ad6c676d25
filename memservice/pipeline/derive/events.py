"""The event for a processed batch of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from memservice.pipeline.derive.inputs import DeriveInput
from memservice.runtime import Runtime
from memservice.spi.reasoner import Derived
from memservice.telemetry.events import RepresentationCompleted


class DeriveRun(Struct, frozen=True):
    """A processed batch, and the times of its steps in seconds of a monotonic clock."""

    derive_input: DeriveInput
    derived: Derived
    tasks: int
    began: float
    prepared: float
    called: float
    ended: float


def completed(rt: Runtime, run: DeriveRun, outcome: Mapping[str, Any]) -> RepresentationCompleted:
    derive_input, derived, deriver = run.derive_input, run.derived, rt.settings.deriver
    own = {message.key for message in derive_input.messages}
    extra = [message for message in derive_input.window if message.key not in own]
    tokens = sum(message.tokens for message in derive_input.messages)
    window_tokens = sum(message.tokens for message in derive_input.window)
    maximum = deriver.representation_batch_target_input_tokens
    return RepresentationCompleted(
        workspace_name=derive_input.workspace,
        session_name=derive_input.session.slug,
        observed=derive_input.observed.slug,
        queue_items_processed=run.tasks,
        earliest_message_id=derive_input.messages[0].uid,
        latest_message_id=derive_input.messages[-1].uid,
        message_count=len(derive_input.messages),
        explicit_conclusion_count=outcome.get("stored", 0),
        context_preparation_ms=_ms(run.began, run.prepared),
        llm_call_ms=_ms(run.prepared, run.called),
        total_duration_ms=_ms(run.began, run.ended),
        input_tokens=tokens,
        total_input_tokens=derived.spent.input_tokens,
        output_tokens=derived.spent.output_tokens,
        queued_message_count=run.tasks,
        prompt_message_count=len(derive_input.window),
        prompt_message_tokens=window_tokens,
        extra_context_message_count=len(extra),
        extra_context_tokens=sum(message.tokens for message in extra),
        prompt_scaffold_tokens=derived.scaffold_tokens,
        exact_dup_in_batch_count=outcome.get("repeated", 0),
        exact_dup_existing_count=outcome.get("reinforced", 0),
        semantic_dup_rejected_count=outcome.get("said_already", 0),
        semantic_dup_replaced_count=outcome.get("replaced", 0),
        batch_max_tokens=maximum,
        max_input_tokens=deriver.max_input_tokens,
        was_flush_enabled=deriver.flush_enabled,
        hit_batch_token_cap=window_tokens >= maximum,
        hit_input_token_cap=derived.hit_input_cap,
        observer_count=len(derive_input.observers),
        failed_observer_count=0,
    )


def _ms(start: float, end: float) -> float:
    return round((end - start) * 1000, 3)
