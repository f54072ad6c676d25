"""The loop that finds work: soon, until it is stopped, and during outages of the store."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from memservice.domain.errors import ConfigurationError, Unavailable
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context
from memservice.spi.storage import Transaction
from memservice.worker import polling
from memservice.worker.housekeeping import Housekeeping
from memservice.worker.polling import Worker
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import Pipeline
from support.reasoning.model import ScriptedModel

OpenPipeline = Callable[..., Pipeline]
PATIENCE = 30.0


@contextmanager
def working(pipeline: Pipeline, *, jitter: bool = False) -> Iterator[threading.Thread]:
    stop = threading.Event()
    thread = threading.Thread(target=Worker(pipeline.rt, jitter=jitter).run, args=(stop,))
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def until(condition: Callable[[], bool]) -> float:
    """Seconds until it held."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.01)
    return time.monotonic() - began


@pytest.mark.slow
def test_messages_are_derived_within_two_seconds(pipeline: Pipeline) -> None:
    """In one of ten tries: on a busy machine another one may take longer."""
    with working(pipeline):
        for number in range(10):
            pipeline.say("s", ("alice", f"Fact {number}."))
            if until(lambda n=number: len(pipeline.texts("alice")) == n + 1) < 2.0:  # type: ignore[misc]
                return
            time.sleep(0.2)
    pytest.fail("each took longer")


@pytest.mark.slow
def test_an_idle_worker_stops_on_request(pipeline: Pipeline) -> None:
    with working(pipeline):
        time.sleep(0.3)
        began = time.monotonic()
    assert time.monotonic() - began < 10


def test_a_worker_that_has_not_started_yet_stops_on_request(pipeline: Pipeline) -> None:
    with working(pipeline, jitter=True):
        began = time.monotonic()
    assert time.monotonic() - began < 10


@pytest.mark.slow
def test_the_worker_waits_for_an_unreachable_store_and_logs_it_once(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(polling, "STORE_PAUSE_SECONDS", 0.05)
    read = pipeline.rt.storage.read
    away = 6

    def sometimes() -> AbstractContextManager[Transaction]:
        nonlocal away
        if away and threading.current_thread() is not threading.main_thread():
            away -= 1
            raise Unavailable("gone fishing")
        return read()

    monkeypatch.setattr(pipeline.rt.storage, "read", sometimes)
    pipeline.say("s", ("alice", "I like tea."))
    with caplog.at_level(logging.INFO, "memservice.worker"), working(pipeline):
        until(lambda: pipeline.texts("alice") == ["I like tea."])
    warnings = [record for record in caplog.records if "cannot be reached" in record.message]
    assert len(warnings) == 1
    assert away == 0


@pytest.mark.slow
def test_a_store_that_refuses_only_writes_is_logged_once(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its rounds of work read, and only housekeeping writes."""
    monkeypatch.setattr(polling, "STORE_PAUSE_SECONDS", 0.01)
    runs: list[int] = []

    def refuse(housekeeping: Housekeeping) -> None:
        runs.append(1)
        raise Unavailable("may not be written to")

    monkeypatch.setattr(Housekeeping, "run_due", refuse)
    with caplog.at_level(logging.INFO, "memservice.worker"), working(pipeline):
        until(lambda: len(runs) >= 5)
    assert caplog.text.count("may not be written to") == 1


def test_a_reasoner_that_waits_on_a_network_works_on_several_units(
    open_pipeline: OpenPipeline,
) -> None:
    pipeline = open_pipeline(reasoner=ScriptedReasoner(Capability.REMOTE), WORKER_REMOTE_UNITS="3")
    meeting = threading.Barrier(3)

    def meet(request: object) -> None:
        meeting.wait(PATIENCE)

    pipeline.reasoner.act = meet
    pipeline.say("s", ("alice", "I like tea."), ("bob", "I sing."), ("carol", "I own a boat."))
    pipeline.work()
    assert pipeline.counts() == (3, 3, 0, 0)


def test_a_local_reasoner_works_on_one_unit_at_a_time(pipeline: Pipeline) -> None:
    at_once: list[int] = []
    inside = threading.Semaphore(1)

    def alone(request: object) -> None:
        assert inside.acquire(blocking=False)
        time.sleep(0.02)
        inside.release()
        at_once.append(1)

    pipeline.reasoner.act = alone
    pipeline.say("s", ("alice", "I like tea."), ("bob", "I sing."), ("carol", "I own a boat."))
    pipeline.work()
    assert len(at_once) == 3


def test_the_longest_waiting_unit_comes_first(pipeline: Pipeline) -> None:
    for session in ("c", "a", "b"):
        pipeline.say(session, ("alice", f"I was in {session}."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I was in c.", "I was in a.", "I was in b."]


def test_a_worker_opens_its_models_before_the_first_task(open_pipeline: OpenPipeline) -> None:
    model = ScriptedModel()
    pipeline = open_pipeline(model, REASONER="auto", DERIVER_MODEL_CONFIG__TRANSPORT="scripted")
    with working(pipeline):
        until(lambda: bool(model.opened))
    assert len(model.opened) == 1
    assert model.requests == []


@pytest.mark.parametrize("kind", [ConfigurationError, RuntimeError])
def test_a_model_that_cannot_be_opened_ends_no_worker(
    open_pipeline: OpenPipeline, kind: type[Exception]
) -> None:
    class Broken(ScriptedModel):
        def _open(self, settings: Mapping[str, Any], context: Context) -> ScriptedModel:
            raise kind("DERIVER_MODEL_CONFIG__MODEL: no such model")

    pipeline = open_pipeline(
        Broken(),
        REASONER="auto",
        DERIVER_MODEL_CONFIG__TRANSPORT="scripted",
        DERIVER_FLUSH_ENABLED="true",
    )
    with working(pipeline):
        pipeline.say("s", ("alice", "I like tea."))
        until(lambda: any("no such model" in (task.last_error or "") for task in pipeline.tasks()))
