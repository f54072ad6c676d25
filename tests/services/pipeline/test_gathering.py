"""Messages wait for company before a costly reasoner is asked about them: until enough are there,
or the first is old enough."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

import pytest

from memservice.services.tasks import batching, kinds
from memservice.spi.capabilities import Capability
from memservice.worker import retention
from services.pipeline.conftest import Start
from support.pipeline.fakes import Scripted
from support.pipeline.place import Place

LONG = (
    "The lighthouse in the north was painted again, in red and white, by the people of the "
    "village. "
) * 6
"""More than a hundred tokens."""


def costly(start: Start, quiet: str = "0", **settings: str) -> Place:
    """Messages wait however quiet the peer is, unless a test says otherwise."""
    settings = {"DERIVER_REPRESENTATION_BATCH_QUIET_SECONDS": quiet, **settings}
    return start(reasoner=Scripted(Capability.COSTLY), **settings)


def waits(place: Place) -> bool:
    with place.rt.storage.read() as tx:
        pending = [
            task for task in tx.tasks.pending(place.tasks()[0].unit) if task.state == "pending"
        ]
    return bool(pending) and not place.ready()


def test_few_tokens_wait_until_the_maximum_age(start: Start) -> None:
    place = costly(start)
    place.say("s", ("alice", "I live in Oslo."), ("alice", "I keep bees."))
    assert waits(place)
    place.clock.advance(seconds=1799)
    assert waits(place)
    place.clock.advance(seconds=1)
    place.work()
    assert place.reasoner.said() == [["I live in Oslo.", "I keep bees."]]


def test_the_age_is_that_of_the_oldest_message(start: Start) -> None:
    place = costly(start)
    place.say("s", ("alice", "I live in Oslo."))
    place.clock.advance(seconds=1790)
    place.say("s", ("alice", "I keep bees."))
    place.clock.advance(seconds=10)
    place.work()
    assert place.reasoner.said() == [["I live in Oslo.", "I keep bees."]], (
        "whatever is pending is done along"
    )


def test_enough_tokens_are_processed_at_once(start: Start) -> None:
    place = costly(start)
    (first,) = place.say("s", ("alice", LONG))
    assert 100 < first.tokens < 256
    assert waits(place)
    while not place.ready():
        assert sum(task.state == "pending" for task in place.tasks()) < 5
        place.say("s", ("alice", LONG))
    said = len(place.tasks())
    assert said * first.tokens >= 512 > (said - 1) * first.tokens
    place.work()
    assert sum(len(batch) for batch in place.reasoner.said()) == said


def test_exactly_the_configured_number_of_tokens_is_enough(start: Start) -> None:
    place = costly(start)
    (first,) = place.say("s", ("alice", LONG))
    settings = place.rt.settings
    deriver = replace(
        settings.deriver, representation_batch_work_unit_target_tokens=2 * first.tokens
    )
    place.rt.settings = replace(settings, deriver=deriver)
    assert waits(place)
    place.say("s", ("alice", LONG))
    assert place.ready()


def test_one_request_with_enough_tokens_is_processed_at_once(start: Start) -> None:
    place = costly(start)
    place.say("s", *[("alice", LONG)] * 5)
    assert place.ready()


def test_tokens_are_counted_per_unit(start: Start) -> None:
    place = costly(start)
    place.say("s", ("alice", "I live in Oslo."), *[("bob", LONG)] * 5)
    place.say("t", *[("alice", LONG)] * 2)
    (unit,) = place.ready()
    assert unit == place.tasks(observed_key=place.tasks()[1].observed_key)[0].unit
    place.work()
    assert {request.observed for request in place.reasoner.requests} == {"bob"}


def test_many_short_messages_are_enough(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "ENOUGH_MESSAGES", 5)
    place = costly(start)
    place.say("s", *[("alice", "Oslo.")] * 4)
    assert waits(place)
    place.say("s", ("alice", "Oslo."))
    assert place.ready()


def test_messages_that_arrive_during_a_run_are_included(start: Start) -> None:
    place = costly(start)
    late = ["I keep bees.", "I own a boat."]

    def interrupt(request: object) -> None:
        if late:
            place.say("s", ("alice", late.pop(0)))

    place.reasoner.act = interrupt
    place.say("s", *[("alice", LONG)] * 5)
    place.run(place.unit())
    assert place.tasks(state="pending") == []
    assert place.reasoner.said()[-2:] == [["I keep bees."], ["I own a boat."]]


def test_a_run_leaves_messages_that_wait_for_a_batch(start: Start) -> None:
    """A worker that is woken too early does nothing."""
    place = costly(start)
    place.say("s", ("alice", "I live in Oslo."))
    report = place.run(place.tasks()[0].unit)
    assert (report.claimed, report.done) == (True, 0)
    assert waits(place)


def test_a_failing_message_blocks_later_messages_of_its_unit(start: Start) -> None:
    place = costly(start)

    def fail(request: object) -> None:
        raise ConnectionError("away")

    place.reasoner.act = fail
    place.say("s", *[("alice", LONG)] * 5)
    place.work()
    place.say("s", ("alice", "I keep bees."))
    place.reasoner.act = None
    assert place.ready() == []
    place.clock.advance(seconds=60)
    place.work()
    assert place.tasks(state="pending") == []


@pytest.mark.parametrize(
    "settings",
    [
        {"DERIVER_FLUSH_ENABLED": "true"},
        {"DERIVER_REPRESENTATION_BATCH_WORK_UNIT_TARGET_TOKENS": "0"},
    ],
)
def test_settings_can_disable_batching(start: Start, settings: dict[str, str]) -> None:
    place = costly(start, **settings)
    place.say("s", ("alice", "I live in Oslo."))
    assert place.ready()


def test_nothing_waits_for_a_reasoner_that_costs_nothing(place: Place) -> None:
    place.say("s", ("alice", "I live in Oslo."))
    assert place.ready()


def test_without_a_maximum_age_only_tokens_count(start: Start) -> None:
    place = costly(start, DERIVER_REPRESENTATION_BATCH_MAX_AGE_SECONDS="0")
    place.say("s", ("alice", "I live in Oslo."))
    place.clock.advance(days=4000)
    assert waits(place)
    place.say("s", *[("alice", LONG)] * 5)
    place.work()
    assert place.reasoner.said()[0][0] == "I live in Oslo."


def test_waiting_messages_are_released_when_settings_change(start: Start) -> None:
    place = costly(start, DERIVER_REPRESENTATION_BATCH_MAX_AGE_SECONDS="0")
    place.say("s", ("alice", "I live in Oslo."))
    retention.sweep(place.rt)
    assert waits(place)
    settings = place.rt.settings
    place.rt.settings = replace(settings, deriver=replace(settings.deriver, flush_enabled=True))
    retention.sweep(place.rt)
    place.work()
    assert place.reasoner.said() == [["I live in Oslo."]]


def test_workers_are_woken_by_a_full_batch(start: Start) -> None:
    place = costly(start)
    woken: list[str] = []

    def wake(units: Collection[str]) -> None:
        woken.extend(unit for unit in units if unit.startswith(kinds.REPRESENTATION))

    place.rt.storage.on_commit(wake)
    place.say("s", ("alice", "I live in Oslo."))
    assert woken == []
    place.say("s", *[("alice", LONG)] * 5)
    assert woken == [place.tasks()[0].unit]


def test_batches_are_bounded_by_the_tokens_of_all_authors(start: Start) -> None:
    place = costly(start, DERIVER_REPRESENTATION_BATCH_TARGET_INPUT_TOKENS="400")
    place.say(
        "s",
        ("alice", "I live in Oslo."),
        ("bob", LONG),
        ("bob", LONG),
        ("bob", LONG),
        ("bob", LONG),
        ("alice", "I keep bees."),
    )
    place.clock.advance(hours=1)
    place.work()
    batches = [
        [m.content for m in r.messages if m.new]
        for r in place.reasoner.requests
        if r.observed == "alice"
    ]
    assert batches == [["I live in Oslo."], ["I keep bees."]]


def test_the_previous_message_is_context_only_if_of_another_author(start: Start) -> None:
    place = start()
    place.say("s", ("alice", "I live in Oslo."))
    place.work()
    place.say("s", ("alice", "I keep bees."))
    place.work()
    place.say("s", ("bob", "Many?"))
    place.say("s", ("alice", "Two hives."))
    place.work()
    shown = [
        [m.content for m in request.messages]
        for request in place.reasoner.requests
        if request.observed == "alice"
    ]
    assert shown == [["I live in Oslo."], ["I keep bees."], ["Many?", "Two hives."]]


def test_a_quiet_peer_is_not_waited_for(start: Start) -> None:
    """By default after two minutes, not only when the first message is half an hour old."""
    place = costly(start, quiet="120")
    place.say("s", ("alice", "I live in Oslo."))
    place.clock.advance(seconds=119)
    assert waits(place)
    place.clock.advance(seconds=1)
    place.work()
    assert place.reasoner.said() == [["I live in Oslo."]]


def test_each_message_begins_the_quiet_time_anew(start: Start) -> None:
    place = costly(start, quiet="120")
    for number in range(5):
        place.say("s", ("alice", f"I was in town number {number}."), ("bob", "Go on."))
        place.clock.advance(seconds=100)
        assert waits(place)
    place.clock.advance(seconds=20)
    place.work()
    assert [len(said) for said in place.reasoner.said()] == [5, 5], "one batch of each peer"


def test_a_peer_that_is_never_quiet_is_derived_at_the_greatest_age(start: Start) -> None:
    place = costly(start, quiet="120")
    for _ in range(17):
        place.say("s", ("alice", "Yes."))
        place.clock.advance(seconds=110)
    assert not waits(place), "1,870 seconds after the first message"
    place.work()
    assert [len(said) for said in place.reasoner.said()] == [17]


def test_quiet_counts_without_a_greatest_age(start: Start) -> None:
    place = costly(start, quiet="60", DERIVER_REPRESENTATION_BATCH_MAX_AGE_SECONDS="0")
    place.say("s", ("alice", "I live in Oslo."))
    place.clock.advance(seconds=50)
    place.say("s", ("alice", "I keep bees."))
    place.clock.advance(seconds=59)
    assert waits(place)
    place.clock.advance(seconds=1)
    place.work()
    assert place.reasoner.said() == [["I live in Oslo.", "I keep bees."]]


@pytest.mark.parametrize("text", ["Hm.", LONG * 6])
def test_work_that_is_paused_stays_paused(start: Start, text: str) -> None:
    """Neither a short message nor one that fills the batch changes when a paused task runs."""
    place = costly(start, quiet="120")
    place.say("s", ("alice", "I live in Oslo."))
    (task,) = place.tasks()
    until = place.clock() + timedelta(hours=2)
    paused = replace(task, not_before=until, outcome={"paused": "a model is unavailable"})
    place.rt.storage.write(lambda tx: tx.tasks.save(paused))
    place.say("s", ("alice", text))
    assert place.tasks()[0].not_before == until
    assert waits(place)


def test_longer_pauses_are_no_error_of_a_clock(start: Start) -> None:
    place = costly(start, quiet="90000", DERIVER_REPRESENTATION_BATCH_MAX_AGE_SECONDS="0")
    place.say("s", ("alice", "I live in Oslo."))
    place.clock.advance(seconds=1)
    assert waits(place)
