"""Workspaces take turns: however much waits in one of them, or however long something takes there,
the others have theirs."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest

from memservice.pipeline.derive import handler as derive
from memservice.services import messages
from memservice.services.messages import Draft
from memservice.services.tasks.kinds import KINDS, REPRESENTATION, kind_of, workspace_of
from memservice.spi.capabilities import Capability
from memservice.spi.reasoner import DeriveRequest
from memservice.worker import polling, time_slice
from memservice.worker.lanes import Lanes
from memservice.worker.polling import Worker
from memservice.worker.runner import RunReport
from services.pipeline.conftest import OpenPipeline
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import PRINCIPAL, Pipeline

PATIENCE = 60.0
MANY = 30


def say(pipeline: Pipeline, workspace: str, session: str, *text: str) -> None:
    messages.create(
        pipeline.rt, PRINCIPAL, workspace, session, [Draft(content, "alice") for content in text]
    )


def order(pipeline: Pipeline) -> list[str | None]:
    """The workspaces that the reasoner was asked for."""
    return [request.origin.workspace for request in pipeline.reasoner.requests]


@pytest.mark.slow
def test_a_message_does_not_wait_for_another_workspaces_backlog(pipeline: Pipeline) -> None:
    for number in range(MANY):
        say(pipeline, "big", f"s{number}", "I like tea.")
    say(pipeline, "small", "s", "I sing.")
    pipeline.work()
    assert len(order(pipeline)) == MANY + 1
    assert order(pipeline).index("small") <= 2


@pytest.mark.slow
def test_a_message_that_arrives_later_does_not_wait_for_a_backlog(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "ROUND_SECONDS", 0.0)
    for number in range(MANY):
        say(pipeline, "big", f"s{number}", "I like tea.")

    def come(request: DeriveRequest) -> None:
        if len(pipeline.reasoner.requests) == 5:
            say(pipeline, "small", "s", "I sing.")

    pipeline.reasoner.act = come
    pipeline.work()
    assert order(pipeline).index("small") <= 5 + 3


@pytest.mark.slow
def test_a_message_does_not_wait_for_one_long_session(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit gives way when its turn is over."""
    monkeypatch.setattr(derive, "MAX_BATCH", 1)
    monkeypatch.setattr(time_slice, "TIME_SLICE_SECONDS", 0.0)
    say(pipeline, "big", "s", *["I like tea."] * MANY)
    pipeline.reasoner.act = lambda request: (
        say(pipeline, "small", "s", "I sing.") if len(pipeline.reasoner.requests) == 5 else None
    )
    pipeline.work()
    assert Counter(order(pipeline)) == {"big": MANY, "small": 1}
    assert order(pipeline).index("small") <= 5 + 3


@pytest.mark.slow
def test_all_workspaces_get_a_turn_if_a_round_is_too_short(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "ROUND_SECONDS", 0.0)
    names = [f"w{number}" for number in range(5)]
    for name in names:
        for number in range(4):
            say(pipeline, name, f"s{number}", "I like tea.")
    started: list[str] = []
    start = Lanes.start

    def note_start(self: Lanes, unit: str, work: Callable[[], RunReport]) -> None:
        if kind_of(unit) is KINDS[REPRESENTATION]:
            started.append(workspace_of(unit))
        start(self, unit, work)

    # Of units that run at the same time, any may reach the reasoner first.
    monkeypatch.setattr(Lanes, "start", note_start)
    pipeline.work()
    rounds = [started[at : at + len(names)] for at in range(0, len(started), len(names))]
    assert [len(set(workspaces)) for workspaces in rounds] == [len(names)] * 4


@pytest.mark.slow
def test_endless_work_delays_only_its_own_workspace(pipeline: Pipeline) -> None:
    go_on = threading.Event()

    def act(request: DeriveRequest) -> None:
        if request.origin.workspace == "stuck":
            assert go_on.wait(PATIENCE)
        elif len(pipeline.reasoner.requests) > MANY:
            go_on.set()

    pipeline.reasoner.act = act
    for number in range(3):
        say(pipeline, "stuck", f"s{number}", "I like tea.")
    for number in range(MANY):
        say(pipeline, "other", f"s{number}", "I sing.")
    pipeline.work()
    assert go_on.is_set(), "all of the other workspace was done meanwhile"


@pytest.mark.slow
def test_a_workspace_has_no_more_threads_than_its_limit(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(reasoner=ScriptedReasoner(Capability.REMOTE), WORKER_REMOTE_UNITS="2")
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

    pipeline.reasoner.act = act
    for number in range(6):
        say(pipeline, "w", f"s{number}", "I like tea.")
    Worker(pipeline.rt).run_until_idle(PATIENCE)
    assert most == {"w": 2}


@pytest.mark.slow
def test_batched_tasks_do_not_wait_again_after_a_time_slice(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derive, "MAX_BATCH", 2)
    monkeypatch.setattr(time_slice, "TIME_SLICE_SECONDS", 0.0)
    pipeline = open_pipeline(reasoner=ScriptedReasoner(Capability.COSTLY))
    say(pipeline, "w", "s", *[f"Fact {number}." for number in range(6)])
    assert pipeline.ready() == []
    pipeline.clock.advance(seconds=1_800)
    say(pipeline, "w", "s", *[f"Fact {number}." for number in range(6, 10)])
    pipeline.work()
    assert [len(batch) for batch in pipeline.reasoner.new_messages()] == [2] * 5


def test_the_name_of_a_unit_contains_its_workspace() -> None:
    assert workspace_of("representation:7:8:9") == "7"
    assert workspace_of("webhook:7:1") == "7"
    assert workspace_of("erase:workspace:7") == ""
