"""Work whose reasoner has a process of its own: what takes for ever there fails alone and visibly,
and never holds up a worker's end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memservice.domain.records import Lease
from memservice.reasoning.apart import reasoner as apart
from memservice.services import messages
from memservice.services.messages import Draft
from memservice.worker.polling import Worker
from services.pipeline.conftest import OpenPipeline
from support.pipeline.pipeline import PRINCIPAL, Pipeline
from support.processes import preloaded
from support.reasoning import command_reasoner

PATIENCE = 60.0


@pytest.fixture(autouse=True)
def forked_reasoners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_started", preloaded.start_reasoner)


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def pipeline(open_pipeline: OpenPipeline, stop: threading.Event) -> Pipeline:
    settings = {
        "WORKER_CPU_SECONDS": "1",
        "WORKER_MAX_ATTEMPTS": "1",
        "WORKER_RETRY_BACKOFF_SECONDS": "0",
    }
    pipeline = open_pipeline(command_reasoner.Plugin(), REASONER="command", stop=stop, **settings)
    return pipeline


@pytest.mark.slow
def test_an_endless_message_fails_alone(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "loop"), ("alice", "I sing."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I sing."]
    (failed,) = pipeline.tasks(state="failed")
    assert failed.attempts == 1
    assert failed.last_error is not None
    assert failed.last_error.startswith("TookTooLong: it took more than the 1 s of CPU time")


@pytest.mark.slow
def test_other_workspaces_are_served_meanwhile(
    pipeline: Pipeline, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "LAST_SECONDS", 0.1)
    pipeline.say("s", ("alice", "sleep 600"))
    thread = threading.Thread(target=Worker(pipeline.rt).run, args=(stop,))
    thread.start()
    try:
        until(lambda: any(not lease.unit.startswith("maintenance") for lease in leases(pipeline)))
        messages.create(pipeline.rt, PRINCIPAL, "other", "s", [Draft("I sing.", "alice")])
        until(lambda: pipeline.texts("alice") == ["I sing."])
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.slow
def test_a_stopping_worker_releases_long_work(
    pipeline: Pipeline, stop: threading.Event, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """While the work goes on, and as if it had never been begun: the next worker does it."""
    monkeypatch.setattr(apart, "LAST_SECONDS", 0.2)
    started, may_end = tmp_path / "started", tmp_path / "may-end"
    pipeline.say("s", ("alice", f"wait {started}|{may_end}"))
    thread = threading.Thread(target=Worker(pipeline.rt).run, args=(stop,))
    thread.start()
    until(started.exists)
    stop.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    (task,) = pipeline.tasks()
    assert (task.state, task.attempts, task.last_error) == ("pending", 0, None)
    assert leases(pipeline) == []
    may_end.touch()
    stop.clear()
    pipeline.work()
    assert pipeline.texts("alice") == [f"wait {started}|{may_end}"]


def leases(pipeline: Pipeline) -> list[Lease]:
    with pipeline.rt.storage.read() as tx:
        return list(tx.tasks.leases())


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
