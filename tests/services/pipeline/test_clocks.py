"""Clocks that are wrong for a while: work is done by every clock, and nothing is lost that would be
there with a right one."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

from memservice.domain.records import IMMEDIATELY
from memservice.operations import doctor
from memservice.pipeline.indexing import reconcile
from memservice.services import messages
from memservice.services.messages import Draft
from memservice.services.tasks import outbox
from memservice.services.tasks.kinds import DREAM_TIMER
from memservice.spi.capabilities import Capability
from memservice.worker import heartbeats, retention
from memservice.worker.runner import run
from services.pipeline.conftest import Start
from support.pipeline.fakes import Scripted
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place

HOURS = 5


def test_work_stored_while_the_clock_was_ahead_is_done_at_once(place: Place) -> None:
    place.clock.advance(hours=HOURS)
    place.say("s", *[("alice", f"Fact {n}.") for n in range(20)])  # and a summary
    place.clock.advance(hours=-HOURS)
    place.say("s", ("alice", "I sing."))
    assert place.ready() != []
    place.work()
    assert len(place.texts("alice")) == 21
    assert place.counts()[3] == 0
    tasks = [task for task in place.tasks(None) if task.kind != DREAM_TIMER]
    assert {task.not_before for task in tasks} == {IMMEDIATELY}


def test_a_server_that_is_ahead_of_the_worker_delays_nothing(place: Place) -> None:
    place.clock.advance(seconds=40)
    place.say("s", ("alice", "I like tea."))
    place.clock.advance(seconds=-40)
    place.work()
    assert place.texts("alice") == ["I like tea."]


def test_a_pause_set_by_a_wrong_clock_is_ignored(place: Place) -> None:
    """A task that was put off while the clock was ahead by more than the longest pause; a shorter
    pause is kept."""
    place.say("s", ("alice", "I like tea."))
    (task,) = place.tasks()

    def wait(by: timedelta) -> None:
        place.rt.storage.write(
            lambda tx: tx.tasks.save(dataclasses.replace(task, not_before=place.clock() + by))
        )

    wait(outbox.latest(place.rt) - place.clock())
    assert place.ready() == []
    assert run(place.rt, task.unit).done == 0
    wait(outbox.latest(place.rt) - place.clock() + timedelta(minutes=1))
    assert place.ready() == [task.unit]
    assert run(place.rt, task.unit).done == 1


def test_the_longest_pause_is_that_of_the_settings(start: Start) -> None:
    place = start(DREAM_MIN_HOURS_BETWEEN_DREAMS="720")
    assert outbox.latest(place.rt) - place.clock() == timedelta(hours=720, minutes=1)


def test_batched_messages_without_a_maximum_age_never_become_due_by_the_clock(
    start: Start,
) -> None:
    place = start(
        reasoner=Scripted(Capability.COSTLY),
        DERIVER_REPRESENTATION_BATCH_MAX_AGE_SECONDS="0",
        DERIVER_REPRESENTATION_BATCH_QUIET_SECONDS="0",
    )
    place.say("s", ("alice", "I like tea."))
    place.clock.advance(days=3_000)
    assert place.ready() == []


def test_retried_work_is_due_by_every_clock(start: Start) -> None:
    place = start(WORKER_MAX_ATTEMPTS="1")

    def fail(request: object) -> None:
        raise RuntimeError("no")

    place.reasoner.act = fail
    place.say("s", ("alice", "I like tea."))
    place.work()
    place.reasoner.act = None
    place.clock.advance(hours=HOURS)
    (task,) = place.tasks(state="failed")
    assert place.rt.storage.write(lambda tx: tx.tasks.retry([task.key])) == 1
    place.clock.advance(hours=-HOURS)
    place.work()
    assert place.texts("alice") == ["I like tea."]


def test_a_round_of_reconciliation_that_ended_in_the_future_is_ignored(place: Place) -> None:
    place.clock.advance(hours=HOURS)
    interval = reconcile.run(place.rt)
    place.clock.advance(hours=-HOURS)
    assert reconcile.run(place.rt) == interval
    place.clock.advance(seconds=100)
    assert reconcile.run(place.rt) == interval - 100


def test_a_worker_with_a_heartbeat_in_the_future_counts_as_ended(place: Place) -> None:
    place.clock.advance(hours=HOURS)
    heartbeats.register(place.rt, "ahead")
    place.clock.advance(hours=-HOURS)
    heartbeats.register(place.rt, "here")
    with place.rt.storage.read() as tx:
        assert [worker.name for worker in heartbeats.workers(tx, place.clock())] == ["here"]
    place.clock.advance(hours=HOURS)
    with place.rt.storage.read() as tx:
        assert heartbeats.workers(tx, place.clock()) == [], "and it was forgotten"


def test_a_clock_that_is_ahead_for_a_minute_erases_no_idempotency_key(place: Place) -> None:
    def say() -> str:
        drafts = [Draft("I like tea.", "alice")]
        return messages.create(place.rt, PRINCIPAL, WORKSPACE, "s", drafts, idempotency_key="once")[
            0
        ].uid

    retention.sweep(place.rt)
    began = place.clock()
    first = say()
    place.clock.advance(hours=30)
    for _ in range(5):  # whatever many processes sweep in that minute
        retention.sweep(place.rt)
    place.clock.advance(hours=-30, minutes=1)
    retention.sweep(place.rt)
    assert say() == first
    for _ in range(25 * 60):
        place.clock.advance(minutes=1)
        if retention.sweep(place.rt)["idempotency keys"]:
            break
    assert timedelta(hours=23.9) < place.clock() - began < timedelta(hours=24.1)
    assert say() != first


def test_doctor_reports_work_from_the_future(place: Place) -> None:
    def clock() -> list[doctor.Check]:
        return [check for check in doctor.look(place.rt) if check.name == "clock"]

    place.say("s", ("alice", "I like tea."))
    assert clock() == []
    place.clock.advance(hours=HOURS)
    place.say("s", ("alice", "I sing."))
    place.clock.advance(hours=-HOURS)
    (check,) = clock()
    assert check.state == doctor.DEGRADED
    assert "18000 s in the future" in check.found
