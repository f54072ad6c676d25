"""The handler of a kind of task: it prepares results outside any transaction, then stores them in
one."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from msgspec import Struct

from memservice.domain.records import Task
from memservice.runtime import Runtime
from memservice.spi.storage import Transaction
from memservice.telemetry.events import Event

Outcome = dict[str, Any]
"""Counts of the results of a batch, stored with its tasks. A batch without results has an outcome
too."""


class Unfinished(Struct, frozen=True):
    """A step is done, others remain. `task` is stored with the progress so far, and is processed
    again at its `not_before`. Only for batches of one task."""

    task: Task


class Prepared(Struct, frozen=True):
    """The work on a batch is done; `store` writes its results and returns the outcome. It may run
    more than once, so it must have no effects outside the transaction."""

    store: Callable[[Transaction], Outcome | Unfinished]
    events: Callable[[Outcome], Iterable[Event]] | None = None
    """Telemetry events. Called once, after the commit, with the stored outcome; not for a batch
    that was skipped."""


def nothing(**outcome: Any) -> Prepared:
    """Store nothing but the outcome, for example the reason `skipped`."""
    return Prepared(lambda tx: dict(outcome))


class InputErased(Exception):
    """Raised by `store` if rows that the work read were erased since. Nothing is stored, and the
    remaining tasks are processed again. Not a failed attempt."""


class Failed(Exception):
    """Raised by `prepare` if the work failed and further rows must be stored with the failure."""

    public_reason = ""
    """For the log: quotes no text of users or of other servers."""

    def record(self, tx: Transaction, is_final: bool) -> None:
        """Store the rows, in the transaction that records the failure. `is_final`: there will be no
        further try."""


class Handler(ABC):
    """Processes the tasks of one kind."""

    kind: ClassVar[str]
    """Name of the kind (`memservice.services.tasks.kinds`)."""

    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        """How many of the unit's pending tasks (at least one, all of this kind) are processed
        together, from the first one on."""
        return 1

    @abstractmethod
    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        """Do the work. Read transactions are closed before a reasoner or an embedder is called.
        Raises any error of the work."""

    def retry_after(self, rt: Runtime, attempts: int, error: Exception) -> float | None:
        """Seconds until the next try after `attempts` failed ones, the last of them with `error`;
        None if the task has failed permanently."""
        return None if attempts >= rt.settings.worker.max_attempts else backoff(rt, attempts)

    def needs_model(self, task: Task) -> bool:
        """Whether a task of a kind that calls a reasoner calls it, and so has to wait for a model
        or a budget."""
        return True

    def on_failed(self, rt: Runtime, tx: Transaction, task: Task) -> None:  # noqa: B027
        """The task has failed permanently; part of the transaction that records it."""

    def failure_events(self, rt: Runtime, task: Task, error: Exception) -> Iterable[Event]:
        """Events that report a permanent failure. Called after the commit."""
        return ()


MAX_BACKOFF_SECONDS = 600.0


def backoff(rt: Runtime, attempts: int) -> float:
    """The default pause in seconds after this many failed tries."""
    pause: float = min(
        rt.settings.worker.retry_backoff_seconds * 2 ** min(attempts - 1, 30), MAX_BACKOFF_SECONDS
    )
    return pause * random.uniform(0.8, 1.2)
