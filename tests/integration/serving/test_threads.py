"""The threads that answer requests."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from memservice.serving.threads import Threads
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
