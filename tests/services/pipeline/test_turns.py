"""Workspaces take turns: however much waits in one of them, or however long something takes there,
the others have theirs."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from memservice.pipeline.derive import handler as derive
from memservice.services import messages
from memservice.services.messages import Draft
from memservice.services.tasks.kinds import workspace_of
from memservice.spi.capabilities import Capability
from memservice.spi.reasoner import DeriveRequest
from memservice.worker import polling, time_slice
from memservice.worker.polling import Worker
from services.pipeline.conftest import Start
from support.pipeline.fakes import Scripted
from support.pipeline.place import PRINCIPAL, Place

PATIENCE = 60.0
MANY = 100


def say(place: Place, workspace: str, session: str, *said: str) -> None:
    messages.create(
        place.rt, PRINCIPAL, workspace, session, [Draft(content, "alice") for content in said]
    )


def order(place: Place) -> list[str | None]:
    """The workspaces that the reasoner was asked for."""
    return [request.origin.workspace for request in place.reasoner.requests]


def test_a_message_does_not_wait_for_another_workspaces_backlog(place: Place) -> None:
    for number in range(MANY):
        say(place, "big", f"s{number}", "I like tea.")
    say(place, "small", "s", "I sing.")
    place.work()
    assert len(order(place)) == MANY + 1
    assert order(place).index("small") <= 2


def test_a_message_that_arrives_later_does_not_wait_for_a_backlog(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "ROUND_SECONDS", 0.0)
    for number in range(MANY):
        say(place, "big", f"s{number}", "I like tea.")

    def come(request: DeriveRequest) -> None:
        if len(place.reasoner.requests) == 5:
            say(place, "small", "s", "I sing.")

    place.reasoner.act = come
    place.work()
    assert order(place).index("small") <= 5 + 3


def test_a_message_does_not_wait_for_one_long_session(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit gives way when its turn is over."""
    monkeypatch.setattr(derive, "MAX_BATCH", 1)
    monkeypatch.setattr(time_slice, "TIME_SLICE_SECONDS", 0.0)
    say(place, "big", "s", *["I like tea."] * MANY)
    place.reasoner.act = lambda request: (
        say(place, "small", "s", "I sing.") if len(place.reasoner.requests) == 5 else None
    )
    place.work()
    assert Counter(order(place)) == {"big": MANY, "small": 1}
    assert order(place).index("small") <= 5 + 3


def test_all_workspaces_get_a_turn_if_a_round_is_too_short(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "ROUND_SECONDS", 0.0)
    names = [f"w{number}" for number in range(5)]
    for name in names:
        for number in range(4):
            say(place, name, f"s{number}", "I like tea.")
    place.work()
    # Two at a time, so neighbours may change places.
    assert all(
        set(names) - {name} <= set(order(place)[at : at + 7]) | {name}
        for at, name in enumerate(order(place)[:7])
    )


def test_endless_work_delays_only_its_own_workspace(place: Place) -> None:
    go_on = threading.Event()

    def act(request: DeriveRequest) -> None:
        if request.origin.workspace == "stuck":
            assert go_on.wait(PATIENCE)
        elif len(place.reasoner.requests) > MANY:
            go_on.set()

    place.reasoner.act = act
    for number in range(3):
        say(place, "stuck", f"s{number}", "I like tea.")
    for number in range(MANY):
        say(place, "other", f"s{number}", "I sing.")
    place.work()
    assert go_on.is_set(), "all of the other workspace was done meanwhile"


def test_a_workspace_has_no_more_threads_than_its_limit(start: Start) -> None:
    place = start(reasoner=Scripted(Capability.REMOTE), WORKER_REMOTE_UNITS="2")
    inside: Counter[str] = Counter()
    most: Counter[str] = Counter()
    lock = threading.Lock()
    together = threading.Barrier(2)

    def act(request: DeriveRequest) -> None:
        with lock:
            inside["w"] += 1
            most["w"] = max(most["w"], inside["w"])
        together.wait(PATIENCE)
        with lock:
            inside["w"] -= 1

    place.reasoner.act = act
    for number in range(6):
        say(place, "w", f"s{number}", "I like tea.")
    Worker(place.rt).run_until_idle(PATIENCE)
    assert most == {"w": 2}


def test_batched_tasks_do_not_wait_again_after_a_time_slice(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derive, "MAX_BATCH", 2)
    monkeypatch.setattr(time_slice, "TIME_SLICE_SECONDS", 0.0)
    place = start(reasoner=Scripted(Capability.COSTLY))
    say(place, "w", "s", *[f"Fact {number}." for number in range(6)])
    assert place.ready() == []
    place.clock.advance(seconds=1_800)
    say(place, "w", "s", *[f"Fact {number}." for number in range(6, 10)])
    place.work()
    assert [len(said) for said in place.reasoner.said()] == [2] * 5


def test_the_name_of_a_unit_contains_its_workspace() -> None:
    assert workspace_of("representation:7:8:9") == "7"
    assert workspace_of("webhook:7:1") == "7"
    assert workspace_of("erase:workspace:7") == ""
