"""The events of a dream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from memservice.domain.records import Task
from memservice.pipeline.dream.store import DreamInput
from memservice.reasoning.prompts import tools
from memservice.runtime import Runtime
from memservice.services import dreams
from memservice.services.events import agent as agent_events
from memservice.spi.reasoner import Consolidated, Phase
from memservice.telemetry.events import (
    ConclusionsCreated,
    ConclusionsDeleted,
    DreamRun,
    DreamSpecialist,
    Event,
    PeerCardUpdated,
)

SEARCHES = (tools.SEARCH_MEMORY.name, tools.SEARCH_MESSAGES.name)


def of(
    rt: Runtime, task: Task, material: DreamInput, result: Consolidated, seconds: float
) -> list[Event]:
    """The events of each phase and its rounds, then one for the whole dream. A reasoner without
    phases has only the last one."""
    events: list[Event] = []
    for phase in result.phases:
        events += _steps(material, phase)
        events.append(_specialist(material, phase))
    return [*events, _run(rt, task, material, result, seconds)]


def _run_id(material: DreamInput) -> str:
    return material.request.origin.run_id or ""


def _succeeded(result: Consolidated, name: str) -> bool:
    return any(phase.name == name and phase.error is None for phase in result.phases)


def _run(
    rt: Runtime, task: Task, material: DreamInput, result: Consolidated, seconds: float
) -> DreamRun:
    settings = rt.settings.dream
    kind = str(task.payload.get("type", dreams.OMNI))
    fresh = task.payload.get("new")
    return DreamRun(
        run_id=_run_id(material),
        workspace_name=material.workspace.slug,
        session_name=material.session.slug if material.session else None,
        observer=material.collection.observer,
        observed=material.collection.observed,
        specialists_run=tuple(phase.name for phase in result.phases),
        deduction_success=_succeeded(result, "deduction"),
        induction_success=_succeeded(result, "induction"),
        surprisal_enabled=settings.surprisal.enabled,
        surprisal_conclusion_count=len(material.request.surprising),
        total_iterations=sum(len(phase.steps) for phase in result.phases),
        total_input_tokens=result.spent.input_tokens,
        total_output_tokens=result.spent.output_tokens,
        total_duration_ms=seconds * 1000,
        dream_type=kind,
        enabled_types_count=len(settings.enabled_types),
        trigger_reason=task.payload.get("trigger"),
        delay_reason=task.payload.get("delay"),
        documents_since_last_dream_at_schedule=fresh if isinstance(fresh, int) else None,
        document_threshold=settings.document_threshold,
    )


def _specialist(material: DreamInput, phase: Phase) -> DreamSpecialist:
    uses = [use for step in phase.steps for use in step.uses]
    return DreamSpecialist(
        run_id=_run_id(material),
        specialist_type=phase.name,
        workspace_name=material.workspace.slug,
        observer=material.collection.observer,
        observed=material.collection.observed,
        iterations=len(phase.steps),
        tool_calls_count=len(uses),
        input_tokens=phase.spent.input_tokens,
        output_tokens=phase.spent.output_tokens,
        duration_ms=phase.duration_ms,
        success=phase.error is None,
        created_observation_count=len(phase.created),
        deleted_observation_count=len(phase.superseded),
        created_counts_by_level=dict(Counter(phase.created)),
        deleted_counts_by_level=dict(Counter(phase.superseded)),
        peer_card_updated=phase.card_written,
        search_tool_calls_count=sum(use.name in SEARCHES for use in uses),
        error_class=phase.error,
    )


def _steps(material: DreamInput, phase: Phase) -> Iterator[Event]:
    collection = material.collection
    about = {
        "run_id": _run_id(material),
        "parent_category": "dream",
        "agent_type": phase.name,
        "workspace_name": material.workspace.slug,
    }
    pair = {"observer": collection.observer, "observed": collection.observed}
    yield from agent_events.of_steps(phase.steps, **about, **pair)
    for number, step in enumerate(phase.steps, 1):
        for use in step.uses:
            if use.error is not None or not use.results:
                continue
            if use.name in (tools.CREATE_CONCLUSIONS, tools.SUPERSEDE_CONCLUSIONS.name):
                kind = (
                    ConclusionsCreated
                    if use.name == tools.CREATE_CONCLUSIONS
                    else ConclusionsDeleted
                )
                yield kind(
                    iteration=number,
                    conclusion_count=use.results,
                    levels=tuple(use.levels),
                    **about,
                    **pair,
                )
            elif use.name == tools.UPDATE_PEER_CARD.name:
                yield PeerCardUpdated(iteration=number, facts_count=use.results, **about, **pair)
