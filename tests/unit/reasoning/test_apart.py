"""Reasoners that only compute are asked in processes of their own: what they make of a request is
the same, and nothing waits for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memservice.reasoning.apart import reasoner as apart
from memservice.reasoning.apart.reasoner import (
    Apart,
    ProcessEnded,
    Stopped,
    TookTooLong,
    location_of,
)
from memservice.reasoning.apart.wire import encoded
from memservice.spi.capabilities import Capability
from memservice.spi.reasoner import (
    AnswerRequest,
    ConsolidateRequest,
    Derived,
    DeriveRequest,
    SummarizeRequest,
)
from memservice.spi.waiting import on_wait
from memservice.testing.reasoner import FACTS, NOW, ReasonerContract, conclusion, say
from memservice_extractive import memservice_reasoners
from memservice_extractive.reasoner import ExtractiveReasoner
from support.processes import preloaded
from support.reasoning import command_reasoner

pytestmark = pytest.mark.slow

PATIENCE = 60.0
LONE = "I own \ud800 a lone surrogate."
"""As JSON may hold it."""


in_a_new_interpreter = apart._started


def start(stop: threading.Event, seconds: float = 1.0) -> Apart:
    location = location_of(command_reasoner.PROVIDER)
    assert location == "support.reasoning.command_reasoner:opens"
    return Apart(
        command_reasoner.PROVIDER, location, seconds, stop, command_reasoner.CommandReasoner
    )


@pytest.fixture(scope="module", autouse=True)
def forked_reasoners() -> Iterator[None]:
    """Their processes are forks, but for that of the test of a new interpreter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apart, "_started", preloaded.start_reasoner)
        yield


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def reasoner(stop: threading.Event) -> Iterator[Apart]:
    opened = start(stop)
    yield opened
    opened.close()


def ask(reasoner: Apart, *contents: str) -> list[str]:
    derived = reasoner.derive(
        DeriveRequest("alice", [say(n, "alice", content) for n, content in enumerate(contents, 1)])
    )
    return [statement.content for statement in derived.statements]


@pytest.fixture(scope="module")
def extractive() -> Iterator[Apart]:
    (provider,) = memservice_reasoners()
    location = location_of(provider)
    assert location is not None
    opened = Apart(provider, location, 30, threading.Event(), ExtractiveReasoner)
    yield opened
    opened.close()


class TestExtractive(ReasonerContract):
    @pytest.fixture
    def reasoner(self, extractive: Apart) -> Apart:
        return extractive


def test_results_equal_those_of_the_same_process(extractive: Apart) -> None:
    here = ExtractiveReasoner()
    utterances = [
        say(n, author, fact[0])
        for n, (author, fact) in enumerate(
            zip(("alice", "bob", "alice"), FACTS.values(), strict=True)
        )
    ]
    derive = DeriveRequest(
        "alice", [*utterances, say(9, "alice", LONE)], "brief", {"alice": "Älice"}
    )
    assert extractive.derive(derive) == here.derive(derive)
    assert extractive.derive(derive).statements != []
    summarize = SummarizeRequest("short", utterances, None, 200)
    assert extractive.summarize(summarize) == here.summarize(summarize)
    rows = [
        conclusion(n, f"I live in {city}.", times_derived=n)
        for n, city in enumerate(("Oslo", "Oslo", "Rome", "Rome"))
    ]
    consolidate = ConsolidateRequest("alice", "alice", rows, ["Name: Alice"], asked_at=NOW)
    # But for tuples, which are lists in JSON.
    assert encoded(extractive.consolidate(consolidate)) == encoded(here.consolidate(consolidate))
    assert extractive.consolidate(consolidate).superseded != []


def test_one_process_serves_all_requests_and_starts_with_the_first(reasoner: Apart) -> None:
    assert reasoner._idle == []
    (pid,) = {*ask(reasoner, "pid"), *ask(reasoner, "pid", "pid")}
    assert int(pid) != os.getpid()
    assert list(reasoner.answer(AnswerRequest("who?", None, []))) == [str(os.getpid())], (
        "chat is answered here"
    )
    assert (
        reasoner.summarize(SummarizeRequest("short", [say(1, "a", "x")], None, 10)).content
        == "1 messages"
    )


def test_a_thread_reports_that_it_waits_for_the_process(reasoner: Apart) -> None:
    reports: list[str] = []
    on_wait(lambda: reports.append(""))
    ask(reasoner, "pid")
    on_wait(None)
    assert reports == [""]


def test_an_endless_request_is_ended_without_blocking_the_caller(reasoner: Apart) -> None:
    ask(reasoner, "warm")
    ticks: list[float] = []
    over = threading.Event()

    def tick() -> None:
        while not over.wait(0.05):
            ticks.append(time.monotonic())

    clock = threading.Thread(target=tick)
    clock.start()
    try:
        with pytest.raises(TookTooLong, match="1 s of CPU time"):
            ask(reasoner, "loop")
    finally:
        over.set()
        clock.join(PATIENCE)
    assert len(ticks) > 5
    assert ask(reasoner, "I sing.") == ["I sing."], "the next one has a new process"


