"""What a kind of task is, to the runner: something that prepares outside any transaction, then stores in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memservice.domain.records import Task
from memservice.runtime import Runtime
from memservice.spi.storage import View

Outcome = dict[str, Any]
"""Counts of what came of a batch, kept with its tasks; producing nothing is an outcome too."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The work on a batch is done; `store` writes its results and returns the outcome. It may run more than once, so it has no
    effects outside the view."""

    store: Callable[[View], Outcome]


def nothing(**why: Any) -> Prepared:
    """There is nothing to store, for a reason that is kept."""
    return Prepared(lambda view: dict(why))


class Handler(Protocol):
    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        """How many of the unit's pending tasks (never none), counted from the first, are done together."""
        ...

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        """Do the work. Views are opened only for reading and closed before a reasoner or an embedder is asked. Raises what went wrong."""
        ...
