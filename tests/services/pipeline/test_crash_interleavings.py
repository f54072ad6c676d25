"""Whatever ends a worker, wherever and how often: the conclusions are those of a run that nothing
happened to.

Hypothesis draws what is said and when workers end: before a transaction, just before its commit,
just after it, or by standing still past the lease while another worker does the work. `tests/crash`
does some of this to real processes; here there are many more orders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memservice.compose import open_runtime
from memservice.plugins import load_plugins
from memservice.settings import load_settings
from memservice.spi.storage import Storage, Transaction
from memservice.testing.failpoints import AFTER, BEFORE, BEGIN
from memservice.worker import retention
from memservice.worker.polling import Worker
from support.examples import examples
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import Clock, Pipeline
from support.processes.boundaries import contents
from support.stores.stores import sqlite_store_at

pytestmark = pytest.mark.timeout(300)

T = TypeVar("T")

SAY, END, STAND_STILL = "say", "end", "stand still"
AUTHORS = ("alice", "bob")


class End(BaseException):
    """The process ends here: nothing catches it."""


class CrashingStorage:
    """A storage in one of whose writes the process ends."""

    def __init__(self, inner: Storage, point: str, number: int) -> None:
        self._inner = inner
        self._point = point
        self._left = number

    def write(self, fn: Callable[[Transaction], T]) -> T:
        self._left -= 1

        def then(tx: Transaction) -> T:
            result = fn(tx)
            self._end_at(BEFORE)
            return result

        self._end_at(BEGIN)
        result = self._inner.write(then)
        self._end_at(AFTER)
        return result

    def _end_at(self, point: str) -> None:
        if self._point == point and self._left <= 0:
            raise End

    def read(self) -> AbstractContextManager[Transaction]:
        return self._inner.read()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


Step = tuple[str, Any, Any]

SAYING = st.tuples(st.just(SAY), st.sampled_from(AUTHORS), st.integers(1, 5))
ENDING = st.tuples(st.just(END), st.sampled_from((BEGIN, BEFORE, AFTER)), st.integers(1, 6))
STANDING = st.tuples(st.just(STAND_STILL), st.none(), st.none())
STEPS = st.lists(SAYING | ENDING | STANDING, min_size=2, max_size=7).filter(
    lambda steps: any(step[0] == SAY for step in steps)
)


class CrashingPipeline:
    def __init__(self, folder: Path, uri: str) -> None:
        loaded = load_settings(
            environ={
                "DB_CONNECTION_URI": uri,
                "REASONER": "scripted",
                "SUMMARY_MESSAGES_PER_SHORT_SUMMARY": "10",
            },
            cwd=folder,
        )
        self.reasoner = ScriptedReasoner()
        self.clock = Clock()
        self.rt = open_runtime(
            loaded, plugins=load_plugins(loaded, extra=[self.reasoner]), clock=self.clock
        )
        self.rt.storage.migrate()
        self.pipeline = Pipeline(self.rt, self.clock, self.reasoner)
        self.message_count = 0
        self.ended = 0

    def say(self, author: str, number: int) -> None:
        facts = [
            f"Number {n} is {author}'s, and {n * 7} as well."
            for n in range(self.message_count, self.message_count + number)
        ]
        self.message_count += number
        self.pipeline.say("s", *[(author, fact) for fact in facts])

    def work(self) -> None:
        """A worker that was just started, and to which nothing happens."""
        retention.free_abandoned(self.rt)
        Worker(self.rt).run_until_idle(60)

    def end(self, point: str, number: int) -> None:
        """A worker that ends in one of its writes."""
        undisturbed = self.rt.storage
        # the rest of a storage it hands on
        self.rt.storage = cast(Storage, CrashingStorage(undisturbed, point, number))
        try:
            self.work()
        except End:
            self.ended += 1
        finally:
            self.rt.storage = undisturbed

    def stand_still(self) -> None:
        """A worker that stands still past its lease, in the middle of a call, while another does
        its work."""

        def stand(request: object) -> None:
            self.reasoner.act = None
            self.clock.advance(minutes=6)
            Worker(self.rt).run_until_idle(60)

        self.reasoner.act = stand
        self.work()
        self.reasoner.act = None

    def follow(self, steps: Sequence[Step]) -> None:
        for what, first, second in steps:
            if what == SAY:
                self.say(first, second)
            elif what == END:
                self.end(first, second)
            else:
                self.stand_still()

    def state(self) -> dict[str, Any]:
        """All that matters after everything was worked on, with the order of each peer's
        conclusions.

        Of a summary, what it is up to: whether it was made in one step or in two depends on when a
        worker was there, ended or not.
        """
        self.work()
        orders = {author: self.pipeline.texts(author) for author in AUTHORS}
        state = contents(self.rt)
        return {
            **state,
            "summaries": [(kind, last) for kind, _, last in state["summaries"]],
            "orders": orders,
        }


def same_as_without(folder: Path, uri: str, whole_uri: str, steps: Sequence[Step]) -> int:
    """Asserts that the ends made no difference; returns how many there were."""
    crashing, undisturbed = CrashingPipeline(folder, uri), CrashingPipeline(folder, whole_uri)
    try:
        crashing.follow(steps)
        undisturbed.follow([step for step in steps if step[0] == SAY])
        assert crashing.state() == undisturbed.state()
        return crashing.ended
    finally:
        crashing.rt.close()
        undisturbed.rt.close()


@pytest.mark.slow
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(STEPS)
@example(
    [
        (SAY, "alice", 8),
        (END, AFTER, 2),
        (SAY, "bob", 3),
        (STAND_STILL, None, None),
        (SAY, "alice", 1),
        (END, BEFORE, 3),
    ]
)
def test_any_interleaving_of_crashes_yields_the_same_conclusions_in_memory(
    tmp_path: Path, steps: Sequence[Step]
) -> None:
    same_as_without(tmp_path, "memory://", "memory://", steps)


@pytest.mark.slow
@settings(
    max_examples=examples(8),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(STEPS)
def test_any_interleaving_of_crashes_yields_the_same_conclusions_in_sqlite(
    tmp_path_factory: pytest.TempPathFactory, steps: Sequence[Step]
) -> None:
    folder = tmp_path_factory.mktemp("crash")
    same_as_without(
        folder, sqlite_store_at(folder / "a.db"), sqlite_store_at(folder / "b.db"), steps
    )


@pytest.mark.parametrize("point", [BEGIN, BEFORE, AFTER])
@pytest.mark.slow
def test_a_worker_really_ends_at_each_of_its_writes(tmp_path: Path, point: str) -> None:
    ends = [
        same_as_without(
            tmp_path, "memory://", "memory://", [(SAY, "alice", 3), (END, point, number)]
        )
        for number in range(1, 5)
    ]
    assert ends == [1, 1, 1, 0], "claim, results, release; and there is no fourth"