def test_a_request_that_waits_endlessly_is_ended(
    reasoner: Apart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "WALL_FACTOR", 0.5)
    with pytest.raises(TookTooLong, match="no answer within"):
        ask(reasoner, "sleep 600")


def test_larger_requests_have_more_time(
    stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []

    def answer(self: object, body: bytes, seconds: int, stop: threading.Event) -> dict[str, Any]:
        limits.append(seconds)
        return {"result": {"statements": []}}

    monkeypatch.setattr(apart._Child, "ask", answer)
    reasoner = start(stop, 10)
    for size in (1, 1_000_000, 100_000_000):
        assert reasoner.derive(DeriveRequest("alice", [say(1, "alice", "x" * size)])) == Derived([])
    assert limits == [10, 60, 120]
    reasoner.close()


def test_errors_keep_their_names_and_the_process_continues(reasoner: Apart) -> None:
    (before,) = ask(reasoner, "pid")
    with pytest.raises(Exception, match="it broke") as caught:
        ask(reasoner, "raise it broke")
    assert type(caught.value).__name__ == "ValueError"
    assert ask(reasoner, "pid") == [before]


def test_a_process_that_ends_during_a_request_is_an_error(reasoner: Apart) -> None:
    with pytest.raises(ProcessEnded, match="status 3"):
        ask(reasoner, "end")
    (pid,) = ask(reasoner, "pid")
    os.kill(int(pid), signal.SIGKILL)
    ended_process = reasoner._idle[0]
    deadline = time.monotonic() + PATIENCE
    while ended_process.is_there():
        assert time.monotonic() < deadline
    assert ask(reasoner, "pid") != [pid]


def test_printed_text_is_not_part_of_the_answer(reasoner: Apart) -> None:
    assert ask(reasoner, "print 12345678") == ["print 12345678"]


def test_the_process_has_no_secrets_of_the_environment(
    reasoner: Apart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "_started", in_a_new_interpreter)
    monkeypatch.setenv("AUTH_JWT_SECRET", "very secret")
    assert ask(reasoner, "variable AUTH_JWT_SECRET") == ["unset"]


def test_termination_signals_are_left_to_the_parent(reasoner: Apart) -> None:
    (pid,) = ask(reasoner, "pid")
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(int(pid), number)
    assert ask(reasoner, "pid") == [pid]


def test_a_request_in_progress_at_the_end_gets_a_short_time(
    reasoner: Apart, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(reasoner, "anything")  # its process is there
    monkeypatch.setattr(apart, "LAST_SECONDS", PATIENCE)
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    assert ask(reasoner, "sleep 0.7") == ["sleep 0.7"]
    timer.join(PATIENCE)
    with pytest.raises(Stopped):
        ask(reasoner, "anything more")
    stop.clear()
    monkeypatch.setattr(apart, "LAST_SECONDS", 0.5)
    again = threading.Timer(0.5, stop.set)
    again.start()
    with pytest.raises(Stopped):
        ask(reasoner, "loop")
    again.join(PATIENCE)


def test_concurrent_callers_have_their_own_processes_and_idle_ones_end(
    reasoner: Apart, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = [threading.Thread(target=ask, args=(reasoner, "sleep 1")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    started = list(reasoner._idle)
    assert len(started) == 3
    monkeypatch.setattr(apart, "IDLE_SECONDS", -1.0)
    ask(reasoner, "anything")
    assert len(reasoner._idle) == 1
    assert sum(one.is_there() for one in started) == 1
    reasoner.close()
    assert not any(one.is_there() for one in started)


PARENT = """
import sys, threading
from unit.reasoning.test_apart import ask, start
reasoner = start(threading.Event(), {seconds})
print(*ask(reasoner, "pid"), flush=True)
{then}
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "then",
    ["", 'threading.Thread(target=ask, args=(reasoner, "loop"), daemon=True).start()'],
    ids=["idle", "busy"],
)
def test_no_process_outlives_a_parent_that_is_killed(then: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(then=then, seconds=2)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    pid = int(parent.stdout.readline())
    time.sleep(0.5)
    parent.kill()
    parent.wait(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while is_running(pid):
        assert time.monotonic() < deadline, "it is an orphan"
        time.sleep(0.05)
    parent.stdin.close()
    parent.stdout.close()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return not stat.parent.parent.exists()


def test_reasoners_without_the_capability_run_in_the_same_process() -> None:
    assert (
        location_of(replace(command_reasoner.PROVIDER, capabilities=frozenset({Capability.REMOTE})))
        is None
    )
    assert (
        location_of(
            replace(
                command_reasoner.PROVIDER,
                open=lambda settings, context: command_reasoner.CommandReasoner(),
            )
        )
        is None
    ), "no other process finds it"
