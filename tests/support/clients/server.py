"""`memservice serve` as a process of its own, the way an operator starts it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from support.processes import preloaded
from support.processes.command import MEMSERVICE, environment

START_SECONDS = 60.0
STOP_SECONDS = 45.0


class Server:
    """A started server. `output` and `log` are what it has printed up to now. It writes to files:
    a line that it wrote before it answered is there when the answer is."""

    program = MEMSERVICE

    def __init__(self, folder: Path, *options: str, **settings: str) -> None:
        self.folder = folder
        self.uri = settings.get("DB_CONNECTION_URI", f"sqlite:///{folder}/memservice.db")
        self._output, self._log = _file_of(self), _file_of(self)
        self.process = preloaded.start(
            ["serve", "--port", "0", *options],
            folder,
            environment(**settings),
            self._output,
            program=self.program,
            errors=self._log,
        )

    @property
    def output(self) -> str:
        return _text(self._output)

    @property
    def log(self) -> str:
        return _text(self._log)

    @property
    def url(self) -> str:
        """Where it listens, once it answers. Raises with what it said if it does not start."""
        deadline = time.monotonic() + START_SECONDS
        while (match := _LISTENING.search(self.output)) is None:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(
                    "the server did not start (status "
                    f"{self.process.poll()}):\n{self.output}{self.log}"
                )
            time.sleep(0.05)
        return match[1]

    def wait_until_healthy(self) -> None:
        """Until it answers. Raises with what it said if it does not."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=10) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise RuntimeError(
                        "the server does not answer (status "
                        f"{self.process.poll()}):\n{self.output}{self.log}"
                    ) from error
            time.sleep(0.1)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop it, and wait. Returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        return status


_LISTENING = re.compile(r"^listening +(http://\S+)\s", re.M)


def _file_of(owner: object) -> IO[bytes]:
    """A temporary file that is closed with its owner. Several processes append to it."""
    file = tempfile.TemporaryFile("a+b")  # noqa: SIM115  # closed by the finalizer
    weakref.finalize(owner, file.close)
    return file


def _text(file: IO[bytes]) -> str:
    number = file.fileno()
    return os.pread(number, os.fstat(number).st_size, 0).decode("utf-8", "replace")


@contextmanager
def serving(folder: Path, *options: str, **settings: str) -> Iterator[Server]:
    """A healthy server in `folder` (its store is `memservice.db` there), stopped at the end, which
    has to be clean."""
    with running(Server(folder, *options, **settings)) as server:
        yield server


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """A started server, once it is healthy, stopped at the end, which has to be clean."""
    try:
        server.wait_until_healthy()
        yield server
    finally:
        status = server.stop()
    assert status == 0, f"the server ended with {status}:\n{server.log}"
    assert "Traceback" not in server.log, server.log
