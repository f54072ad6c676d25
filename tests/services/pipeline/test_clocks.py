"""Clocks that are wrong for a while: work is done by every clock, and nothing is lost that would be
there with a right one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

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
from services.pipeline.conftest import OpenPipeline
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

HOURS = 5


@pytest.mark.slow
def test_work_stored_while_the_clock_was_ahead_is_done_at_once(pipeline: Pipeline) -> None:
    pipeline.clock.advance(hours=HOURS)
    pipeline.say("s", *[("alice", f"Fact {n}.") for n in range(20)])  # and a summary
    pipeline.clock.advance(hours=-HOURS)
    pipeline.say("s", ("alice", "I sing."))
    assert pipeline.ready() != []
    pipeline.work()
    assert len(pipeline.texts("alice")) == 21
    assert pipeline.counts()[3] == 0
    tasks = [task for task in pipeline.tasks(None) if task.kind != DREAM_TIMER]
    assert {task.not_before for task in tasks} == {IMMEDIATELY}


def test_a_server_that_is_ahead_of_the_worker_delays_nothing(pipeline: Pipeline) -> None:
    pipeline.clock.advance(seconds=40)
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.clock.advance(seconds=-40)
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]


def test_a_pause_set_by_a_wrong_clock_is_ignored(pipeline: Pipeline) -> None:
    """A task that was put off while the clock was ahead by more than the longest pause; a shorter
    pause is kept."""
    pipeline.say("s", ("alice", "I like tea."))
    (task,) = pipeline.tasks()

    def wait(by: timedelta) -> None:
        pipeline.rt.storage.write(
            lambda tx: tx.tasks.save(replace(task, not_before=pipeline.clock() + by))
        )

    wait(outbox.latest(pipeline.rt) - pipeline.clock())
    assert pipeline.ready() == []
    assert run(pipeline.rt, task.unit).done == 0
    wait(outbox.latest(pipeline.rt) - pipeline.clock() + timedelta(minutes=1))
    assert pipeline.ready() == [task.unit]
    assert run(pipeline.rt, task.unit).done == 1


def test_the_longest_pause_is_that_of_the_settings(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(DREAM_MIN_HOURS_BETWEEN_DREAMS="720")
    assert outbox.latest(pipeline.rt) - pipeline.clock() == timedelta(hours=720, minutes=1)


def test_batched_messages_without_a_maximum_age_never_become_due_by_the_clock(
    open_pipeline: OpenPipeline,
) -> None:
    pipeline = open_pipeline(
        reasoner=ScriptedReasoner(Capability.COSTLY),
        DERIVER_REPRESENTATION_BATCH_MAX_AGE_SECONDS="0",
        DERIVER_REPRESENTATION_BATCH_QUIET_SECONDS="0",
    )
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.clock.advance(days=3_000)
    assert pipeline.ready() == []


def test_retried_work_is_due_by_every_clock(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(WORKER_MAX_ATTEMPTS="1")

    def fail(request: object) -> None:
        raise RuntimeError("no")

    pipeline.reasoner.act = fail
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    pipeline.reasoner.act = None
    pipeline.clock.advance(hours=HOURS)
    (task,) = pipeline.tasks(state="failed")
    assert pipeline.rt.storage.write(lambda tx: tx.tasks.retry([task.key])) == 1
    pipeline.clock.advance(hours=-HOURS)
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]


def test_a_round_of_reconciliation_that_ended_in_the_future_is_ignored(pipeline: Pipeline) -> None:
    pipeline.clock.advance(hours=HOURS)
    interval = reconcile.run(pipeline.rt)
    pipeline.clock.advance(hours=-HOURS)
    assert reconcile.run(pipeline.rt) == interval
    pipeline.clock.advance(seconds=100)
    assert reconcile.run(pipeline.rt) == interval - 100


def test_a_worker_with_a_heartbeat_in_the_future_counts_as_ended(pipeline: Pipeline) -> None:
    pipeline.clock.advance(hours=HOURS)
    heartbeats.register(pipeline.rt, "ahead")
    pipeline.clock.advance(hours=-HOURS)
    heartbeats.register(pipeline.rt, "here")
    with pipeline.rt.storage.read() as tx:
        assert [worker.name for worker in heartbeats.workers(tx, pipeline.clock())] == ["here"]
    pipeline.clock.advance(hours=HOURS)
    with pipeline.rt.storage.read() as tx:
        assert heartbeats.workers(tx, pipeline.clock()) == [], "and it was forgotten"


@pytest.mark.slow
def test_a_clock_that_is_ahead_for_a_minute_erases_no_idempotency_key(pipeline: Pipeline) -> None:
    def say() -> str:
        drafts = [Draft("I like tea.", "alice")]
        return messages.create(
            pipeline.rt, PRINCIPAL, WORKSPACE, "s", drafts, idempotency_key="once"
        )[0].uid

    retention.sweep(pipeline.rt)
    began = pipeline.clock()
    first = say()
    pipeline.clock.advance(hours=30)
    for _ in range(5):  # whatever many processes sweep in that minute
        retention.sweep(pipeline.rt)
    pipeline.clock.advance(hours=-30, minutes=1)
    retention.sweep(pipeline.rt)
    assert say() == first
    for _ in range(25 * 12):
        pipeline.clock.advance(minutes=5)
        if retention.sweep(pipeline.rt)["idempotency keys"]:
            break
    assert timedelta(hours=23.9) < pipeline.clock() - began < timedelta(hours=24.1)
    assert say() != first


def test_doctor_reports_work_from_the_future(pipeline: Pipeline) -> None:
    def clock() -> list[doctor.Check]:
        return [check for check in doctor.look(pipeline.rt) if check.name == "clock"]

    pipeline.say("s", ("alice", "I like tea."))
    assert clock() == []
    pipeline.clock.advance(hours=HOURS)
    pipeline.say("s", ("alice", "I sing."))
    pipeline.clock.advance(hours=-HOURS)
    (check,) = clock()
    assert check.state == doctor.DEGRADED
    assert "18000 s in the future" in check.found
