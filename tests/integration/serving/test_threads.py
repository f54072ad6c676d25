"""The threads that take turns of a loop and answer the requests that it receives."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue

import pytest

from memservice.compute_lock import released
from memservice.serving import computing
from memservice.serving import threads as serving_threads
from memservice.serving.threads import Job, Threads
from memservice.spi.waiting import about_to_wait
from support.processes.processes import eventually

SECONDS = 30.0
"""What tells a hang from an answer."""
SHORT = 0.005


class Loop:
    """A loop that waits for jobs, and threads that take its turns."""

    def __init__(self, number: int) -> None:
        self.threads = Threads(number, self.turn, self.failed)
        self.leaders: list[threading.Thread] = []
        """The thread of each turn that submitted jobs."""
        self.turns = 0
        self.failures = 0
        self._arriving: SimpleQueue[list[Job] | Exception | None] = SimpleQueue()
        self._in_turn = threading.Lock()

    def arrive(self, *jobs: Job) -> None:
        """All of them in one turn."""
        self._arriving.put(list(jobs))

    def break_down(self, error: Exception) -> None:
        self._arriving.put(error)

    def wake(self) -> None:
        self._arriving.put(None)

    def turn(self, can_wait: bool) -> None:
        assert self._in_turn.acquire(blocking=False), "two threads take a turn"
        try:
            self.turns += 1
            arrived = self._arriving.get(block=can_wait, timeout=SECONDS)
            if isinstance(arrived, Exception):
                raise arrived
            for job in arrived or ():
                self.threads.submit(job)
            if arrived:
                self.leaders.append(threading.current_thread())
        except Empty:
            pass
        finally:
            self._in_turn.release()

    def failed(self) -> None:
        self.failures += 1


def opened(number: int) -> Iterator[Loop]:
    loop = Loop(number)
    loop.threads.start()
    yield loop
    loop.threads.shutdown(loop.wake)


@pytest.fixture
def loop() -> Iterator[Loop]:
    yield from opened(3)


@pytest.fixture
def large() -> Iterator[Loop]:
    yield from opened(20)


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    """No other thread leads until a job reports that it waits."""
    monkeypatch.setattr(serving_threads, "LEAD_SECONDS", 1_000.0)
    yield from opened(20)


class Blocked:
    """Jobs that note that they began, and go on when they are told to."""

    def __init__(self, number: int) -> None:
        self.began: list[int] = []
        self.ended: list[int] = []
        self.threads: list[threading.Thread] = []
        self._may_end = [threading.Event() for _ in range(number)]

    def job(self, number: int, *, reports: bool = False) -> Job:
        def run() -> None:
            self.began.append(number)
            self.threads.append(threading.current_thread())
            if reports:
                about_to_wait()
                about_to_wait()  # a second time changes nothing
            assert self._may_end[number].wait(SECONDS)
            self.ended.append(number)

        return run

    def end(self, *numbers: int) -> None:
        for number in numbers:
            self._may_end[number].set()


def test_the_leader_does_jobs_itself_and_in_order(unwatched: Loop) -> None:
    done: list[tuple[int, threading.Thread]] = []

    def job(number: int) -> Job:
        return lambda: done.append((number, threading.current_thread()))

    for first in range(0, 50, 5):
        unwatched.arrive(*map(job, range(first, first + 5)))
    eventually(lambda: len(done) == 50)
    assert [number for number, _ in done] == list(range(50))
    assert len({thread for _, thread in done}) == 1
    assert {thread for _, thread in done} == set(unwatched.leaders)


def test_the_leader_takes_turns_although_jobs_wait(
    unwatched: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a connection that has just been opened would wait for all of them."""
    monkeypatch.setattr(serving_threads, "TURN_SECONDS", SHORT)
    done: list[int] = []

    def first() -> None:
        time.sleep(2 * SHORT)
        unwatched.arrive(lambda: done.append(turns_taken()))

    def turns_taken() -> int:
        return unwatched.turns - before

    before = unwatched.turns
    unwatched.arrive(first, *[lambda: done.append(turns_taken())] * 3)
    eventually(lambda: len(done) == 4)
    # the first job, then a turn that receives the last one, then the others
    assert done == [done[0]] * 4


def test_jobs_are_done_without_a_turn_between_them_while_they_are_short(
    unwatched: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_threads, "TURN_SECONDS", SECONDS)
    turns: list[int] = []
    unwatched.arrive(*[lambda: turns.append(unwatched.turns)] * 50)
    eventually(lambda: len(turns) == 50)
    assert len(set(turns)) == 1


