"""Children that are forked: they share the memory of their parent and import nothing again."""

from __future__ import annotations

import atexit
import ctypes
import gc
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
M_ARENA_MAX = -8
MADV_DONTNEED = 4
STOPPING = (signal.SIGTERM, signal.SIGINT)
POLL_SECONDS = 0.01
NUMERIC_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
ARENAS = "MALLOC_ARENA_MAX"


def use_less_memory() -> None:
    """Set defaults of environment variables, for this process and its children. Many processes and
    threads share the machine already: a pool of numeric threads in each, and an arena of glibc's
    allocator for each thread, only cost memory.

    Call it before numpy is imported and before a thread starts.
    """
    for name in NUMERIC_THREADS:
        os.environ.setdefault(name, "1")
    if ARENAS not in os.environ:
        os.environ[ARENAS] = "2"
        with suppress(AttributeError):  # not glibc
            # The allocator has read the environment when this process began.
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)


@contextmanager
def importing() -> Iterator[None]:
    """Import modules that forks will share. Meanwhile no cycles are collected, which finds none
    and takes a twentieth of the time. What was created stays out of later collections, which
    would copy its pages in each fork."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def release_libraries() -> None:
    """Give back the pages of shared libraries that were read, but not changed: they stay in the
    page cache, and are mapped again when they are read again. The tables that count tokens are
    built from 32 MB of a library that nothing reads later."""
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None, use_errno=True)
    for start, end in _unchanged(Path("/proc/self/smaps").read_text(encoding="utf-8")):
        library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_DONTNEED)


def _unchanged(smaps: str) -> Iterator[tuple[int, int]]:
    """The first and last address of each mapping of a library that is only read or executed, and
    has no changed pages: what the linker has written into others would be lost."""
    for head, fields in re.findall(r"^([0-9a-f]+-.*)\n((?:[A-Z].*\n)+)", smaps, re.MULTILINE):
        addresses, permissions, *_, path = head.split()
        if (
            permissions in ("r--p", "r-xp")
            and ".so" in path
            and re.search(r"^Anonymous: +0 kB$", fields, re.MULTILINE)
        ):
            start, _, end = addresses.partition("-")
            yield int(start, 16), int(end, 16)


class Child:
    """A child process that calls a function and ends. Has the methods of `subprocess.Popen` that a
    parent needs. The parent has one thread when it makes one."""

    def __init__(
        self, name: str, act: Callable[[], object], environment: Mapping[str, str]
    ) -> None:
        """`name` is shown by `ps -o comm`; at most 15 characters. `environment` is added to that
        of the parent. The child has a session of its own."""
        self.returncode: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal to the child must not be taken by the parent's handlers.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        self.pid = os.fork()
        if not self.pid:
            for number in STOPPING:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
            _call_and_exit(name, act, environment)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)

    def poll(self) -> int | None:
        """The exit status; negative for a signal. None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float = math.inf) -> int:
        """The exit status, at the end of the child. Raises `subprocess.TimeoutExpired` after
        `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(POLL_SECONDS)
        return status

    def terminate(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def kill_all(self) -> None:
        """Kill it and its children."""
        # It may not have its session yet, and no children then.
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError):
                kill(self.pid, signal.SIGKILL)
        self.wait()


def _call_and_exit(
    name: str, act: Callable[[], object], environment: Mapping[str, str]
) -> NoReturn:
    """End after `act` as the interpreter does, but return to nothing of the parent, and free no
    objects, which would copy the memory."""
    status: Any = 1
    try:
        os.setsid()
        _set_up(name)
        os.environ.update(environment)
        act()
        status = 0
    except SystemExit as end:
        status = end.code
        if isinstance(status, str):
            print(status, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else int(status is not None))


def _set_up(name: str) -> None:
    """Where the kernel offers it: a name, and SIGTERM when the parent is gone."""
    if sys.platform == "linux":
        process = ctypes.CDLL(None, use_errno=True)
        process.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        process.prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
