"""One thread of a worker computes at a time, and the others while it waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from memservice import compute_lock
from memservice.compute_lock import ComputeLock, compute_freely, compute_under, released
from memservice.reasoning.client import ModelClient
from memservice.spi.llm import Completion, CompletionRequest, Turn
from memservice.spi.reasoner import Origin
from memservice.spi.waiting import about_to_wait
from memservice.timed_calls import TimedCalls
from support.processes.processes import eventually
from support.reasoning.model import ModelHarness, ScriptedModel

SECONDS = 30.0


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> ComputeLock:
    """A lock that is never given up: what waits for it longer hangs."""
    monkeypatch.setattr(compute_lock, "MAX_SECONDS", SECONDS)
    return ComputeLock()


@contextmanager
def another_computes(lock: ComputeLock) -> Iterator[None]:
    """Another thread has the lock until the block ends."""
    began, may_end = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        assert may_end.wait(SECONDS)

    thread = threading.Thread(target=lock.run, args=[work])
    thread.start()
    assert began.wait(SECONDS)
    try:
        yield
    finally:
        may_end.set()
        thread.join(SECONDS)
        assert not thread.is_alive()


def is_free(lock: ComputeLock) -> bool:
    """Whether another thread can compute now."""
    return not lock._lock.locked()


def test_threads_compute_one_after_the_other(lock: ComputeLock) -> None:
    computing, most = 0, 0

    def work() -> None:
        nonlocal computing, most
        computing += 1
        most = max(most, computing)
        threading.Event().wait(0.005)
        computing -= 1

    threads = [threading.Thread(target=lock.run, args=[work]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert most == 1


def test_work_has_the_lock_until_it_ends(lock: ComputeLock) -> None:
    assert lock.run(lambda: is_free(lock)) is False
    assert is_free(lock)


def test_work_that_fails_gives_the_lock_back(lock: ComputeLock) -> None:
    with pytest.raises(ZeroDivisionError):
        lock.run(lambda: 1 / 0)
    assert is_free(lock)


def test_others_compute_while_work_waits(lock: ComputeLock) -> None:
    order: list[str] = []
    waits, may_go_on = threading.Event(), threading.Event()

    def work() -> None:
        order.append("begins")
        with released():
            waits.set()
            assert may_go_on.wait(SECONDS)
        order.append("goes on")

    thread = threading.Thread(target=lock.run, args=[work])
    thread.start()
    assert waits.wait(SECONDS)
    with another_computes(lock):
        may_go_on.set()
        order.append("another computes")
    thread.join(SECONDS)
    assert order == ["begins", "another computes", "goes on"]


def test_a_plugin_that_reports_a_wait_lets_others_compute(lock: ComputeLock) -> None:
    def work() -> bool:
        about_to_wait()
        return is_free(lock)

    assert lock.run(work)
    assert is_free(lock)


def test_a_thread_that_computes_for_long_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compute_lock, "MAX_SECONDS", 0.01)
    lock = ComputeLock()
    with another_computes(lock):
        assert lock.run(lambda: "done") == "done"
    with another_computes(lock):
        # A thread without the lock does not give back that of another.
        assert lock.run(lambda: lock._lock.locked())
        assert lock._lock.locked()


def test_a_wait_within_a_wait_gives_the_lock_up_until_both_have_ended(lock: ComputeLock) -> None:
    def work() -> tuple[bool, bool]:
        with released():
            with released():
                about_to_wait()
            waits = is_free(lock)
        return waits, is_free(lock)

    assert lock.run(work) == (True, False)
    assert is_free(lock)


class Calls:
    """A lock that records its calls. If it `is_late`, a thread does not get it in time."""

    def __init__(self, *, is_late: bool = False) -> None:
        self.calls: list[str] = []
        self._is_late = is_late

    def acquire(self) -> bool:
        self.calls.append("acquire")
        return not self._is_late

    def release(self) -> None:
        self.calls.append("release")


def test_a_lock_is_released_only_where_a_thread_waits() -> None:
    lock = Calls()
    compute_under(lock, has_lock=True)
    assert lock.calls == []
    about_to_wait()
    with released():
        assert lock.calls == ["release"]
    assert lock.calls == ["release", "acquire"]
    compute_freely()
    about_to_wait()
    with released():
        pass
    assert lock.calls == ["release", "acquire"]


def test_a_lock_that_a_thread_does_not_have_is_not_released() -> None:
    lock = Calls(is_late=True)
    compute_under(lock, has_lock=False)
    for _ in range(2):
        with released():
            about_to_wait()
    compute_freely()
    assert lock.calls == ["acquire", "acquire"]


def test_nothing_happens_in_other_threads() -> None:
    with released():
        about_to_wait()


def called_by_a_model(call: Callable[[], object]) -> ModelClient:
    class Model(ScriptedModel):
        def complete(self, request: CompletionRequest) -> Completion:
            call()
            return super().complete(request)

    harness = ModelHarness(
        Model("Fine."),
        DERIVER_MODEL_CONFIG__TRANSPORT="scripted",
        DERIVER_MODEL_CONFIG__MODEL="first-1",
    )
    config = harness.models.settings.deriver.model_config
    return ModelClient(harness.models, "deriver.representation", config, Origin())


def test_others_compute_while_a_model_answers(lock: ComputeLock) -> None:
    free: list[bool] = []
    client = called_by_a_model(lambda: free.append(is_free(lock)))

    def work() -> bool:
        client.complete([Turn("user", "How are you?")])
        return is_free(lock)

    assert lock.run(work) is False, "it has the lock again"
    assert free == [True]


def test_others_compute_while_a_remote_service_answers(lock: ComputeLock) -> None:
    calls = TimedCalls("embed")

    def work() -> tuple[float, bool]:
        waited = calls.within(SECONDS, lambda: eventually(lambda: is_free(lock)))
        return waited, is_free(lock)

    waited, is_free_after = lock.run(work)
    assert waited < SECONDS
    assert not is_free_after
    calls.close()