def test_jobs_that_wait_for_a_turn_are_done_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_threads, "TURN_SECONDS", 0.0)
    loop, blocked = Loop(3), Blocked(1)
    loop.threads.start()
    done: list[int] = []
    loop.arrive(blocked.job(0), lambda: done.append(1))
    eventually(lambda: blocked.began == [0])
    shutdown = threading.Thread(target=loop.threads.shutdown, args=[loop.wake])
    shutdown.start()
    blocked.end(0)
    shutdown.join(SECONDS)
    eventually(lambda: done == [1])


def test_a_job_that_reports_a_wait_gives_the_lead_to_another_thread(unwatched: Loop) -> None:
    blocked = Blocked(6)
    for number in range(3):
        unwatched.arrive(blocked.job(number, reports=True))
    eventually(lambda: blocked.began == [0, 1, 2])
    # all in one turn: those behind the first one wait for no turn
    unwatched.arrive(*(blocked.job(number, reports=True) for number in (3, 4, 5)))
    eventually(lambda: blocked.began == list(range(6)))
    assert len(set(blocked.threads)) == 6
    assert unwatched.threads.waiting == 0
    blocked.end(*range(6))
    eventually(lambda: len(blocked.ended) == 6)


def test_jobs_wait_for_a_leader_that_only_computes(unwatched: Loop) -> None:
    blocked = Blocked(2)
    unwatched.arrive(blocked.job(0), blocked.job(1))
    eventually(lambda: blocked.began == [0])
    time.sleep(5 * SHORT)
    assert (blocked.began, unwatched.threads.waiting) == ([0], 1)
    assert unwatched.threads.waited_seconds > 0
    blocked.end(0, 1)
    eventually(lambda: blocked.ended == [0, 1])
    assert (unwatched.threads.waiting, unwatched.threads.waited_seconds) == (0, 0.0)


def test_a_job_that_takes_long_keeps_no_others_waiting(large: Loop) -> None:
    """Nor the loop: the others arrive while it runs."""
    blocked = Blocked(3)
    large.arrive(blocked.job(0), blocked.job(1))
    eventually(lambda: blocked.began == [0, 1])
    large.arrive(blocked.job(2))
    eventually(lambda: blocked.began == [0, 1, 2])
    blocked.end(0, 1, 2)
    eventually(lambda: len(blocked.ended) == 3)


@pytest.fixture
def jobs_stay_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_threads, "NEW_SECONDS", 1_000.0)


@pytest.mark.usefixtures("jobs_stay_new")
def test_few_jobs_compute_at_the_same_time(large: Loop) -> None:
    blocked = Blocked(6)
    for number in range(6):
        large.arrive(blocked.job(number))
    eventually(lambda: blocked.began == [0, 1])
    eventually(lambda: large.threads.waiting == 4)
    time.sleep(5 * serving_threads.LEAD_SECONDS)
    assert blocked.began == [0, 1], "but the loop receives requests"
    for number in range(4):
        blocked.end(number)
        eventually(lambda number=number: blocked.began[2:] == list(range(2, number + 3)))  # type: ignore[misc]
    blocked.end(4, 5)
    eventually(lambda: len(blocked.ended) == 6)


@pytest.mark.usefixtures("jobs_stay_new")
def test_a_report_lets_a_job_begin_while_the_leader_waits_in_a_turn(large: Loop) -> None:
    blocked, may_report = Blocked(3), threading.Event()

    def report_later() -> None:
        assert may_report.wait(SECONDS)
        blocked.job(0, reports=True)()

    large.arrive(report_later, blocked.job(1), blocked.job(2))
    eventually(lambda: blocked.began == [1])
    time.sleep(5 * serving_threads.LEAD_SECONDS)
    assert large.threads.waiting == 1
    may_report.set()
    eventually(lambda: blocked.began == [1, 0, 2])
    blocked.end(0, 1, 2)
    eventually(lambda: len(blocked.ended) == 3)


