"""Free memory is given back while a process runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import preloaded

GIVE_BACK = """
import ctypes, os, time
from pathlib import Path
from memservice.serving import free_memory

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
SIZE, NUMBER = 20_000, 4_000

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

blocks = [ctypes.c_void_p(library.malloc(SIZE)) for _ in range(NUMBER)]
for block in blocks:
    ctypes.memset(block, 1, SIZE)
for number, block in enumerate(blocks):
    if number % 10:
        library.free(block)
kept = resident()
free_memory.EVERY_SECONDS = 0.01
free_memory.give_back_regularly()
deadline = time.monotonic() + 20
while kept - resident() < SIZE * NUMBER // 2 and time.monotonic() < deadline:
    time.sleep(0.01)
print(kept > SIZE * NUMBER, kept - resident() >= SIZE * NUMBER // 2)
"""

SERVE = """
import threading
from memservice.serving import wsgi
print("free-memory" in [thread.name for thread in threading.enumerate()])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="of glibc only")
def test_what_is_free_between_allocations_is_given_back() -> None:
    # In a new interpreter, whose heap is its own.
    result = subprocess.run(
        [sys.executable, "-c", GIVE_BACK],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == ["True", "True"]


@pytest.mark.slow
def test_a_server_process_does_so(tmp_path: Path) -> None:
    preloaded.run(["db", "upgrade"], tmp_path, {}).check_returncode()
    result = preloaded.run_python(SERVE, folder=tmp_path)
    assert result.stdout.splitlines()[-1:] == ["True"], result.stderr
