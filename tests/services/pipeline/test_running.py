"""One unit, one holder, nothing twice: claims, leases that are lost, retries, and interruptions
anywhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from memservice.domain.errors import Unavailable
from memservice.domain.filters import equals
from memservice.domain.ids import new_uid
from memservice.domain.records import Lease, Task
from memservice.spi.storage import Transaction
from memservice.testing.storage.base import together
from memservice.worker import retention
from memservice.worker.runner import RunReport
from support.pipeline.pipeline import Pipeline

OpenPipeline = Callable[..., Pipeline]
T = TypeVar("T")

PATIENCE = 30.0


class Crash(BaseException):
    """Simulates the end of the process: no handler catches it."""


def leases(pipeline: Pipeline) -> list[Lease]:
    with pipeline.rt.storage.read() as tx:
        return tx.tasks.leases()


def lease_of(pipeline: Pipeline, unit: str) -> Lease:
    (match,) = [lease for lease in leases(pipeline) if lease.unit == unit]
    return match


def test_only_one_of_two_runners_gets_a_unit(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    unit = pipeline.unit()
    working, let_go = threading.Event(), threading.Event()

    def hold(request: object) -> None:
        working.set()
        assert let_go.wait(PATIENCE)

    pipeline.reasoner.act = hold

    def second() -> RunReport:
        assert working.wait(PATIENCE)
        report = pipeline.run(unit)
        let_go.set()
        return report

    first, other = together(lambda: pipeline.run(unit), second)
    assert (first.claimed, first.done) == (True, 1)
    assert (other.claimed, other.done) == (False, 0)
    assert [c.times_derived for c in pipeline.conclusions("alice")] == [1]
    assert leases(pipeline) == []


def test_many_runners_at_once_do_each_task_once(pipeline: Pipeline) -> None:
    for number in range(6):
        pipeline.say(f"s{number % 2}", ("alice", f"Fact {number} is about a lighthouse."))
    units = pipeline.ready()
    reports = [
        report
        for batch in together(*[lambda: [pipeline.run(unit) for unit in units]] * 4)
        for report in batch
    ]
    assert sum(report.done for report in reports) == 6
    assert sum(report.failed for report in reports) == 0
    assert sorted(pipeline.texts("alice")) == [
        f"Fact {number} is about a lighthouse." for number in range(6)
    ]
    assert {c.times_derived for c in pipeline.conclusions("alice")} == {1}
    assert pipeline.counted("alice") == 6
    assert leases(pipeline) == []


def test_a_holder_that_lost_its_lease_stores_nothing(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    unit = pipeline.unit()
    inner: list[RunReport] = []

    def sleep_past_the_lease(request: object) -> None:
        pipeline.reasoner.act = None
        pipeline.clock.advance(minutes=6)
        inner.append(pipeline.run(unit))

    pipeline.reasoner.act = sleep_past_the_lease
    outer = pipeline.run(unit)
    assert (outer.claimed, outer.done, outer.failed) == (True, 0, 0)
    assert (inner[0].claimed, inner[0].done) == (True, 1)
    assert len(pipeline.reasoner.requests) == 2
    assert [c.times_derived for c in pipeline.conclusions("alice")] == [1]
    assert pipeline.counted("alice") == 1
    (task,) = pipeline.tasks()
    assert (task.state, task.attempts) == ("done", 0)


def test_a_holder_that_lost_its_lease_records_no_failure_either(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    unit = pipeline.unit()

    def lose_and_fail(request: object) -> None:
        pipeline.clock.advance(minutes=6)
        pipeline.rt.storage.write(
            lambda tx: tx.tasks.claim(unit, "somebody else", pipeline.clock(), 60)
        )
        raise RuntimeError("too late to tell")

    pipeline.reasoner.act = lose_and_fail
    report = pipeline.run(unit)
    assert (report.done, report.failed) == (0, 0)
    (task,) = pipeline.tasks()
    assert (task.state, task.attempts, task.last_error) == ("pending", 0, None)
    assert lease_of(pipeline, unit).owner == "somebody else", (
        "and it does not give away what is not its own"
    )


def test_an_expired_lease_is_taken_over_with_a_higher_number(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    unit = pipeline.unit()
    claim = pipeline.rt.storage.write(
        lambda tx: tx.tasks.claim(unit, "gone", pipeline.clock(), 300)
    )
    assert claim is not None
    assert pipeline.run(unit).claimed is False
    numbers: list[int] = []
    pipeline.reasoner.act = lambda request: numbers.append(lease_of(pipeline, unit).number)
    pipeline.clock.advance(seconds=301)
    assert pipeline.run(unit).done == 1
    assert numbers == [claim.number + 1]


@pytest.mark.slow
def test_the_heartbeat_keeps_the_lease_while_a_slow_reasoner_works(
    open_pipeline: OpenPipeline,
) -> None:
    pipeline = open_pipeline(DERIVER_STALE_SESSION_TIMEOUT_MINUTES="0.01")
    pipeline.say("s", ("alice", "I like tea."))
    unit = pipeline.unit()
    rivals: list[bool] = []

    def work_slowly(request: object) -> None:
        for _ in range(3):
            # Two thirds of the lease pass; the heartbeat has to prolong it before the next two
            # thirds.
            before = lease_of(pipeline, unit).expires_at
            pipeline.clock.advance(seconds=0.4)
            deadline = time.monotonic() + PATIENCE
            while lease_of(pipeline, unit).expires_at <= before:
                assert time.monotonic() < deadline, "the lease was not prolonged"
                time.sleep(0.01)
            rivals.append(pipeline.run(unit).claimed)

    pipeline.reasoner.act = work_slowly
    assert pipeline.run(unit).done == 1
    assert rivals == [False, False, False]
    assert len(pipeline.reasoner.requests) == 1


def fail_on(word: str) -> Callable[[Any], None]:
    def act(request: Any) -> None:
        if any(word in message.content for message in request.messages if message.new):
            raise RuntimeError(f"cannot read {word}")

    return act


def test_a_failing_task_is_retried_until_it_fails_permanently(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "poison"))
    pipeline.reasoner.act = fail_on("poison")
    waited = timedelta()
    for attempt in range(1, 6):
        (report,) = pipeline.work()
        assert (report.done, report.failed) == (0, 1)
        (task,) = pipeline.tasks()
        assert task.attempts == attempt
        assert task.last_error == "RuntimeError: cannot read poison"
        assert pipeline.ready() == [], "it waits, and so does its unit"
        if attempt < 5:
            assert (task.state, task.finished_at) == ("pending", None)
            pause = task.not_before - pipeline.clock()
            expected = timedelta(seconds=40 * 2 ** (attempt - 1))
            assert 0.8 * expected <= pause <= 1.2 * expected
            waited += pause
            pipeline.clock.now = task.not_before
    assert (task.state, task.finished_at) == ("failed", pipeline.clock())
    assert timedelta(minutes=8) <= waited <= timedelta(minutes=12)
    assert pipeline.work() == []


def test_a_failing_task_blocks_its_unit_until_it_fails_permanently(
    open_pipeline: OpenPipeline,
) -> None:
    pipeline = open_pipeline(WORKER_MAX_ATTEMPTS="2")
    pipeline.reasoner.act = fail_on("poison")
    pipeline.say("s", ("alice", "poison"))
    pipeline.work()
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.say("t", ("alice", "I own a boat."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I own a boat."], "other units go on"
    pipeline.clock.advance(minutes=2)
    pipeline.work()
    assert pipeline.texts("alice") == ["I own a boat.", "I like tea."]
    assert [(task.state, task.attempts) for task in pipeline.tasks()] == [
        ("failed", 2),
        ("done", 0),
        ("done", 0),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("position", [0, 1, 9, 19])
def test_a_failing_task_does_not_fail_its_batch(open_pipeline: OpenPipeline, position: int) -> None:
    pipeline = open_pipeline(WORKER_MAX_ATTEMPTS="2")
    facts = [f"Fact {number}." for number in range(20)]
    contents = [*facts[:position], "poison", *facts[position:]]
    pipeline.reasoner.act = fail_on("poison")
    pipeline.say("s", *[("alice", content) for content in contents])
    pipeline.work()
    assert pipeline.texts("alice") == facts[:position], "what came before it is done at once"
    assert [task.attempts for task in pipeline.tasks() if task.attempts] == [1]
    pipeline.clock.advance(minutes=2)
    pipeline.work()
    assert pipeline.texts("alice") == facts
    assert {c.times_derived for c in pipeline.conclusions("alice")} == {1}
    assert [task.attempts for task in pipeline.tasks() if task.attempts] == [2]
    assert pipeline.counts() == (22, 22, 0, 0)


def test_a_temporary_failure_leaves_only_its_error(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.reasoner.act = fail_on("tea")
    pipeline.work()
    pipeline.reasoner.act = None
    pipeline.clock.advance(minutes=1)
    pipeline.work()
    (task,) = pipeline.tasks()
    assert (task.state, task.attempts) == ("done", 1)
    assert pipeline.texts("alice") == ["I like tea."]


def test_a_task_of_an_unknown_kind_fails_visibly(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(WORKER_MAX_ATTEMPTS="1")
    now = pipeline.clock()
    task = Task(uid=new_uid(), unit="mystery:1", kind="mystery", not_before=now, created_at=now)
    pipeline.rt.storage.write(lambda tx: tx.tasks.add([task]))
    (report,) = pipeline.work()
    assert report.failed == 1
    (failed,) = pipeline.tasks("mystery")
    assert failed.state == "failed"
    assert failed.last_error is not None
    assert "no handler for tasks of kind 'mystery'" in failed.last_error
    assert "representation" in failed.last_error


def crashing(
    pipeline: Pipeline,
    monkeypatch: pytest.MonkeyPatch,
    when: Callable[[Transaction], bool],
    error: BaseException,
) -> None:
    """The first transaction after which `when` holds is not committed: it ends in `error`."""
    write = pipeline.rt.storage.write
    armed = [True]

    def instead(fn: Callable[[Transaction], T]) -> T:
        def interrupted(tx: Transaction) -> T:
            result = fn(tx)
            if armed[0] and when(tx):
                armed[0] = False
                raise error
            return result

        return write(interrupted)

    monkeypatch.setattr(pipeline.rt.storage, "write", instead)


def done(tx: Transaction) -> bool:
    return tx.rows.count(Task, equals(state="done")) > 0


def test_work_interrupted_before_the_commit_is_repeated_once(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a boat."))
    unit = pipeline.unit()
    crashing(pipeline, monkeypatch, done, Crash())
    with pytest.raises(Crash):
        pipeline.run(unit)
    assert pipeline.texts("alice") == []
    assert pipeline.counts() == (2, 0, 2, 0), "the lease of whoever ended is still there"
    assert pipeline.run(unit).claimed is False
    pipeline.clock.advance(minutes=6)
    assert pipeline.run(unit).done == 2
    assert [(c.content, c.times_derived) for c in pipeline.conclusions("alice")] == [
        ("I like tea.", 1),
        ("I own a boat.", 1),
    ]
    assert pipeline.counted("alice") == 2
    assert [task.attempts for task in pipeline.tasks()] == [0, 0], "an interruption is no failure"


def test_an_unreachable_store_does_not_count_against_the_task(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    unit = pipeline.unit()
    crashing(pipeline, monkeypatch, done, Unavailable("the disk is full"))
    with pytest.raises(Unavailable):
        pipeline.run(unit)
    (task,) = pipeline.tasks()
    assert (task.state, task.attempts, task.last_error) == ("pending", 0, None)
    assert pipeline.ready() == []
    # The process is still there, but it does not work on the unit any more: nobody need wait for
    # the lease to run out.
    assert retention.free_abandoned(pipeline.rt) == 1
    assert pipeline.run(unit).done == 1
    assert [c.times_derived for c in pipeline.conclusions("alice")] == [1]


def test_work_that_arrives_during_a_run_is_done_in_it(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))

    def interrupt(request: object) -> None:
        pipeline.reasoner.act = None
        pipeline.say("s", ("alice", "I own a boat."))

    pipeline.reasoner.act = interrupt
    assert pipeline.run(pipeline.unit()).done == 2
    assert pipeline.texts("alice") == ["I like tea.", "I own a boat."]


def test_work_that_arrives_just_before_the_release_is_done(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    unit = pipeline.unit()
    write = pipeline.rt.storage.write
    armed = [True]

    def somebody_writes_before_the_release(fn: Callable[[Transaction], T]) -> T:
        if armed[0] and [task.state for task in pipeline.tasks()] == ["done"]:
            armed[0] = False
            pipeline.say("s", ("alice", "I own a boat."))
        return write(fn)

    monkeypatch.setattr(pipeline.rt.storage, "write", somebody_writes_before_the_release)
    assert pipeline.run(unit).done == 2
    assert pipeline.texts("alice") == ["I like tea.", "I own a boat."]


def test_a_stop_finishes_the_current_batch_and_releases_the_unit(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memservice.pipeline.derive import handler as derive
    from memservice.worker.runner import run

    monkeypatch.setattr(derive, "MAX_BATCH", 1)
    pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a boat."))
    unit = pipeline.unit()
    stop = threading.Event()
    pipeline.reasoner.act = lambda request: stop.set()
    assert run(pipeline.rt, unit, stop).done == 1
    assert leases(pipeline) == []
    assert pipeline.counts() == (2, 1, 0, 1)
    pipeline.reasoner.act = None
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea.", "I own a boat."]


def test_a_task_that_backs_off_keeps_its_position(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    (task,) = pipeline.tasks()
    pipeline.rt.storage.write(
        lambda tx: tx.rows.put([replace(task, not_before=pipeline.clock() + timedelta(seconds=30))])
    )
    pipeline.say("s", ("alice", "I own a boat."))
    assert pipeline.work() == []
    pipeline.clock.advance(seconds=31)
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea.", "I own a boat."]