def test_long_jobs_are_noticed_after_a_pause(large: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that looks for them sleeps while there is nothing to do."""
    monkeypatch.setattr(serving_threads, "IDLE_SECONDS", SHORT)
    blocked = Blocked(4)
    for number in (0, 2):
        eventually(lambda: large.threads._asleep is not None)
        large.arrive(blocked.job(number), blocked.job(number + 1))
        eventually(lambda number=number: number + 1 in blocked.began)  # type: ignore[misc]
        blocked.end(number, number + 1)
        eventually(lambda number=number: number + 1 in blocked.ended)  # type: ignore[misc]


def test_as_many_jobs_run_at_once_as_there_are_threads(loop: Loop) -> None:
    all_at_once = threading.Barrier(3)
    met = threading.Semaphore(0)

    def meet() -> None:
        about_to_wait()
        all_at_once.wait(SECONDS)
        met.release()

    for _ in range(3):  # as jobs that follow on others, which the threads are idle for
        loop.arrive(meet, meet, meet)
        for _ in range(3):
            assert met.acquire(timeout=SECONDS)


def test_the_loop_continues_while_all_threads_have_jobs(loop: Loop) -> None:
    blocked, done = Blocked(3), threading.Semaphore(0)
    loop.arrive(*(blocked.job(number, reports=True) for number in range(3)))
    eventually(lambda: len(blocked.began) == 3)
    for _ in range(10):
        loop.arrive(done.release)
    eventually(lambda: loop.threads.waiting == 10)
    assert not done.acquire(blocking=False)
    assert loop.threads.waited_seconds > 0
    blocked.end(0)  # its thread takes the jobs: the leader waits in its turn
    for _ in range(10):
        assert done.acquire(timeout=SECONDS)
    assert (loop.threads.waiting, loop.threads.waited_seconds) == (0, 0.0)
    blocked.end(1, 2)
    eventually(lambda: len(blocked.ended) == 3)


def test_threads_start_only_when_they_are_needed(loop: Loop) -> None:
    done = threading.Semaphore(0)

    def wait() -> None:
        about_to_wait()
        done.release()

    for _ in range(20):
        loop.arrive(wait)
        assert done.acquire(timeout=SECONDS)
        eventually(lambda: loop.threads._busy == 0)
        eventually(lambda: len(loop.threads._idle) == loop.threads._started - 1)
    assert loop.threads._started == 2


def test_jobs_wait_while_no_thread_can_be_started(
    loop: Loop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As in a container with a limit of processes."""
    may_start = threading.Event()
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if thread.name.startswith("request_") and not may_start.is_set():
            raise RuntimeError("can't start new thread")
        start(thread)

    blocked = Blocked(2)
    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR, "memservice.server"):
        patched.setattr(threading.Thread, "start", limited)
        loop.arrive(blocked.job(0, reports=True), blocked.job(1))
        eventually(lambda: blocked.began == [0])
        eventually(lambda: "no thread can be started" in caplog.text)
        time.sleep(5 * serving_threads.LEAD_SECONDS)
        assert blocked.began == [0]
        assert caplog.text.count("no thread can be started") == 1
        may_start.set()
        eventually(lambda: blocked.began == [0, 1])
    blocked.end(0, 1)
    eventually(lambda: len(blocked.ended) == 2)


