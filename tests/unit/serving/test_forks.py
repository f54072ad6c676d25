"""Forked children: what they begin with, how they end, and what they share."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memservice.serving import forks
from memservice.serving.forks import importing
from support.processes import preloaded

BEGIN = """
import atexit, os, signal, sys, time
from pathlib import Path
from memservice.serving.forks import Child

def run(act):
    return Child("a name", act, {"ADDED": "yes"}).wait(20)
"""

LOOK = """
def heard(number, frame):
    raise AssertionError("the parent's handler")

def look():
    comm = Path("/proc/self/comm").read_text().strip()
    print(comm, os.getsid(0) == os.getpid(), os.environ["ADDED"], flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

signal.signal(signal.SIGTERM, heard)
print(run(look), "ADDED" in os.environ, signal.getsignal(signal.SIGTERM) is heard)
"""

END = """
def fail():
    raise OSError("no")

try:
    print([run(act) for act in (lambda: None, lambda: sys.exit(3), lambda: sys.exit("so"), fail)])
finally:
    print("the parent ends")
"""

AT_EXIT = """
def act():
    atexit.register(print, "told at its end")

print("before, and not printed again")
print(run(act))
"""

KILL_ALL = """
def fork_too():
    Child("another", lambda: time.sleep(60), {})
    os.write(started, b"1")
    time.sleep(60)

has_started, started = os.pipe()
child = Child("a name", fork_too, {})
if sys.argv[1:]:
    os.read(has_started, 1)
child.kill_all()
print(child.returncode)
"""

ARENAS = """
import ctypes, os, sys, threading
from memservice.serving.forks import use_less_memory

use_less_memory()
library, together = ctypes.CDLL(None), threading.Barrier(9)
library.malloc.restype = ctypes.c_void_p

def allocate():
    together.wait()
    library.malloc(5_000)
    together.wait()

threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads:
    thread.start()
together.wait()
together.wait()
library.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(library.fopen(b"arenas.xml", b"w"))
library.malloc_info(0, file)
library.fclose(file)
print(open("arenas.xml").read().count("<heap nr="), os.environ["OPENBLAS_NUM_THREADS"])
"""

RELEASE = """
import re, sys
from pathlib import Path
from memservice.domain import tokens
from memservice.serving.forks import release_libraries

def resident():
    smaps = Path("/proc/self/smaps").read_text()
    return sum(map(int, re.findall(r"bpe\\S*\\.so\\nSize:.*(?:\\n.*){2}\\nRss: +(\\d+) kB", smaps)))

before = tokens.count("axolotls like cold water " * 100), resident()
release_libraries()
print(before[1] > 10_000, resident() < 5_000)
print(tokens.count("axolotls like cold water " * 100) == before[0])
"""

SMAPS = """\
1000-3000 r--p 00000000 08:01 1 /lib/read.so
Size:                  8 kB
Anonymous:             0 kB
4000-5000 r--p 00000000 08:01 1 /lib/linked.so.1
Size:                  4 kB
Anonymous:             4 kB
6000-7000 r-xp 00000000 08:01 1 /lib/read.so
Anonymous:             0 kB
8000-9000 rw-p 00000000 08:01 1 /lib/read.so
Anonymous:             0 kB
a000-b000 r--p 00000000 00:00 0
Anonymous:             0 kB
"""


def output_of(script: str, folder: Path) -> list[str]:
    return preloaded.run_python(BEGIN + script, folder=folder).stdout.splitlines()


@pytest.mark.slow
def test_a_child_has_a_name_a_session_an_environment_and_no_handlers(tmp_path: Path) -> None:
    assert output_of(LOOK, tmp_path) == ["a name True yes", "-15 False True"]


def test_its_exit_status_is_that_of_an_interpreter(tmp_path: Path) -> None:
    result = preloaded.run_python(BEGIN + END, folder=tmp_path)
    assert result.stdout.splitlines() == ["[0, 3, 1, 1]", "the parent ends"]
    first, *traceback, error = result.stderr.splitlines()
    assert first == "so"
    assert traceback
    assert error == "OSError: no"


def test_functions_for_the_end_are_called(tmp_path: Path) -> None:
    lines = ["before, and not printed again", "told at its end", "0"]
    assert output_of(AT_EXIT, tmp_path) == lines


@pytest.mark.parametrize("is_late", [False, True])
def test_it_can_be_killed_with_its_children_at_any_time(tmp_path: Path, is_late: bool) -> None:
    wait = "sys.argv = ['', 'late']\n" if is_late else ""
    assert output_of(wait + KILL_ALL, tmp_path) == ["-9"]


@pytest.mark.parametrize(("own", "expected"), [({}, "2"), ({"OPENBLAS_NUM_THREADS": "3"}, "2")])
def test_threads_share_few_arenas(tmp_path: Path, own: dict[str, str], expected: str) -> None:
    result = run_alone(ARENAS, tmp_path, own)
    assert result.split() == [expected, own.get("OPENBLAS_NUM_THREADS", "1")]


def test_the_operator_may_allow_more_arenas(tmp_path: Path) -> None:
    arenas, _ = run_alone(ARENAS, tmp_path, {"MALLOC_ARENA_MAX": "8"}).split()
    assert int(arenas) > 2


def run_alone(script: str, folder: Path, environment: dict[str, str]) -> str:
    """In a new interpreter, since the allocator of a fork has its arenas."""
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what is mapped")
def test_libraries_that_were_read_are_released_and_read_again(tmp_path: Path) -> None:
    assert run_alone(RELEASE, tmp_path, {}).split() == ["True", "True", "True"]


def test_only_unchanged_pages_of_libraries_are_released() -> None:
    assert list(forks._unchanged(SMAPS)) == [(0x1000, 0x3000), (0x6000, 0x7000)]


@pytest.mark.slow
def test_imports_are_not_collected_and_stay_out_of_later_collections() -> None:
    assert gc.isenabled()
    before = gc.get_freeze_count()
    try:
        with pytest.raises(ImportError), importing():
            assert not gc.isenabled()
            raise ImportError
        assert gc.isenabled()
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()
