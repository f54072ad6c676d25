"""The threads that answer requests."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

import pytest

from memservice.serving import threads as serving_threads
from memservice.serving.threads import Threads
from memservice.spi.waiting import about_to_wait
from support.processes.processes import eventually

SECONDS = 30.0
"""What tells a hang from an answer."""


@pytest.fixture
def threads() -> Iterator[Threads]:
    threads = Threads(3)
    yield threads
    threads.shutdown()


def test_as_many_jobs_run_at_once_as_there_are_threads(threads: Threads) -> None:
    all_at_once = threading.Barrier(3)
    met = threading.Semaphore(0)

    def meet() -> None:
        all_at_once.wait(SECONDS)
        met.release()

    for _ in range(3):  # as jobs that follow on others, which the threads are idle for
        for _ in range(3):
            threads.submit(meet)
        for _ in range(3):
            assert met.acquire(timeout=SECONDS)


def test_a_job_waits_for_a_thread(threads: Threads) -> None:
    release, done = threading.Event(), threading.Semaphore(0)
    running = threading.Semaphore(0)

    def hold() -> None:
        running.release()
        assert release.wait(SECONDS)

    for _ in range(3):
        threads.submit(hold)
    for _ in range(3):
        assert running.acquire(timeout=SECONDS)
    for _ in range(10):
        threads.submit(done.release)
    assert not done.acquire(blocking=False)
    assert threads.waiting == 10
    assert threads.waited_seconds > 0
    release.set()
    for _ in range(10):
        assert done.acquire(timeout=SECONDS)
    assert (threads.waiting, threads.waited_seconds) == (0, 0.0)


def test_a_job_that_fails_is_logged_and_ends_no_thread(
    threads: Threads, caplog: pytest.LogCaptureFixture
) -> None:
    done = threading.Event()

    def fail() -> None:
        raise RuntimeError("a fault")

    with caplog.at_level(logging.ERROR, "memservice.server"):
        for _ in range(5):  # more than there are threads
            threads.submit(fail)
        threads.submit(done.set)
        assert done.wait(SECONDS)
    assert "a request could not be answered" in caplog.text


def test_threads_end_after_the_jobs_before() -> None:
    own = Threads(2)
    ended: list[threading.Thread] = []
    both = threading.Barrier(2)

    def note() -> None:
        both.wait(SECONDS)
        ended.append(threading.current_thread())

    own.submit(note)
    own.submit(note)
    own.shutdown()
    eventually(lambda: len(ended) == 2)
    for thread in ended:
        thread.join(SECONDS)
        assert not thread.is_alive()


@pytest.fixture
def many() -> Iterator[Threads]:
    threads = Threads(20)
    yield threads
    threads.shutdown()


@pytest.fixture
def jobs_stay_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_threads, "NEW_SECONDS", 1_000.0)


class Blocked:
    """Jobs that note that they began, and go on when they are told to."""

    def __init__(self, number: int) -> None:
        self.began: list[int] = []
        self.ended: list[int] = []
        self.threads: set[threading.Thread] = set()
        self._may_end = [threading.Event() for _ in range(number)]

    def job(self, number: int) -> Callable[[], None]:
        def run() -> None:
            self.began.append(number)
            self.threads.add(threading.current_thread())
            assert self._may_end[number].wait(SECONDS)
            self.ended.append(number)

        return run

    def end(self, *numbers: int) -> None:
        for number in numbers:
            self._may_end[number].set()


def waiting_job(job: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        about_to_wait()
        about_to_wait()  # a second time changes nothing
        job()

    return run


@pytest.mark.usefixtures("jobs_stay_new")
def test_few_new_jobs_run_at_once_and_in_order(many: Threads) -> None:
    blocked = Blocked(7)
    for number in range(7):
        many.submit(blocked.job(number))
    eventually(lambda: sorted(blocked.began) == [0, 1, 2, 3])
    assert many.waiting == 3
    blocked.end(2)
    eventually(lambda: blocked.began[4:] == [4])
    blocked.end(0, 1)
    eventually(lambda: sorted(blocked.began[5:]) == [5, 6])
    assert many.waiting == 0
    blocked.end(3, 4, 5, 6)
    eventually(lambda: len(blocked.ended) == 7)


@pytest.mark.usefixtures("jobs_stay_new")
def test_jobs_that_fail_let_others_begin(many: Threads) -> None:
    done = threading.Event()
    for _ in range(10):
        many.submit(lambda: [][1])
    many.submit(done.set)
    assert done.wait(SECONDS)


@pytest.mark.usefixtures("jobs_stay_new")
def test_jobs_that_wait_for_others_are_done_before_threads_end() -> None:
    own = Threads(20)
    earlier, blocked = Blocked(8), Blocked(8)
    for number in range(8):
        own.submit(waiting_job(earlier.job(number)))
    eventually(lambda: len(earlier.began) == 8)
    earlier.end(*range(8))
    eventually(lambda: own._idle == 8)

    def wait_for_others() -> None:
        blocked.job(0)()
        about_to_wait()  # lets a job begin, for which there is no idle thread any more

    own.submit(wait_for_others)
    for number in range(1, 8):
        own.submit(blocked.job(number))
    eventually(lambda: len(blocked.began) == 4)
    own.shutdown()
    blocked.end(0)
    eventually(lambda: 0 in blocked.ended)
    blocked.end(*range(1, 8))
    eventually(lambda: sorted(blocked.ended) == list(range(8)))
    for thread in blocked.threads | earlier.threads:
        thread.join(SECONDS)
        assert not thread.is_alive()


def test_jobs_that_take_long_keep_no_others_waiting(many: Threads) -> None:
    blocked = Blocked(21)
    for number in range(21):
        many.submit(blocked.job(number))
    eventually(lambda: len(blocked.began) == 20)
    assert many.waiting == 1, "there are twenty threads"
    blocked.end(*range(21))
    eventually(lambda: len(blocked.ended) == 21)


@pytest.mark.usefixtures("jobs_stay_new")
def test_jobs_that_report_a_wait_keep_no_others_waiting(many: Threads) -> None:
    blocked = Blocked(9)
    for number in range(5):
        many.submit(waiting_job(blocked.job(number)))
    eventually(lambda: len(blocked.began) == 5)
    for number in range(5, 9):
        many.submit(blocked.job(number))
    eventually(lambda: len(blocked.began) == 9)
    blocked.end(*range(9))
    eventually(lambda: len(blocked.ended) == 9)


def test_each_job_of_a_thread_is_new(many: Threads) -> None:
    states: list[bool] = []
    done = threading.Semaphore(0)

    def note() -> None:
        states.append(len(many._new) == 1)
        about_to_wait()
        states.append(len(many._new) == 0)
        done.release()

    for _ in range(3):
        many.submit(note)
        assert done.acquire(timeout=SECONDS)
        eventually(lambda: many._idle == many._started)
    assert states == [True] * 6


def test_a_report_of_any_other_thread_changes_nothing() -> None:
    about_to_wait()
