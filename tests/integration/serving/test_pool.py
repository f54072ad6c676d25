"""The pool of forked workers: they are replaced when they die, and drained or ended on signals."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.processes.processes import below, eventually, send

SCRIPT = """
import os, sys, threading, time
from pathlib import Path
from memservice.domain.errors import ConfigurationError, Unavailable
from memservice.serving.pool import Pool

def work(stop):
    Path(f"started-{os.getpid()}").touch()
    WORK
    Path(f"ended-{os.getpid()}").touch()

sys.exit(Pool(NUMBER, work, once=ONCE).run())
"""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(work: str, number: int = 2, *, once: bool = False) -> subprocess.Popen[str]:
        script = (
            SCRIPT.replace("WORK", work).replace("NUMBER", str(number)).replace("ONCE", str(once))
        )
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", script], cwd=tmp_path, stderr=subprocess.PIPE, text=True
            )
        )
        return started[-1]

    yield run
    for pool in started:
        for pid in [*below(pool.pid), pool.pid] if pool.poll() is None else []:
            send(pid, signal.SIGKILL)
        pool.communicate(timeout=20)


def marks(folder: Path, kind: str) -> int:
    return len(list(folder.glob(f"{kind}-*")))


def test_each_process_works_and_drains_at_the_first_signal(start: Start, tmp_path: Path) -> None:
    pool = start("stop.wait()", 3)
    eventually(lambda: marks(tmp_path, "started") == 3)
    pool.terminate()
    assert pool.wait(20) == 0
    assert marks(tmp_path, "ended") == 3


def test_the_second_signal_ends_them_at_once(start: Start, tmp_path: Path) -> None:
    pool = start("stop.wait(); time.sleep(60)")
    eventually(lambda: marks(tmp_path, "started") == 2)
    pool.terminate()
    time.sleep(0.5)
    assert pool.poll() is None
    pool.terminate()
    assert pool.wait(30) == 128 + signal.SIGTERM
    assert marks(tmp_path, "ended") == 0


def test_a_process_that_dies_is_replaced(start: Start, tmp_path: Path) -> None:
    pool = start("stop.wait()", 1)
    eventually(lambda: marks(tmp_path, "started") == 1)
    (child,) = below(pool.pid)
    send(child, signal.SIGKILL)
    eventually(lambda: marks(tmp_path, "started") == 2)
    pool.terminate()
    assert pool.wait(20) == 0


def test_with_once_processes_are_not_replaced_and_the_worst_status_is_returned(
    start: Start, tmp_path: Path
) -> None:
    assert start("pass", once=True).wait(20) == 0
    assert marks(tmp_path, "ended") == 2
    failing = start("raise Unavailable('Redis is away')", 1, once=True)
    _, errors = failing.communicate(timeout=20)
    assert (failing.returncode, errors) == (1, "memservice: Redis is away\n")


def test_a_process_that_cannot_start_is_not_restarted(start: Start, tmp_path: Path) -> None:
    pool = start("raise ConfigurationError('there is no such storage')", 1)
    _, errors = pool.communicate(timeout=20)
    assert (pool.returncode, errors) == (1, "memservice: there is no such storage\n")
    assert marks(tmp_path, "started") == 1
