"""Processes of pytest-xdist that are forks of the main process of a test run.

pytest-xdist starts each process as a new interpreter, which imports the test files and all that
they import: 14 s of CPU for a process of a whole run. A fork has them from the beginning.
"""

from __future__ import annotations

import ast
import atexit
import gc
import os
import signal
import sys
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from execnet import gateway_io
from execnet.gateway_base import Popen2IO

from support.processes.fork_server import run_and_exit

if TYPE_CHECKING:
    from execnet.gateway_base import ExecModel
    from execnet.xspec import XSpec

_prepared: deque[tuple[int, int, int]] = deque()
"""Process ids of forks that wait for a gateway, and the descriptors of their input and output."""


class ForkedIO(Popen2IO):
    """The connection to a fork, with the methods of `Popen2IOMaster`."""

    def __init__(self, pid: int, stdin: int, stdout: int, execmodel: ExecModel) -> None:
        super().__init__(os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb"), execmodel)
        self._pid = pid

    def wait(self) -> int | None:
        with suppress(ChildProcessError):
            return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return None

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)


def fork_workers(count: int) -> None:
    """Fork this process, and let pytest-xdist use the forks for the gateways that it opens next.
    Those after them, which replace crashed processes, are new interpreters. Call this before there
    is a gateway: a fork would copy the locks of its threads."""
    create_io = gateway_io.create_io

    def forked_io(spec: XSpec, execmodel: ExecModel) -> Any:
        if not (spec.popen and _prepared):
            return create_io(spec, execmodel)
        return ForkedIO(*_prepared.popleft(), execmodel)

    gc.collect()
    gc.freeze()
    sys.stdout.flush()
    sys.stderr.flush()
    _prepared.extend(_fork() for _ in range(count))
    gateway_io.create_io = forked_io


def _fork() -> tuple[int, int, int]:
    (its_stdin, stdin), (stdout, its_stdout) = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        for _, *descriptors in _prepared:
            _close(*descriptors)
        os.dup2(its_stdin, 0)
        os.dup2(its_stdout, 1)
        _close(its_stdin, stdin, its_stdout, stdout)
        run_and_exit(_serve)
    _close(its_stdin, its_stdout)
    return pid, stdin, stdout


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _serve() -> None:
    """What execnet lets a new interpreter do: `exec(eval(sys.stdin.readline()))`."""
    atexit._clear()  # what is registered belongs to the main process
    sys.argv = ["-c"]
    sys.stdout = os.fdopen(1, "w", closefd=False)
    line = bytearray()
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    if line:  # else the main process ended before it opened a gateway
        exec(ast.literal_eval(line.decode()), {"__name__": "__main__"})
