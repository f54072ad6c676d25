"""One thread ends the exchanges with models that take too long, or that nobody waits for."""

from __future__ import annotations

import logging
import multiprocessing
import threading
import time
from collections.abc import Callable

import pytest

from memservice_http import watch
from memservice_http.watch import Watch

LONG = 60.0
"""Seconds that no test waits for."""


class Exchange:
    """An exchange whose connection can be cut off."""

    def __init__(self, seconds: float, is_wanted: Callable[[], bool] | None = None) -> None:
        self.is_cut = threading.Event()
        self.watch = Watch(self.is_cut.set, seconds, is_wanted)

    def ended(self) -> bool:
        return self.is_cut.wait(10)


@pytest.fixture(autouse=True)
def watcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of its own for each test."""
    monkeypatch.setattr(watch, "_watcher", watch._Watcher())


def test_an_exchange_ends_at_its_deadline() -> None:
    exchange = Exchange(0.05)
    assert exchange.ended()
    assert exchange.watch.is_late
    assert not exchange.watch.is_unwanted


def test_a_short_limit_is_enforced_beside_a_long_one() -> None:
    long = Exchange(LONG)
    began = time.monotonic()
    short = Exchange(0.02)
    assert short.ended()
    assert time.monotonic() - began < LONG / 2
    assert not long.is_cut.is_set()
    long.watch.end()


def test_an_exchange_that_is_over_is_not_cut_off() -> None:
    over, late = Exchange(0.05), Exchange(0.1)
    over.watch.end()
    assert late.ended()
    assert not over.is_cut.is_set()
    assert not over.watch.is_late


def test_more_time_is_allowed() -> None:
    extended, late = Exchange(0.05), Exchange(0.1)
    extended.watch.extend(LONG)
    assert late.ended()
    assert not extended.is_cut.is_set()
    extended.watch.end()


def test_an_unwanted_answer_is_not_waited_for() -> None:
    exchange = Exchange(LONG, lambda: False)
    assert exchange.ended()
    assert exchange.watch.is_unwanted
    assert not exchange.watch.is_late


def test_a_caller_that_fails_does_not_end_the_limits_of_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> bool:
        raise OSError("the connection of the caller is in an unknown state")

    with caplog.at_level(logging.ERROR):
        failing, unwanted = Exchange(LONG, fail), Exchange(LONG, lambda: False)
        assert unwanted.ended()
        late = Exchange(0.05)
        assert late.ended()
    assert not failing.is_cut.is_set()
    assert caplog.text.count("whether an answer is still wanted is unknown") == 1
    failing.watch.end()


def test_the_thread_wakes_up_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(watch, "CHECK_SECONDS", 0.01)
    Exchange(LONG).watch.end()
    deadline = time.monotonic() + 10
    while watch._watcher._wakes < float("inf"):
        assert time.monotonic() < deadline, "the thread does not wait for the next exchange"
        time.sleep(0.01)
    assert Exchange(0.05).ended()


# Python 3.12 and later warn of every fork beside a thread.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_has_a_thread_of_its_own() -> None:
    Exchange(LONG).watch.end()
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=_end_one_exchange)
    child.start()
    child.join(20)
    assert child.exitcode == 0


def _end_one_exchange() -> None:
    if not Exchange(0.05).ended():
        raise SystemExit("no deadline is enforced in a forked process")
