"""What a kind of task is, to the runner: something that prepares outside any transaction, then
stores in one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from memservice.domain.records import Task
from memservice.runtime import Runtime
from memservice.spi.storage import Transaction
from memservice.telemetry.events import Event

Outcome = dict[str, Any]
"""Counts of what came of a batch, kept with its tasks; producing nothing is an outcome too."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A step is done, others remain. The task is stored as it is here, with what it has to know of
    the steps so far, and comes up again at its `not_before`. Only for batches of one task."""

    task: Task


@dataclass(frozen=True, slots=True)
class Prepared:
    """The work on a batch is done; `store` writes its results and returns the outcome. It may run
    more than once, so it has no effects outside the view."""

    store: Callable[[Transaction], Outcome | Unfinished]
    events: Callable[[Outcome], Iterable[Event]] | None = None
    """What operators are told of it. Called once, after the commit, with the outcome that was kept;
    not for a batch that was skipped."""


def nothing(**why: Any) -> Prepared:
    """There is nothing to store, for a reason that is kept."""
    return Prepared(lambda tx: dict(why))


class Failed(Exception):
    """Raised by `prepare`: the work failed, and something about that is to be stored with the
    failure."""

    def record(self, tx: Transaction, rests: bool) -> None:
        """Store it, in the transaction that records the failure. `rests`: there will be no further
        try."""


class Handler(Protocol):
    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        """How many of the unit's pending tasks (all of this kind, never none), counted from the
        first, are done together."""
        ...

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        """Do the work. Views are opened only for reading and closed before a reasoner or an
        embedder is asked. Raises what went wrong."""
        ...


@runtime_checkable
class HandlesFailure(Handler, Protocol):
    """A handler of tasks whose final failure somebody looks for elsewhere than among the tasks."""

    def on_failed(self, rt: Runtime, tx: Transaction, task: Task) -> None:
        """The task has failed for the last time; part of the transaction that puts it to rest."""
        ...


@runtime_checkable
class ReportsFailure(Handler, Protocol):
    """A handler of tasks whose final failure operators are told of by an event."""

    def failure_events(self, rt: Runtime, task: Task, error: Exception) -> Iterable[Event]:
        """The task has failed for the last time, and rests. Called after the commit."""
        ...


@runtime_checkable
class HasRetryPolicy(Protocol):
    """A handler with a rule of its own for trying again."""

    def retry_after(self, rt: Runtime, attempts: int, error: Exception) -> float | None:
        """Seconds until the next try after so many failed ones, the last of them by this error;
        None to let the task rest."""
        ...


MAX_BACKOFF_SECONDS = 600.0


def backoff(rt: Runtime, attempts: int) -> float:
    """The ordinary pause, in seconds, after so many failed tries."""
    pause: float = min(
        rt.settings.worker.retry_backoff_seconds * 2 ** min(attempts - 1, 30), MAX_BACKOFF_SECONDS
    )
    return pause * random.uniform(0.8, 1.2)
