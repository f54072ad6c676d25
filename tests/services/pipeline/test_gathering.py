"""Messages wait for company before a costly reasoner is asked about them: until enough are there,
or the first is old enough."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from datetime import timedelta

import pytest
from msgspec.structs import replace

from memservice.services.tasks import batching, kinds
from memservice.spi.capabilities import Capability
from memservice.worker import retention
from services.pipeline.conftest import OpenPipeline
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import Pipeline

LONG = (
    "The lighthouse in the north was painted again, in red and white, by the people of the "
    "village. "
) * 6
"""More than a hundred tokens."""


def costly(open_pipeline: OpenPipeline, quiet: str = "0", **settings: str) -> Pipeline:
    """Messages wait however quiet the peer is, unless a test says otherwise."""
    settings = {"DERIVER_REPRESENTATION_BATCH_QUIET_SECONDS": quiet, **settings}
    return open_pipeline(reasoner=ScriptedReasoner(Capability.COSTLY), **settings)


def waits(pipeline: Pipeline) -> bool:
    with pipeline.rt.storage.read() as tx:
        pending = [
            task for task in tx.tasks.pending(pipeline.tasks()[0].unit) if task.state == "pending"
        ]
    return bool(pending) and not pipeline.ready()


def test_few_tokens_wait_until_the_maximum_age(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline)
    pipeline.say("s", ("alice", "I live in Oslo."), ("alice", "I keep bees."))
    assert waits(pipeline)
    pipeline.clock.advance(seconds=1799)
    assert waits(pipeline)
    pipeline.clock.advance(seconds=1)
    pipeline.work()
    assert pipeline.reasoner.new_messages() == [["I live in Oslo.", "I keep bees."]]


def test_the_age_is_that_of_the_oldest_message(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline)
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.clock.advance(seconds=1790)
    pipeline.say("s", ("alice", "I keep bees."))
    pipeline.clock.advance(seconds=10)
    pipeline.work()
    assert pipeline.reasoner.new_messages() == [["I live in Oslo.", "I keep bees."]], (
        "whatever is pending is done along"
    )


def test_enough_tokens_are_processed_at_once(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline)
    (first,) = pipeline.say("s", ("alice", LONG))
    assert 100 < first.tokens < 256
    assert waits(pipeline)
    while not pipeline.ready():
        assert sum(task.state == "pending" for task in pipeline.tasks()) < 5
        pipeline.say("s", ("alice", LONG))
    task_count = len(pipeline.tasks())
    assert task_count * first.tokens >= 512 > (task_count - 1) * first.tokens
    pipeline.work()
    assert sum(len(batch) for batch in pipeline.reasoner.new_messages()) == task_count


def test_exactly_the_configured_number_of_tokens_is_enough(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline)
    (first,) = pipeline.say("s", ("alice", LONG))
    settings = pipeline.rt.settings
    deriver = dataclasses.replace(
        settings.deriver, representation_batch_work_unit_target_tokens=2 * first.tokens
    )
    pipeline.rt.settings = dataclasses.replace(settings, deriver=deriver)
    assert waits(pipeline)
    pipeline.say("s", ("alice", LONG))
    assert pipeline.ready()


def test_one_request_with_enough_tokens_is_processed_at_once(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline)
    pipeline.say("s", *[("alice", LONG)] * 5)
    assert pipeline.ready()


def test_tokens_are_counted_per_unit(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline)
    pipeline.say("s", ("alice", "I live in Oslo."), *[("bob", LONG)] * 5)
    pipeline.say("t", *[("alice", LONG)] * 2)
    (unit,) = pipeline.ready()
    assert unit == pipeline.tasks(observed_key=pipeline.tasks()[1].observed_key)[0].unit
    pipeline.work()
    assert {request.observed for request in pipeline.reasoner.requests} == {"bob"}


def test_many_short_messages_are_enough(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "ENOUGH_MESSAGES", 5)
    pipeline = costly(open_pipeline)
    pipeline.say("s", *[("alice", "Oslo.")] * 4)
    assert waits(pipeline)
    pipeline.say("s", ("alice", "Oslo."))
    assert pipeline.ready()


def test_messages_that_arrive_during_a_run_are_included(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline)
    late = ["I keep bees.", "I own a boat."]

    def interrupt(request: object) -> None:
        if late:
            pipeline.say("s", ("alice", late.pop(0)))

    pipeline.reasoner.act = interrupt
    pipeline.say("s", *[("alice", LONG)] * 5)
    pipeline.run(pipeline.unit())
    assert pipeline.tasks(state="pending") == []
    assert pipeline.reasoner.new_messages()[-2:] == [["I keep bees."], ["I own a boat."]]


def test_a_run_leaves_messages_that_wait_for_a_batch(open_pipeline: OpenPipeline) -> None:
    """A worker that is woken too early does nothing."""
    pipeline = costly(open_pipeline)
    pipeline.say("s", ("alice", "I live in Oslo."))
    report = pipeline.run(pipeline.tasks()[0].unit)
    assert (report.claimed, report.done) == (True, 0)
    assert waits(pipeline)


@pytest.mark.slow
def test_a_failing_message_blocks_later_messages_of_its_unit(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline)

    def fail(request: object) -> None:
        raise ConnectionError("away")

    pipeline.reasoner.act = fail
    pipeline.say("s", *[("alice", LONG)] * 5)
    pipeline.work()
    pipeline.say("s", ("alice", "I keep bees."))
    pipeline.reasoner.act = None
    assert pipeline.ready() == []
    pipeline.clock.advance(seconds=60)
    pipeline.work()
    assert pipeline.tasks(state="pending") == []


@pytest.mark.parametrize(
    "settings",
    [
        {"DERIVER_FLUSH_ENABLED": "true"},
        {"DERIVER_REPRESENTATION_BATCH_WORK_UNIT_TARGET_TOKENS": "0"},
    ],
)
def test_settings_can_disable_batching(
    open_pipeline: OpenPipeline, settings: dict[str, str]
) -> None:
    pipeline = costly(open_pipeline, **settings)
    pipeline.say("s", ("alice", "I live in Oslo."))
    assert pipeline.ready()


def test_a_summary_waits_for_further_messages(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline)
    for part in range(3):
        pipeline.say("s", *[("alice", f"m{part * 20 + number}") for number in range(1, 21)])
        pipeline.work()
    assert pipeline.reasoner.summaries == []
    pipeline.clock.advance(seconds=batching.SUMMARY_SECONDS)
    pipeline.work()
    written = [(each.kind, each.messages[-1].content) for each in pipeline.reasoner.summaries]
    assert sorted(written) == [("long", "m60"), ("short", "m60")]


def test_a_summary_is_written_at_once_if_settings_disable_waiting(
    open_pipeline: OpenPipeline,
) -> None:
    pipeline = costly(open_pipeline, DERIVER_FLUSH_ENABLED="true")
    pipeline.say("s", *[("alice", f"m{number}") for number in range(1, 21)])
    pipeline.work()
    assert [each.kind for each in pipeline.reasoner.summaries] == ["short"]


def test_nothing_waits_for_a_reasoner_that_costs_nothing(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I live in Oslo."))
    assert pipeline.ready()


def test_without_a_maximum_age_only_tokens_count(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline, DERIVER_REPRESENTATION_BATCH_MAX_AGE_SECONDS="0")
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.clock.advance(days=4000)
    assert waits(pipeline)
    pipeline.say("s", *[("alice", LONG)] * 5)
    pipeline.work()
    assert pipeline.reasoner.new_messages()[0][0] == "I live in Oslo."


def test_waiting_messages_are_released_when_settings_change(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline, DERIVER_REPRESENTATION_BATCH_MAX_AGE_SECONDS="0")
    pipeline.say("s", ("alice", "I live in Oslo."))
    retention.sweep(pipeline.rt)
    assert waits(pipeline)
    settings = pipeline.rt.settings
    pipeline.rt.settings = dataclasses.replace(
        settings, deriver=dataclasses.replace(settings.deriver, flush_enabled=True)
    )
    retention.sweep(pipeline.rt)
    pipeline.work()
    assert pipeline.reasoner.new_messages() == [["I live in Oslo."]]


def test_workers_are_woken_by_a_full_batch(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline)
    woken: list[str] = []

    def wake(units: Collection[str]) -> None:
        woken.extend(unit for unit in units if unit.startswith(kinds.REPRESENTATION))

    pipeline.rt.storage.on_commit(wake)
    pipeline.say("s", ("alice", "I live in Oslo."))
    assert woken == []
    pipeline.say("s", *[("alice", LONG)] * 5)
    assert woken == [pipeline.tasks()[0].unit]


@pytest.mark.slow
def test_batches_are_bounded_by_the_tokens_of_all_authors(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline, DERIVER_REPRESENTATION_BATCH_TARGET_INPUT_TOKENS="400")
    pipeline.say(
        "s",
        ("alice", "I live in Oslo."),
        ("bob", LONG),
        ("bob", LONG),
        ("bob", LONG),
        ("bob", LONG),
        ("alice", "I keep bees."),
    )
    pipeline.clock.advance(hours=1)
    pipeline.work()
    batches = [
        [m.content for m in r.messages if m.new]
        for r in pipeline.reasoner.requests
        if r.observed == "alice"
    ]
    assert batches == [["I live in Oslo."], ["I keep bees."]]


def test_the_previous_message_is_context_only_if_of_another_author(
    open_pipeline: OpenPipeline,
) -> None:
    pipeline = open_pipeline()
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.work()
    pipeline.say("s", ("alice", "I keep bees."))
    pipeline.work()
    pipeline.say("s", ("bob", "Many?"))
    pipeline.say("s", ("alice", "Two hives."))
    pipeline.work()
    shown = [
        [m.content for m in request.messages]
        for request in pipeline.reasoner.requests
        if request.observed == "alice"
    ]
    assert shown == [["I live in Oslo."], ["I keep bees."], ["Many?", "Two hives."]]


def test_a_quiet_peer_is_not_waited_for(open_pipeline: OpenPipeline) -> None:
    """By default after two minutes, not only when the first message is half an hour old."""
    pipeline = costly(open_pipeline, quiet="120")
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.clock.advance(seconds=119)
    assert waits(pipeline)
    pipeline.clock.advance(seconds=1)
    pipeline.work()
    assert pipeline.reasoner.new_messages() == [["I live in Oslo."]]


def test_each_message_begins_the_quiet_time_anew(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline, quiet="120")
    for number in range(5):
        pipeline.say("s", ("alice", f"I was in town number {number}."), ("bob", "Go on."))
        pipeline.clock.advance(seconds=100)
        assert waits(pipeline)
    pipeline.clock.advance(seconds=20)
    pipeline.work()
    assert [len(batch) for batch in pipeline.reasoner.new_messages()] == [5, 5], (
        "one batch of each peer"
    )


@pytest.mark.slow
def test_a_peer_that_is_never_quiet_is_derived_at_the_greatest_age(
    open_pipeline: OpenPipeline,
) -> None:
    pipeline = costly(open_pipeline, quiet="120")
    for _ in range(17):
        pipeline.say("s", ("alice", "Yes."))
        pipeline.clock.advance(seconds=110)
    assert not waits(pipeline), "1,870 seconds after the first message"
    pipeline.work()
    assert [len(batch) for batch in pipeline.reasoner.new_messages()] == [17]


def test_quiet_counts_without_a_greatest_age(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(open_pipeline, quiet="60", DERIVER_REPRESENTATION_BATCH_MAX_AGE_SECONDS="0")
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.clock.advance(seconds=50)
    pipeline.say("s", ("alice", "I keep bees."))
    pipeline.clock.advance(seconds=59)
    assert waits(pipeline)
    pipeline.clock.advance(seconds=1)
    pipeline.work()
    assert pipeline.reasoner.new_messages() == [["I live in Oslo.", "I keep bees."]]


@pytest.mark.parametrize("text", ["Hm.", LONG * 6])
def test_work_that_is_paused_stays_paused(open_pipeline: OpenPipeline, text: str) -> None:
    """Neither a short message nor one that fills the batch changes when a paused task runs."""
    pipeline = costly(open_pipeline, quiet="120")
    pipeline.say("s", ("alice", "I live in Oslo."))
    (task,) = pipeline.tasks()
    until = pipeline.clock() + timedelta(hours=2)
    paused = replace(task, not_before=until, outcome={"paused": "a model is unavailable"})
    pipeline.rt.storage.write(lambda tx: tx.tasks.save(paused))
    pipeline.say("s", ("alice", text))
    assert pipeline.tasks()[0].not_before == until
    assert waits(pipeline)


def test_longer_pauses_are_no_error_of_a_clock(open_pipeline: OpenPipeline) -> None:
    pipeline = costly(
        open_pipeline, quiet="90000", DERIVER_REPRESENTATION_BATCH_MAX_AGE_SECONDS="0"
    )
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.clock.advance(seconds=1)
    assert waits(pipeline)