def test_a_job_that_fails_is_logged_and_ends_no_thread(
    loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    done = threading.Event()

    def fail() -> None:
        raise RuntimeError("a fault")

    def fail_while_waiting() -> None:
        about_to_wait()
        fail()

    with caplog.at_level(logging.ERROR, "memservice.server"):
        for _ in range(5):  # more than there are threads
            loop.arrive(fail, fail_while_waiting)
        loop.arrive(done.set)
        assert done.wait(SECONDS)
        eventually(lambda: caplog.text.count("a request could not be answered") == 10)


def test_a_failure_of_the_loop_ends_it_and_is_reported() -> None:
    loop = Loop(3)
    loop.threads.start()
    blocked = Blocked(1)
    loop.arrive(blocked.job(0, reports=True))
    eventually(lambda: blocked.began == [0])
    loop.break_down(OSError("the poller is broken"))
    eventually(lambda: loop.failures == 1)
    assert isinstance(loop.threads.failure, OSError)
    loop.threads.shutdown(loop.wake)
    blocked.end(0)
    assert_ended(*blocked.threads)


def assert_ended(*threads: threading.Thread) -> None:
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()


@pytest.mark.parametrize("reports", [False, True])
def test_jobs_are_done_before_the_threads_end(reports: bool) -> None:
    loop = Loop(2)
    loop.threads.start()
    blocked = Blocked(6)
    loop.arrive(*(blocked.job(number, reports=reports) for number in range(6)))
    eventually(lambda: len(blocked.began) == 2)
    eventually(lambda: loop.threads.waiting == 4)
    loop.threads.shutdown(loop.wake)
    turns = loop.turns
    blocked.end(*range(6))
    eventually(lambda: len(blocked.ended) == 6)
    assert_ended(*blocked.threads, *loop.leaders)
    assert loop.turns == turns, "no turn is taken after `shutdown` has returned"


def test_idle_threads_end() -> None:
    loop = Loop(5)
    loop.threads.start()
    blocked = Blocked(5)
    loop.arrive(*(blocked.job(number, reports=True) for number in range(5)))
    eventually(lambda: len(blocked.began) == 5)
    blocked.end(*range(5))
    eventually(lambda: len(loop.threads._idle) == 5)
    loop.threads.shutdown(loop.wake)
    assert_ended(*blocked.threads, *loop.leaders)


class Waiting:
    """Jobs that wait for another program until they are told to go on, and then compute until they
    are told to end."""

    def __init__(self, number: int) -> None:
        self.waits: list[int] = []
        self.resumed: list[int] = []
        self._answered = [threading.Event() for _ in range(number)]
        self._may_end = [threading.Event() for _ in range(number)]
        self.ended: list[int] = []

    def job(self, number: int, *, waits: int = 1) -> Job:
        def run() -> None:
            for _ in range(waits):
                with released():
                    self.waits.append(number)
                    assert self._answered[number].wait(SECONDS)
                self.resumed.append(number)
                assert self._may_end[number].wait(SECONDS)
                self._answered[number].clear()
                self._may_end[number].clear()
            self.ended.append(number)

        return run

    def answer(self, number: int) -> None:
        self._answered[number].set()

    def end(self, number: int) -> None:
        self._may_end[number].set()


@pytest.fixture
def jobs_may_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as they want."""
    monkeypatch.setattr(computing, "MAX_SECONDS", 1_000.0)


def waiting(loop: Loop) -> int:
    """Number of jobs that would resume."""
    return len(loop.threads._computing._resuming)


def is_loaded(loop: Loop) -> bool:
    return loop.threads.is_loaded


@pytest.mark.usefixtures("jobs_may_compute")
def test_jobs_resume_one_after_the_other_in_the_order_of_their_answers(unwatched: Loop) -> None:
    jobs = Waiting(4)
    unwatched.arrive(*map(jobs.job, range(4)))
    eventually(lambda: jobs.waits == [0, 1, 2, 3])
    order = [2, 0, 3, 1]
    for number, job in enumerate(order):
        jobs.answer(job)
        eventually(lambda number=number: bool(jobs.resumed) and waiting(unwatched) == number)  # type: ignore[misc]
    for number, job in enumerate(order):
        eventually(lambda number=number: jobs.resumed == order[: number + 1])  # type: ignore[misc]
        jobs.end(job)
    eventually(lambda: jobs.ended == order)


@pytest.mark.usefixtures("jobs_may_compute")
def test_threads_are_loaded_while_a_job_computes_and_not_while_all_wait(unwatched: Loop) -> None:
    jobs = Waiting(1)
    assert not is_loaded(unwatched)
    unwatched.arrive(jobs.job(0))
    eventually(lambda: jobs.waits == [0])
    assert not is_loaded(unwatched)
    jobs.answer(0)
    eventually(lambda: jobs.resumed == [0])
    assert is_loaded(unwatched)
    unwatched.arrive(lambda: None)
    eventually(lambda: unwatched.threads.waiting == 1)
    assert is_loaded(unwatched)
    jobs.end(0)
    eventually(lambda: not is_loaded(unwatched))
    assert jobs.ended == [0]


@pytest.mark.usefixtures("jobs_may_compute")
def test_no_job_begins_while_another_one_has_resumed(unwatched: Loop) -> None:
    jobs, began = Waiting(1), threading.Event()
    unwatched.arrive(jobs.job(0))
    eventually(lambda: jobs.waits == [0])
    jobs.answer(0)
    eventually(lambda: jobs.resumed == [0])
    unwatched.arrive(began.set)
    eventually(lambda: unwatched.threads.waiting == 1)
    assert not began.wait(5 * SHORT)
    jobs.end(0)
    assert began.wait(SECONDS), "its thread begins it: the leader waits in its turn"
    eventually(lambda: jobs.ended == [0])


@pytest.mark.usefixtures("jobs_may_compute")
def test_others_begin_and_resume_when_a_job_waits_again(unwatched: Loop) -> None:
    jobs, began = Waiting(2), threading.Event()
    unwatched.arrive(jobs.job(0, waits=2), jobs.job(1))
    eventually(lambda: jobs.waits == [0, 1])
    jobs.answer(0)
    eventually(lambda: jobs.resumed == [0])
    jobs.answer(1)
    eventually(lambda: waiting(unwatched) == 1)
    unwatched.arrive(began.set)
    eventually(lambda: unwatched.threads.waiting == 1)
    jobs.end(0)
    eventually(lambda: jobs.resumed == [0, 1])
    eventually(lambda: jobs.waits == [0, 1, 0])
    jobs.end(1)
    assert began.wait(SECONDS)
    eventually(lambda: jobs.ended == [1])
    jobs.answer(0)
    eventually(lambda: jobs.resumed == [0, 1, 0])
    jobs.end(0)
    eventually(lambda: jobs.ended == [1, 0])


@pytest.mark.usefixtures("jobs_may_compute")
def test_jobs_begin_beside_one_that_computes_for_long_after_a_wait(
    large: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the thread that notices it had nothing to do."""
    monkeypatch.setattr(serving_threads, "IDLE_SECONDS", SHORT)
    jobs, began = Waiting(1), threading.Event()
    large.arrive(jobs.job(0))
    eventually(lambda: jobs.waits == [0])
    eventually(lambda: large.threads._asleep is not None)
    jobs.answer(0)
    eventually(lambda: jobs.resumed == [0])
    large.arrive(began.set)
    assert began.wait(SECONDS)
    jobs.end(0)
    eventually(lambda: jobs.ended == [0])


def test_jobs_resume_beside_one_that_computes_for_long(large: Loop) -> None:
    jobs, long = Waiting(3), Blocked(1)
    large.arrive(*map(jobs.job, range(3)))
    eventually(lambda: sorted(jobs.waits) == [0, 1, 2])
    large.arrive(long.job(0))
    eventually(lambda: long.began == [0])
    for number in range(3):
        jobs.answer(number)
    eventually(lambda: len(jobs.resumed) == 3)
    for number in range(3):
        jobs.end(number)
    eventually(lambda: sorted(jobs.ended) == [0, 1, 2])
    long.end(0)
    eventually(lambda: long.ended == [0])


@pytest.mark.usefixtures("jobs_may_compute")
def test_a_job_that_has_waited_and_fails_lets_the_next_one_resume(
    unwatched: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    jobs, may_fail = Waiting(1), threading.Event()

    def fail() -> None:
        with released():
            pass
        assert may_fail.wait(SECONDS)
        raise RuntimeError("a fault")

    unwatched.arrive(jobs.job(0))
    eventually(lambda: jobs.waits == [0])
    with caplog.at_level(logging.ERROR, "memservice.server"):
        unwatched.arrive(fail)
        eventually(lambda: unwatched.threads._busy == 2)
        jobs.answer(0)
        eventually(lambda: waiting(unwatched) == 1)
        may_fail.set()
        eventually(lambda: jobs.resumed == [0])
        eventually(lambda: "a fault" in caplog.text)
    jobs.end(0)
    eventually(lambda: jobs.ended == [0])


@pytest.mark.parametrize("seconds", [0.01, 1_000.0])
def test_jobs_that_wait_are_done_before_the_threads_end(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that computes for long when the others would resume, or not."""
    monkeypatch.setattr(computing, "MAX_SECONDS", seconds)
    loop, jobs = Loop(4), Waiting(4)
    loop.threads.start()
    loop.arrive(*map(jobs.job, range(4)))
    eventually(lambda: sorted(jobs.waits) == [0, 1, 2, 3])
    loop.threads.shutdown(loop.wake)
    for number in range(4):
        jobs.answer(number)
    if seconds < 1:
        eventually(lambda: len(jobs.resumed) == 4)
    for number in range(4):
        jobs.end(number)
    eventually(lambda: sorted(jobs.ended) == [0, 1, 2, 3])
    eventually(lambda: loop.threads._started == 0)


def test_a_report_of_any_other_thread_changes_nothing() -> None:
    about_to_wait()


def wait_a_little() -> None:
    with released():
        time.sleep(SHORT / 5)


def test_many_jobs_of_all_kinds_are_each_done_once(large: Loop) -> None:
    """Jobs that wait, take long or fail, in any order: none is lost, and none is done twice."""
    done: list[int] = []
    kinds: list[Callable[[], None]] = [
        lambda: None,
        about_to_wait,
        lambda: time.sleep(SHORT / 5),
        lambda: time.sleep(3 * serving_threads.LEAD_SECONDS),
        wait_a_little,
    ]

    def job(number: int) -> Job:
        def run() -> None:
            kinds[(number * 7 + number // 5) % 5 if number % 41 else 3]()
            done.append(number)

        return run

    for first in range(0, 1_000, 10):
        large.arrive(*map(job, range(first, first + 10)))
    eventually(lambda: len(done) == 1_000)
    assert sorted(done) == list(range(1_000))
    eventually(lambda: large.threads._busy == 0)
    assert large.threads.waiting == waiting(large) == 0
    assert large.threads._computing.is_free
    assert large.threads._started <= 21
