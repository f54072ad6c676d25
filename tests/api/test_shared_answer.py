"""A costly answer is computed once for concurrent requests."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memservice.api import shared_answer
from memservice.api.shared_answer import SharedAnswer
from memservice.app import create_app
from memservice.operations import doctor
from memservice.runtime import Runtime
from memservice.settings import load_settings


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(shared_answer.time, "monotonic", lambda: now[0])  # type: ignore[attr-defined]
    return now


def test_an_answer_is_reused_for_two_seconds(clock: list[float]) -> None:
    numbers = iter(range(100))
    shared = SharedAnswer(lambda: next(numbers))
    assert [shared.get(), shared.get()] == [0, 0]
    clock[0] += 1.9
    assert shared.get() == 0
    clock[0] += 0.2
    assert shared.get() == 1


def test_the_last_answer_is_used_while_the_next_one_is_computed(clock: list[float]) -> None:
    """No thread waits for it, as long as it is usable."""
    begun, over, numbers = threading.Event(), threading.Event(), iter(range(100))

    def find() -> int:
        number = next(numbers)
        if number:
            begun.set()
            assert over.wait(20)
        return number

    shared = SharedAnswer(find)
    assert shared.get() == 0
    clock[0] += 5
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(shared.get)
        assert begun.wait(20)
        assert shared.get() == 0
        clock[0] += 6
        late = pool.submit(shared.get)  # nothing usable is left: it waits
        over.set()
        assert (first.result(20), late.result(20)) == (1, 1)


def test_a_failure_is_not_reused() -> None:
    outcomes = iter([RuntimeError("away"), None])

    def find() -> str:
        error = next(outcomes)
        if error is not None:
            raise error
        return "there"

    shared = SharedAnswer(find)
    with pytest.raises(RuntimeError):
        shared.get()
    assert shared.get() == "there"


@pytest.mark.slow
def test_concurrent_readiness_requests_cost_one_check(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, original = [], doctor.look

    def look(rt: Runtime) -> object:
        looked.append(rt)
        time.sleep(0.2)
        return original(rt)

    monkeypatch.setattr(doctor, "look", look)
    app = create_app(load_settings(environ={"DB_CONNECTION_URI": "memory://"}, cwd=Path("/")))
    with ThreadPoolExecutor(20) as pool:
        answers = list(
            pool.map(lambda _: app.test_client().get("/health/ready").get_json(), range(40))
        )
    assert len(looked) == 1
    assert answers == [answers[0]] * 40
    app.extensions["memservice"].close()
