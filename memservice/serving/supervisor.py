"""A small supervisor: one gunicorn and one worker, as forked children.

The worker is started again if it dies. If gunicorn dies, everything ends. SIGTERM and SIGINT drain
both. The children end by themselves if the supervisor is killed.
"""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FrameType

from msgspec import Struct

from memservice.domain.errors import ConfigurationError
from memservice.serving.children import RestartPause
from memservice.serving.forks import Child
from memservice.serving.start_pipe import StartPipe

log = logging.getLogger("memservice.supervisor")

BACKLOG = 2048


class Plan(Struct, frozen=True):
    workers: int
    threads: int
    graceful_seconds: float
    work: Callable[[], object] | None
    """What the worker does, in a process of its own; None: no worker."""
    environment: Mapping[str, str]
    """What is added to the environment for both."""
    server_environment: Mapping[str, str]
    """What is added to it for the server alone."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket that the children inherit. From now on connections wait instead of being
    refused."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port} ({error.strerror or error}): choose another "
            "--host or --port"
        ) from error
    listener.set_inheritable(True)
    return listener


class Supervisor:
    def __init__(self, listener: socket.socket, plan: Plan) -> None:
        self._listener = listener
        self._plan = plan
        self._stop = threading.Event()
        self._server: Child | None = None
        self._worker: Child | None = None
        self._start_pipe = StartPipe()
        self._pause = RestartPause()
        self._started = 0.0
        self._due = 0.0

    def await_signals(self) -> None:
        """From now on, SIGTERM and SIGINT are for `run`, also those that come before it."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._told_to_stop)

    def start(self) -> None:
        """Start the server. Its processes load while the store is opened and migrated, and wait
        until `run` is called."""
        self._server = Child(
            "gunicorn",
            self._serve,
            {
                **self._plan.environment,
                **self._plan.server_environment,
                **self._start_pipe.environment(),
            },
        )

    def abort(self) -> None:
        """The start failed: end what was started, at once. It serves nobody yet, and may still wait
        for what will never be."""
        self._listener.close()
        if self._server is not None:
            self._server.kill_all()
        self._start_pipe.close()

    def run(self) -> int:
        """Run until told to stop, or until the server dies; returns the exit status."""
        server = self._server
        assert server is not None, "start it first"
        self._start_pipe.close()
        status = 0
        while not self._stop.is_set():
            if server.poll() is not None:
                log.error("the server ended with status %s", server.returncode)
                status = 1
                break
            if self._plan.work is not None:
                self._restart_worker(self._plan.work)
            self._stop.wait(0.2)
        self._listener.close()
        children = [child for child in (server, self._worker) if child is not None]
        self._end(children)
        return status or (0 if server.returncode in (0, None, -signal.SIGTERM) else 1)

    def _told_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._stop.set()

    def _serve(self) -> None:
        """In a process of its own: gunicorn's main process."""
        from gunicorn import __main__ as program

        self._start_pipe.keep_read_end()
        plan = self._plan
        sys.argv = [
            *(program.__file__, "--config", "python:memservice.serving.gunicorn_config"),
            *("--bind", f"fd://{self._listener.fileno()}"),
            *("--workers", str(plan.workers), "--threads", str(plan.threads)),
            *("--graceful-timeout", str(int(plan.graceful_seconds)), "memservice.serving.wsgi:app"),
        ]
        program.run(prog="gunicorn")

    def _restart_worker(self, work: Callable[[], object]) -> None:
        now = time.monotonic()
        if self._worker is not None and self._worker.poll() is not None:
            pause = self._pause.after(now - self._started)
            log.error(
                "the worker ended with status %s; starting it again in %.1f s",
                self._worker.returncode,
                pause,
            )
            self._worker, self._due = None, now + pause
        if self._worker is None and now >= self._due:
            act = partial(self._run_worker, work)
            self._worker, self._started = (
                Child("memservice work", act, self._plan.environment),
                now,
            )

    def _run_worker(self, work: Callable[[], object]) -> None:
        self._listener.close()  # for this process only
        work()

    def _end(self, children: Sequence[Child]) -> None:
        """Let the children drain; kill those that take longer than they may."""
        for child in children:
            if child.poll() is None:
                child.terminate()
        deadline = time.monotonic() + self._plan.graceful_seconds + 5
        for child in children:
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.error(
                    (
                        "process %s did not end in time and is killed; its work is taken up "
                        "again at the next start"
                    ),
                    child.pid,
                )
                child.kill()
                child.wait()
