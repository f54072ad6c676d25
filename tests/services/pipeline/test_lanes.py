"""Slow calls of language models delay no other work, on a worker without Redis."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from memservice.services import deletion, dreams
from memservice.services.dreams import DreamRequest
from memservice.services.tasks import kinds
from memservice.spi.capabilities import Capability
from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Derived, DeriveRequest
from memservice.worker import polling
from memservice.worker.lanes import LOCAL_THREADS, Lanes
from memservice.worker.polling import Worker
from memservice.worker.runner import RunReport
from services.pipeline.conftest import OpenPipeline
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

PATIENCE = 30.0
HANG_SECONDS = 2 * PATIENCE
"""How long a call hangs. What happens within `PATIENCE` has not waited for its end."""


class Hanging(ScriptedReasoner):
    """A model whose answers about some peers, and in dreams, never come until `go_on` is set."""

    def __init__(self, *peers: str) -> None:
        super().__init__(Capability.REMOTE)
        self.peers = peers
        self.go_on = threading.Event()
        self.hanging = threading.Semaphore(0)
        self.dreaming = 0
        self._lock = threading.Lock()

    def derive(self, request: DeriveRequest) -> Derived:
        if request.observed in self.peers:
            self.hang()
        return super().derive(request)

    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        with self._lock:
            self.dreaming += 1
        self.hang()
        return Consolidated()

    def hang(self) -> None:
        self.hanging.release()
        assert self.go_on.wait(HANG_SECONDS)


@pytest.fixture
def hanging(open_pipeline: OpenPipeline) -> Iterator[tuple[Pipeline, Hanging]]:
    reasoner = Hanging("mute", "silent", "still", "quiet")
    yield (
        open_pipeline(reasoner=reasoner, WORKER_REMOTE_UNITS="4", PEER_CARD_REFRESH="false"),
        reasoner,
    )
    reasoner.go_on.set()


@contextmanager
def working(pipeline: Pipeline, reasoner: Hanging) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=Worker(pipeline.rt).run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        reasoner.go_on.set()
        stop.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def fill_model_threads(pipeline: Pipeline, reasoner: Hanging, number: int) -> None:
    for peer in reasoner.peers[:number]:
        pipeline.say("stuck", (peer, "Hello."))
    for _ in range(number):
        assert reasoner.hanging.acquire(timeout=PATIENCE)


@pytest.mark.slow
def test_another_session_is_derived_while_a_call_hangs(hanging: tuple[Pipeline, Hanging]) -> None:
    pipeline, reasoner = hanging
    with working(pipeline, reasoner):
        fill_model_threads(pipeline, reasoner, 3)
        pipeline.say("free", ("alice", "I like tea."))
        wait_until(lambda: pipeline.texts("alice") == ["I like tea."])


@pytest.mark.slow
def test_a_session_is_erased_while_every_model_thread_hangs(
    hanging: tuple[Pipeline, Hanging],
) -> None:
    pipeline, reasoner = hanging
    pipeline.say("gone", ("alice", "I like tea."))
    pipeline.work()
    with working(pipeline, reasoner):
        fill_model_threads(pipeline, reasoner, 4)
        deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "gone")
        wait_until(lambda: {task.state for task in pipeline.tasks(kinds.ERASE)} == {"done"})


@pytest.mark.slow
def test_local_work_is_found_behind_a_full_batch_of_other_units(
    hanging: tuple[Pipeline, Hanging], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, reasoner = hanging
    monkeypatch.setattr(polling, "READY_BATCH_SIZE", 5)
    pipeline.say("gone", ("alice", "I like tea."))
    pipeline.work()
    for number in range(20):
        pipeline.say(f"s{number}", ("mute", "Hello."))
    with working(pipeline, reasoner):
        for _ in range(4):
            assert reasoner.hanging.acquire(timeout=PATIENCE)
        deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "gone")
        wait_until(lambda: {task.state for task in pipeline.tasks(kinds.ERASE)} == {"done"})


@pytest.mark.slow
def test_dreams_have_at_most_half_of_the_model_threads(hanging: tuple[Pipeline, Hanging]) -> None:
    pipeline, reasoner = hanging
    peers = [f"p{number}" for number in range(5)]
    for peer in peers:
        pipeline.say("s", (peer, f"I am {peer}."))
    pipeline.work()
    for peer in peers:
        dreams.schedule(pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest(peer, dreams.OMNI))
    with working(pipeline, reasoner):
        for _ in range(2):
            assert reasoner.hanging.acquire(timeout=PATIENCE)
        pipeline.say("free", ("alice", "I like tea."))
        wait_until(lambda: pipeline.texts("alice") == ["I like tea."])
        assert reasoner.dreaming == 2


@pytest.mark.slow
def test_a_dream_never_takes_the_only_thread_of_a_workspace(open_pipeline: OpenPipeline) -> None:
    reasoner = Hanging()
    pipeline = open_pipeline(reasoner=reasoner, WORKER_REMOTE_UNITS="1", PEER_CARD_REFRESH="false")
    pipeline.say("s", ("bob", "I sing."))
    pipeline.work()
    dreams.schedule(pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest("bob", dreams.OMNI))
    with working(pipeline, reasoner):
        assert reasoner.hanging.acquire(timeout=PATIENCE)
        pipeline.say("free", ("alice", "I like tea."))
        wait_until(lambda: pipeline.texts("alice") == ["I like tea."])


@pytest.mark.slow
def test_a_thread_that_becomes_free_takes_the_next_unit_at_once(
    hanging: tuple[Pipeline, Hanging], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the other calls of the same round take: here, none of its calls and no time
    ends the round before the test does."""
    monkeypatch.setattr(polling, "ROUND_SECONDS", HANG_SECONDS)
    pipeline, reasoner = hanging
    for peer in reasoner.peers[:3]:
        pipeline.say("stuck", (peer, "Hello."))
    for number in range(10):
        pipeline.say(f"s{number}", ("alice", f"I was in s{number}."))
    with working(pipeline, reasoner):
        for _ in range(3):
            assert reasoner.hanging.acquire(timeout=PATIENCE)
        wait_until(lambda: len(pipeline.texts("alice")) == 10)


@pytest.mark.parametrize("units", [1, 2, 4, 9])
def test_limits_of_lanes(units: int) -> None:
    done = threading.Event()

    def work() -> RunReport:
        assert done.wait(PATIENCE)
        return RunReport("u")

    lanes = Lanes(units)
    started = []
    for workspace in (1, 2):
        for number in range(20):
            for kind in ("dream", "representation", "erase:session", "embed"):
                unit = f"{kind}:{workspace}:{number}"
                if lanes.startable([unit]):
                    lanes.start(unit, work)
                    started.append(unit)
    try:
        dreaming = [unit for unit in started if unit.startswith("dream")]
        deriving = [unit for unit in started if unit.startswith("representation")]
        assert len(dreaming) <= max(1, (units + 1) // 2)
        assert len(dreaming) + len(deriving) <= max(units, 2) + 1
        assert len([unit for unit in deriving if unit.split(":")[1] == "1"]) <= units
        assert any(unit.split(":")[1] == "2" for unit in dreaming + deriving)
        assert len([unit for unit in started if unit.startswith("erase")]) == LOCAL_THREADS - 1
        assert any(unit.startswith("embed:2") for unit in started)
        assert "dream" in lanes.closed()
    finally:
        done.set()
        lanes.close()
