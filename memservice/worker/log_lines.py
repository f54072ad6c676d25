"""Log lines of background work. They name resources, and quote no text of users."""

from __future__ import annotations

from collections.abc import Mapping

from memservice.domain.errors import IndexUnavailable
from memservice.domain.records import Task
from memservice.pipeline.handler import Failed
from memservice.runtime import Runtime
from memservice.services.tasks import jobs
from memservice.spi.llm import ModelFailure


def of_run(rt: Runtime, task: Task, counts: Mapping[str, int], seconds: float, unit: str) -> str:
    """What a run of a unit did: the kind of its first task, its resources by name, and all counts
    but zeros."""
    return " ".join(
        [
            task.kind,
            *jobs.about(rt, task),
            *(f"{name}={number}" for name, number in counts.items() if number),
            f"ms={seconds * 1000:.0f}",
            f"unit={unit}",
        ]
    )


def reason(error: Exception) -> str:
    """An error for the log: its class, and its text if that cannot quote a message. The text of
    other errors is stored with the task only."""
    name = type(error).__name__
    if isinstance(error, Failed):
        return f"{name}: {error.public_reason}" if error.public_reason else name
    is_public = isinstance(error, (ModelFailure, IndexUnavailable))
    return f"{name}: {error}" if is_public else name
