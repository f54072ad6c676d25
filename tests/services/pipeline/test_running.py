"""One unit, one holder, nothing twice: claims, leases that are lost, retries, and interruptions
anywhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from memservice.domain.errors import Unavailable
from memservice.domain.filters import equals
from memservice.domain.ids import new_uid
from memservice.domain.records import Lease, Task
from memservice.spi.storage import Transaction
from memservice.testing.storage.base import together
from memservice.worker import retention
from memservice.worker.runner import RunReport
from support.pipeline.place import Place

Start = Callable[..., Place]
T = TypeVar("T")

PATIENCE = 30.0


class Crash(BaseException):
    """Simulates the end of the process: no handler catches it."""


def leases(place: Place) -> list[Lease]:
    with place.rt.storage.read() as tx:
        return tx.tasks.leases()


def lease_of(place: Place, unit: str) -> Lease:
    (found,) = [lease for lease in leases(place) if lease.unit == unit]
    return found


def test_only_one_of_two_runners_gets_a_unit(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))
    unit = place.unit()
    working, let_go = threading.Event(), threading.Event()

    def hold(request: object) -> None:
        working.set()
        assert let_go.wait(PATIENCE)

    place.reasoner.act = hold

    def second() -> RunReport:
        assert working.wait(PATIENCE)
        report = place.run(unit)
        let_go.set()
        return report

    first, other = together(lambda: place.run(unit), second)
    assert (first.claimed, first.done) == (True, 1)
    assert (other.claimed, other.done) == (False, 0)
    assert [c.times_derived for c in place.conclusions("alice")] == [1]
    assert leases(place) == []


def test_many_runners_at_once_do_each_task_once(place: Place) -> None:
    for number in range(6):
        place.say(f"s{number % 2}", ("alice", f"Fact {number} is about a lighthouse."))
    units = place.ready()
    reports = [
        report
        for batch in together(*[lambda: [place.run(unit) for unit in units]] * 4)
        for report in batch
    ]
    assert sum(report.done for report in reports) == 6
    assert sum(report.failed for report in reports) == 0
    assert sorted(place.texts("alice")) == [
        f"Fact {number} is about a lighthouse." for number in range(6)
    ]
    assert {c.times_derived for c in place.conclusions("alice")} == {1}
    assert place.counted("alice") == 6
    assert leases(place) == []


def test_a_holder_that_lost_its_lease_stores_nothing(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))
    unit = place.unit()
    inner: list[RunReport] = []

    def sleep_past_the_lease(request: object) -> None:
        place.reasoner.act = None
        place.clock.advance(minutes=6)
        inner.append(place.run(unit))

    place.reasoner.act = sleep_past_the_lease
    outer = place.run(unit)
    assert (outer.claimed, outer.done, outer.failed) == (True, 0, 0)
    assert (inner[0].claimed, inner[0].done) == (True, 1)
    assert len(place.reasoner.requests) == 2
    assert [c.times_derived for c in place.conclusions("alice")] == [1]
    assert place.counted("alice") == 1
    (task,) = place.tasks()
    assert (task.state, task.attempts) == ("done", 0)


def test_a_holder_that_lost_its_lease_records_no_failure_either(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))
    unit = place.unit()

    def lose_and_fail(request: object) -> None:
        place.clock.advance(minutes=6)
        place.rt.storage.write(lambda tx: tx.tasks.claim(unit, "somebody else", place.clock(), 60))
        raise RuntimeError("too late to tell")

    place.reasoner.act = lose_and_fail
    report = place.run(unit)
    assert (report.done, report.failed) == (0, 0)
    (task,) = place.tasks()
    assert (task.state, task.attempts, task.last_error) == ("pending", 0, None)
    assert lease_of(place, unit).owner == "somebody else", (
        "and it does not give away what is not its own"
    )


def test_an_expired_lease_is_taken_over_with_a_higher_number(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))
    unit = place.unit()
    claim = place.rt.storage.write(lambda tx: tx.tasks.claim(unit, "gone", place.clock(), 300))
    assert claim is not None
    assert place.run(unit).claimed is False
    numbers: list[int] = []
    place.reasoner.act = lambda request: numbers.append(lease_of(place, unit).number)
    place.clock.advance(seconds=301)
    assert place.run(unit).done == 1
    assert numbers == [claim.number + 1]


def test_the_heartbeat_keeps_the_lease_while_a_slow_reasoner_works(start: Start) -> None:
    place = start(DERIVER_STALE_SESSION_TIMEOUT_MINUTES="0.01")
    place.say("s", ("alice", "I like tea."))
    unit = place.unit()
    rivals: list[bool] = []

    def work_slowly(request: object) -> None:
        for _ in range(3):
            # Two thirds of the lease pass; the heartbeat has to prolong it before the next two
            # thirds.
            before = lease_of(place, unit).expires_at
            place.clock.advance(seconds=0.4)
            deadline = time.monotonic() + PATIENCE
            while lease_of(place, unit).expires_at <= before:
                assert time.monotonic() < deadline, "the lease was not prolonged"
                time.sleep(0.01)
            rivals.append(place.run(unit).claimed)

    place.reasoner.act = work_slowly
    assert place.run(unit).done == 1
    assert rivals == [False, False, False]
    assert len(place.reasoner.requests) == 1


def fail_on(word: str) -> Callable[[Any], None]:
    def act(request: Any) -> None:
        if any(word in message.content for message in request.messages if message.new):
            raise RuntimeError(f"cannot read {word}")

    return act


def test_a_failing_task_is_retried_until_it_fails_permanently(place: Place) -> None:
    place.say("s", ("alice", "poison"))
    place.reasoner.act = fail_on("poison")
    waited = timedelta()
    for attempt in range(1, 6):
        (report,) = place.work()
        assert (report.done, report.failed) == (0, 1)
        (task,) = place.tasks()
        assert task.attempts == attempt
        assert task.last_error == "RuntimeError: cannot read poison"
        assert place.ready() == [], "it waits, and so does its unit"
        if attempt < 5:
            assert (task.state, task.finished_at) == ("pending", None)
            pause = task.not_before - place.clock()
            expected = timedelta(seconds=40 * 2 ** (attempt - 1))
            assert 0.8 * expected <= pause <= 1.2 * expected
            waited += pause
            place.clock.now = task.not_before
    assert (task.state, task.finished_at) == ("failed", place.clock())
    assert timedelta(minutes=8) <= waited <= timedelta(minutes=12)
    assert place.work() == []


def test_a_failing_task_blocks_its_unit_until_it_fails_permanently(start: Start) -> None:
    place = start(WORKER_MAX_ATTEMPTS="2")
    place.reasoner.act = fail_on("poison")
    place.say("s", ("alice", "poison"))
    place.work()
    place.say("s", ("alice", "I like tea."))
    place.say("t", ("alice", "I own a boat."))
    place.work()
    assert place.texts("alice") == ["I own a boat."], "other units go on"
    place.clock.advance(minutes=2)
    place.work()
    assert place.texts("alice") == ["I own a boat.", "I like tea."]
    assert [(task.state, task.attempts) for task in place.tasks()] == [
        ("failed", 2),
        ("done", 0),
        ("done", 0),
    ]


@pytest.mark.parametrize("position", [0, 1, 9, 19])
def test_a_failing_task_does_not_fail_its_batch(start: Start, position: int) -> None:
    place = start(WORKER_MAX_ATTEMPTS="2")
    facts = [f"Fact {number}." for number in range(20)]
    said = [*facts[:position], "poison", *facts[position:]]
    place.reasoner.act = fail_on("poison")
    place.say("s", *[("alice", content) for content in said])
    place.work()
    assert place.texts("alice") == facts[:position], "what came before it is done at once"
    assert [task.attempts for task in place.tasks() if task.attempts] == [1]
    place.clock.advance(minutes=2)
    place.work()
    assert place.texts("alice") == facts
    assert {c.times_derived for c in place.conclusions("alice")} == {1}
    assert [task.attempts for task in place.tasks() if task.attempts] == [2]
    assert place.counts() == (22, 22, 0, 0)


def test_a_temporary_failure_leaves_only_its_error(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))
    place.reasoner.act = fail_on("tea")
    place.work()
    place.reasoner.act = None
    place.clock.advance(minutes=1)
    place.work()
    (task,) = place.tasks()
    assert (task.state, task.attempts) == ("done", 1)
    assert place.texts("alice") == ["I like tea."]


def test_a_task_of_an_unknown_kind_fails_visibly(start: Start) -> None:
    place = start(WORKER_MAX_ATTEMPTS="1")
    now = place.clock()
    task = Task(uid=new_uid(), unit="mystery:1", kind="mystery", not_before=now, created_at=now)
    place.rt.storage.write(lambda tx: tx.tasks.add([task]))
    (report,) = place.work()
    assert report.failed == 1
    (failed,) = place.tasks("mystery")
    assert failed.state == "failed"
    assert failed.last_error is not None
    assert "no handler for tasks of kind 'mystery'" in failed.last_error
    assert "representation" in failed.last_error


def crashing(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    when: Callable[[Transaction], bool],
    error: BaseException,
) -> None:
    """The first transaction after which `when` holds is not committed: it ends in `error`."""
    write = place.rt.storage.write
    armed = [True]

    def instead(fn: Callable[[Transaction], T]) -> T:
        def interrupted(tx: Transaction) -> T:
            result = fn(tx)
            if armed[0] and when(tx):
                armed[0] = False
                raise error
            return result

        return write(interrupted)

    monkeypatch.setattr(place.rt.storage, "write", instead)


def done(tx: Transaction) -> bool:
    return tx.rows.count(Task, equals(state="done")) > 0


def test_work_interrupted_before_the_commit_is_repeated_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.say("s", ("alice", "I like tea."), ("alice", "I own a boat."))
    unit = place.unit()
    crashing(place, monkeypatch, done, Crash())
    with pytest.raises(Crash):
        place.run(unit)
    assert place.texts("alice") == []
    assert place.counts() == (2, 0, 2, 0), "the lease of whoever ended is still there"
    assert place.run(unit).claimed is False
    place.clock.advance(minutes=6)
    assert place.run(unit).done == 2
    assert [(c.content, c.times_derived) for c in place.conclusions("alice")] == [
        ("I like tea.", 1),
        ("I own a boat.", 1),
    ]
    assert place.counted("alice") == 2
    assert [task.attempts for task in place.tasks()] == [0, 0], "an interruption is no failure"


def test_an_unreachable_store_does_not_count_against_the_task(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.say("s", ("alice", "I like tea."))
    unit = place.unit()
    crashing(place, monkeypatch, done, Unavailable("the disk is full"))
    with pytest.raises(Unavailable):
        place.run(unit)
    (task,) = place.tasks()
    assert (task.state, task.attempts, task.last_error) == ("pending", 0, None)
    assert place.ready() == []
    # The process is still there, but it does not work on the unit any more: nobody need wait for
    # the lease to run out.
    assert retention.free_abandoned(place.rt) == 1
    assert place.run(unit).done == 1
    assert [c.times_derived for c in place.conclusions("alice")] == [1]


def test_work_that_arrives_during_a_run_is_done_in_it(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))

    def interrupt(request: object) -> None:
        place.reasoner.act = None
        place.say("s", ("alice", "I own a boat."))

    place.reasoner.act = interrupt
    assert place.run(place.unit()).done == 2
    assert place.texts("alice") == ["I like tea.", "I own a boat."]


def test_work_that_arrives_just_before_the_release_is_done(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.say("s", ("alice", "I like tea."))
    unit = place.unit()
    write = place.rt.storage.write
    armed = [True]

    def somebody_writes_before_the_release(fn: Callable[[Transaction], T]) -> T:
        if armed[0] and [task.state for task in place.tasks()] == ["done"]:
            armed[0] = False
            place.say("s", ("alice", "I own a boat."))
        return write(fn)

    monkeypatch.setattr(place.rt.storage, "write", somebody_writes_before_the_release)
    assert place.run(unit).done == 2
    assert place.texts("alice") == ["I like tea.", "I own a boat."]


def test_a_stop_finishes_the_current_batch_and_releases_the_unit(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memservice.pipeline.derive import handler as derive
    from memservice.worker.runner import run

    monkeypatch.setattr(derive, "MAX_BATCH", 1)
    place.say("s", ("alice", "I like tea."), ("alice", "I own a boat."))
    unit = place.unit()
    stop = threading.Event()
    place.reasoner.act = lambda request: stop.set()
    assert run(place.rt, unit, stop).done == 1
    assert leases(place) == []
    assert place.counts() == (2, 1, 0, 1)
    place.reasoner.act = None
    place.work()
    assert place.texts("alice") == ["I like tea.", "I own a boat."]


def test_a_task_that_backs_off_keeps_its_position(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))
    (task,) = place.tasks()
    place.rt.storage.write(
        lambda tx: tx.rows.put([replace(task, not_before=place.clock() + timedelta(seconds=30))])
    )
    place.say("s", ("alice", "I own a boat."))
    assert place.work() == []
    place.clock.advance(seconds=31)
    place.work()
    assert place.texts("alice") == ["I like tea.", "I own a boat."]
