"""A process that has imported the product, and forks once for each run of `memservice`.

Run as a program: `fork_server.py DESCRIPTOR`. The descriptor is one end of a socket pair. Each
message on it is a `Run` as JSON, with four descriptors: the run's standard streams and a pipe. The
pipe gets a line with the process id, and at the end of the process a line with its exit status.

A fork has its own working directory, environment, session, and standard streams. So only the
imports differ from a new interpreter. `comm` in /proc names what a fork runs.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NoReturn, TypedDict

MAX_MESSAGE_BYTES = 1 << 18
MAX_DESCRIPTORS = 1024
MAX_PYTEST_SECONDS = 800.0
TESTS = str(Path(__file__).resolve().parents[2])
PR_SET_NAME = 15


class Run(TypedDict):
    command: list[str]
    """The command's path, or `-c` and a script, and the arguments. Or an interpreter, `-P`, `-m`
    and a module, for the process of a reasoner."""
    folder: str
    environment: dict[str, str]


class RemoteFork:
    """A process that the fork server forked for another one, with methods of `subprocess.Popen`."""

    def __init__(self, command: Sequence[str], report: int) -> None:
        self.args = list(command)
        self.returncode: int | None = None
        self._report = os.fdopen(report)
        self.pid = int(self._report.readline())
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        with self._lock:
            return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit status; negative for a signal."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._lock:
                status = self._wait(0.05)
            if status is not None:
                return status
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)

    def _wait(self, seconds: float) -> int | None:
        if self.returncode is None and select.select([self._report], [], [], seconds)[0]:
            # An empty line: the fork server was killed, and its forks may run on.
            self.returncode = int(self._report.readline() or -signal.SIGKILL)
            self._report.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def send_run(
    control: socket.socket,
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    streams: Sequence[int],
) -> int:
    """Ask the server for a fork with these standard streams, as descriptors. Returns the
    descriptor of its report."""
    run: Run = {
        "command": list(command),
        "folder": str(folder),
        "environment": dict(environment),
    }
    read, write = os.pipe()
    try:
        socket.send_fds(control, [json.dumps(run).encode()], [*streams, write])
    finally:
        os.close(write)
    return read


@cache
def asking() -> tuple[socket.socket, socket.socket]:
    """A connection by which forks ask for further forks: the server's end, and theirs."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class ForkedReasoner(RemoteFork):
    """The process of a reasoner that only computes. It is forked by the server: the process that
    asks for it has threads, whose locks a fork would copy. `control`: a connection to the server,
    for a process that it has not forked itself."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        control: socket.socket | None = None,
    ) -> None:
        (its_stdin, stdin), (stdout, its_stdout) = os.pipe(), os.pipe()
        try:
            streams = (its_stdin, its_stdout, 2)
            control = control or asking()[1]
            report = send_run(control, command, Path.cwd(), environment, streams)
        finally:
            os.close(its_stdin)
            os.close(its_stdout)
        super().__init__(command, report)
        self.stdin = os.fdopen(stdin, "wb", buffering=0)
        self.stdout = os.fdopen(stdout, "rb", buffering=0)


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    # The folder of the tests is not to be on the path of what is forked.
    sys.path.append(TESTS)
    from support.processes.preloading import preload

    sys.path.remove(TESTS)
    preload()
    fork_children()
    gc.collect()
    gc.freeze()
    run = wait_for_run(control)
    if run is not None:
        run_and_exit(lambda: become_command(run))


def fork_children() -> None:
    """Let what this process forks start its own children as forks, too."""
    from memservice.cli import plugins_check
    from memservice.reasoning.apart import reasoner

    reasoner._started = ForkedReasoner  # type: ignore[assignment]
    plugins_check._run_pytest = fork_pytest


def wait_for_run(control: socket.socket) -> Run | None:
    """Fork for each message. Returns the run in its process, and None here after the last. What
    still runs then is ended: nothing else would end it after an interrupted test run."""
    reports: dict[int, int] = {}
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    forks, their_end = asking()
    while True:
        readable, _, _ = select.select([control.fileno(), forks.fileno(), ended], [], [])
        if ended in readable:
            os.read(ended, MAX_MESSAGE_BYTES)
            report_ended(reports)
        for connection in (control, forks):
            if connection.fileno() not in readable:
                continue
            message, descriptors, _, _ = socket.recv_fds(connection, MAX_MESSAGE_BYTES, 4)
            if not message:
                end_all(reports)
                return None
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                set_up_fork()
                os.setsid()
                for number, descriptor in enumerate(descriptors[:3]):
                    os.dup2(descriptor, number)
                close_others([their_end.fileno()])
                run: Run = json.loads(message)
                return run
            *streams, reports[pid] = descriptors
            for stream in streams:
                os.close(stream)
            write_line(reports[pid], pid)


def close_others(remaining: Iterable[int]) -> None:
    """Close all descriptors but these and the standard streams."""
    first = 3
    for descriptor in (*sorted(remaining), MAX_DESCRIPTORS):
        os.closerange(first, descriptor)
        first = descriptor + 1


def report_ended(reports: dict[int, int]) -> None:
    for pid in list(reports):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            report = reports.pop(pid)
            write_line(report, os.waitstatus_to_exitcode(status))
            os.close(report)


def end_all(pids: Iterable[int]) -> None:
    """Each has a session of its own, or gets one soon. The processes of a server end with it."""
    for pid in pids:
        for kill in (os.kill, os.killpg):
            with suppress(ProcessLookupError):
                kill(pid, signal.SIGKILL)


def write_line(descriptor: int, number: int) -> None:
    with suppress(BrokenPipeError):  # the test has ended
        os.write(descriptor, f"{number}\n".encode())


def set_up_fork() -> None:
    """Signals as a new interpreter has them."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def become_command(run: Run) -> None:
    import gunicorn.config

    from memservice.cli import main as command

    os.chdir(run["folder"])
    # Its default is the working directory of the process that imports it.
    gunicorn.config.Chdir.default = os.getcwd()
    set_environment(run["environment"])
    sys.path[:0] = [part for part in run["environment"].get("PYTHONPATH", "").split(":") if part]
    if "-m" in run["command"][2:3]:
        from memservice.reasoning.apart import child

        set_name("reasoner")
        sys.argv = run["command"][3:]
        child.main()
        return
    if run["command"][0] == "-c":
        _, script, *arguments = run["command"]
        sys.argv = ["-c", *arguments]
        exec(compile(script, "<script>", "exec"), {"__name__": "__main__"})
        return
    set_name("memservice serv" if "serve" in run["command"] else "memservice work")
    sys.argv = run["command"]
    command()


def set_environment(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # which `preload` has set


def set_name(name: str) -> None:
    """At most 15 characters."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def fork_pytest(arguments: Sequence[str], folder: str) -> subprocess.CompletedProcess[str]:
    """Instead of `plugins_check._run_pytest`: a fork that runs pytest, without its plugins."""
    from memservice.serving.forks import Child

    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:

        def run() -> None:
            os.dup2(output.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            os.chdir(folder)
            # The functions to call at exit are those of the command, and delete its files.
            atexit._clear()
            sys.exit(run_pytest(arguments))

        child = Child("pytest", run, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
        status = child.wait(MAX_PYTEST_SECONDS)
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, status, output.read(), errors.read())


def run_pytest(arguments: Sequence[str]) -> int:
    import pytest

    return int(pytest.main(list(arguments)))


def run_and_exit(function: Callable[[], object]) -> NoReturn:
    """End this process after the function: nothing of the supervisor's may run in its child. To
    free every object, as an interpreter does at its end, would copy all memory of the fork."""
    status: object = 0
    try:
        function()
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
        status = 1
    if isinstance(status, str):
        print(status, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does at its end
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    main()
