"""The number of rows that one transaction of an erasure erases or moves. Other writers of SQLite
wait as long as it takes, so the number follows the measured time."""

from __future__ import annotations

from msgspec.structs import replace

from memservice.domain.records import Task
from memservice.pipeline.handler import Outcome, Unfinished

ENTRY = "batch"
"""Entry of the payload: the number of rows of the next transaction."""
FIRST_SIZE = 40
"""The first transaction is slow: nothing that it reads is in memory yet."""
MIN_SIZE = 40
"""A transaction without any row costs about as much as these rows: with fewer of them it is hardly
shorter, and the whole takes longer."""
SECONDS = 0.015
"""About how long a transaction takes."""


def size(task: Task, maximum: int) -> int:
    """Number of rows of the next transaction."""
    size: int = task.payload.get(ENTRY, FIRST_SIZE)
    return min(size, maximum)


def adapted(step: Outcome | Unfinished, seconds: float, maximum: int) -> Outcome | Unfinished:
    """A step, with the number of rows for the next one. `seconds`: how long this one took."""
    if not isinstance(step, Unfinished):
        return step
    task = step.task
    before = size(task, maximum)
    number = int(before * min(2.0, SECONDS / max(seconds, 1e-4)))
    payload = {**task.payload, ENTRY: max(MIN_SIZE, min(number, maximum))}
    return Unfinished(replace(task, payload=payload))
