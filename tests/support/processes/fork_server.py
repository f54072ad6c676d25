"""A process that has imported the product, and forks once for each run of `memservice`.

Run as a program: `fork_server.py DESCRIPTOR`. The descriptor is one end of a socket pair. Each
message on it is a `Run` as JSON, with four descriptors: the run's standard streams and a pipe. The
pipe gets a line with the process id, and at the end of the process a line with its exit status.

A fork has its own working directory, environment, session, and standard streams. The server and the
worker that `memservice serve` starts are forks, too. So only the imports differ from a new
interpreter. `comm` in /proc names what a fork runs.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
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
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TypedDict

MAX_MESSAGE_BYTES = 1 << 18
MAX_DESCRIPTORS = 1024
MAX_PYTEST_SECONDS = 800.0
PR_SET_NAME = 15
PRELOADED = (
    "gunicorn.app.wsgiapp",
    "gunicorn.glogging",
    "gunicorn.workers.gthread",
    "hypothesis",
    "memservice.cli",
    "memservice.serving.clients",
    "memservice.worker.polling",
    "memservice.worker.retention",
    "memservice_memory",
    "memservice_postgres.storage",
    "pytest",
    "rq",
)


class Run(TypedDict):
    command: list[str]
    """The command's path, or `-c` and a script, and the arguments."""
    folder: str
    environment: dict[str, str]


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    preload()
    run = wait_for_run(control)
    if run is not None:
        run_and_exit(lambda: become_command(run))


def preload() -> None:
    """Import what the command, the server and the worker import, and compile the server's routes.
    Leave nothing open, and leave out prometheus_client, which reads the environment when it is
    imported."""
    from memservice.app import create_app
    from memservice.cli import COMMANDS, plugins_check
    from memservice.compose import open_runtime
    from memservice.domain import tokens
    from memservice.serving.supervisor import Supervisor
    from memservice.settings import load_settings

    commands = {path.partition(":")[0] for path in COMMANDS.values()}
    for module in (*PRELOADED, *(f"memservice.cli.{name}" for name in sorted(commands))):
        importlib.import_module(module)
    share_compiled_rules()
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(
            environ={
                "DB_CONNECTION_URI": f"sqlite:///{folder}/store.db",
                "METRICS_ENABLED": "false",
            }
        )
        create_app(settings)
        runtime = open_runtime(settings)
        runtime.storage.migrate()
        runtime.close()
    tokens.count("")
    assert "prometheus_client" not in sys.modules
    assert threading.active_count() == 1, threading.enumerate()
    Supervisor._spawn = fork_child  # type: ignore[method-assign,assignment]
    plugins_check._run_pytest = fork_pytest
    gc.collect()
    gc.freeze()


def share_compiled_rules() -> None:
    """Compile each route once for all applications of this process: Werkzeug parses it and
    compiles two functions, which takes nine tenths of what it costs to make an application."""
    from werkzeug.routing import Rule

    compile_rule = Rule.compile
    compiled: dict[Hashable, Rule] = {}

    def share(rule: Rule) -> None:
        key = (rule.rule, rule.subdomain, rule.host, rule.merge_slashes)
        if rule.defaults or key not in compiled:
            compile_rule(rule)
            if not rule.defaults:
                compiled[key] = rule
            return
        other = compiled[key]
        rule._parts, rule._trace = list(other._parts), list(other._trace)
        rule._converters = dict(other._converters)
        rule.arguments |= other.arguments
        for name in ("_build", "_build_unknown"):
            setattr(rule, name, getattr(other, name).__func__.__get__(rule, None))

    Rule.compile = share  # type: ignore[method-assign,assignment]


def wait_for_run(control: socket.socket) -> Run | None:
    """Fork for each message. Returns the run in its process, and None here after the last. What
    still runs then is ended: nothing else would end it after an interrupted test run."""
    reports: dict[int, int] = {}
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    while True:
        readable, _, _ = select.select([control.fileno(), ended], [], [])
        if ended in readable:
            os.read(ended, MAX_MESSAGE_BYTES)
            report_ended(reports)
        if control.fileno() in readable:
            message, descriptors, _, _ = socket.recv_fds(control, MAX_MESSAGE_BYTES, 4)
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
                os.closerange(3, MAX_DESCRIPTORS)
                run: Run = json.loads(message)
                return run
            *streams, reports[pid] = descriptors
            for stream in streams:
                os.close(stream)
            write_line(reports[pid], pid)


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
    from memservice.cli import main as command

    os.chdir(run["folder"])
    set_environment(run["environment"])
    sys.path[:0] = [part for part in run["environment"].get("PYTHONPATH", "").split(":") if part]
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


class Fork:
    """A forked child, as `subprocess.Popen` shows one to the supervisor."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float = 60.0) -> int:
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.005)
        return status

    def terminate(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def fork_child(
    supervisor: Any, command: Sequence[str], more: Mapping[str, str], pass_fds: Sequence[int] = ()
) -> Fork:
    """Instead of `Supervisor._spawn`: a fork that runs the command."""
    from memservice.serving import supervisor as product

    environment = product.LESS_MEMORY | dict(supervisor._plan.environment) | dict(more)
    sys.stdout.flush()
    ready, is_ready = os.pipe()
    pid = os.fork()
    if pid:
        # As `subprocess.Popen`, return when the child has its session, by which it can be killed.
        os.close(is_ready)
        os.read(ready, 1)
        os.close(ready)
        return Fork(pid)
    set_up_fork()
    os.setsid()
    product._end_with_parent()
    for descriptor in range(3, MAX_DESCRIPTORS):
        if descriptor not in pass_fds:
            with suppress(OSError):
                os.close(descriptor)
    set_environment(environment)
    module, sys.argv = command[2], ["memservice", *command[3:]]
    if module == "gunicorn":
        run_and_exit(run_gunicorn)
    from memservice.cli import main as memservice

    set_name("memservice work")
    run_and_exit(memservice)


def run_gunicorn() -> None:
    import gunicorn.config
    from gunicorn.app.wsgiapp import run

    set_name("gunicorn")
    # Its default is the working directory of the process that imports it.
    gunicorn.config.Chdir.default = os.getcwd()
    sys.exit(run())


def fork_pytest(arguments: Sequence[str], folder: str) -> subprocess.CompletedProcess[str]:
    """Instead of `plugins_check._run_pytest`: a fork that runs pytest, without its plugins."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            os.dup2(output.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            os.chdir(folder)
            os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            # The functions to call at exit are those of the command, and delete its files.
            atexit._clear()
            run_and_exit(lambda: sys.exit(run_pytest(arguments)))
        status = Fork(pid).wait(MAX_PYTEST_SECONDS)
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
