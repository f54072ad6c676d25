"""Work that is interrupted as if its process had died, and continued by another worker."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from memservice.worker import runner
from support.pipeline.pipeline import Pipeline

MAX_ROUNDS = 300


class Crash(BaseException):
    """The process dies."""


class AfterOneStep:
    """The signal for a run to stop after its first step."""

    def __init__(self) -> None:
        self._calls = 0

    def is_set(self) -> bool:
        self._calls += 1
        return self._calls > 1


@contextmanager
def commits(commit: Callable[..., Any]) -> Iterator[None]:
    """Replace the function that commits the result of a step of work."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_commit", commit)
        yield


def run_with_crashes(pipeline: Pipeline, unit: str, survives: int = 1) -> int:
    """Process a unit by workers of which each dies before it commits, after `survives` steps.
    Returns how many died."""
    commit = runner._commit
    crashes = 0
    for _ in range(MAX_ROUNDS):
        steps = iter(range(MAX_ROUNDS))

        def dying(*arguments: Any, steps: Iterator[int] = steps) -> Any:
            if next(steps) >= survives:
                raise Crash
            return commit(*arguments)

        with commits(dying):
            try:
                pipeline.run(unit)
                if unit not in pipeline.ready():
                    return crashes  # otherwise its time slice was over
            except Crash:
                crashes += 1
        pipeline.clock.advance(hours=1)
    raise AssertionError(f"{unit} does not end")


class Kills:
    """Workers that die at random: before they commit the result of a step, or in its
    transaction."""

    def __init__(self, seed: int, most: int, chance: float = 0.15) -> None:
        self._random = random.Random(seed)
        self._left = most
        self._chance = chance
        self.number = 0

    def work(self, pipeline: Pipeline) -> None:
        """Until nothing is ready."""
        commit = runner._commit

        def dying(*arguments: Any) -> Any:
            moment = self._random.random()
            if self._left and moment < self._chance:
                self._left -= 1
                self.number += 1
                if moment < self._chance / 2:
                    commit(*arguments)  # and is rolled back
                raise Crash
            return commit(*arguments)

        with commits(dying):
            while True:
                try:
                    pipeline.work()
                    return
                except Crash:
                    pipeline.clock.advance(minutes=6)  # until the lease has expired
