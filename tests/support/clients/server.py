"""`memservice serve` as a process of its own, the way an operator starts it."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.processes import preloaded
from support.processes.command import MEMSERVICE, environment

START_SECONDS = 60.0
STOP_SECONDS = 45.0


class Server:
    """A started server. What it prints is kept: `output` and `log`."""

    program = MEMSERVICE

    def __init__(self, folder: Path, *options: str, **settings: str) -> None:
        self.folder = folder
        self.uri = settings.get("DB_CONNECTION_URI", f"sqlite:///{folder}/memservice.db")
        self._lines: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self.process = preloaded.start(
            ["serve", "--port", "0", *options],
            folder,
            environment(**settings),
            program=self.program,
        )
        self._listening = threading.Event()
        self._readers = [
            threading.Thread(target=self._read, args=(name,), daemon=True) for name in self._lines
        ]
        for reader in self._readers:
            reader.start()

    @property
    def output(self) -> str:
        return "".join(self._lines["stdout"])

    @property
    def log(self) -> str:
        return "".join(self._lines["stderr"])

    @property
    def url(self) -> str:
        """Where it listens, once it answers. Raises with what it said if it does not start."""
        deadline = time.monotonic() + START_SECONDS
        while not self._listening.wait(0.1):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(
                    "the server did not start (status "
                    f"{self.process.poll()}):\n{self.output}{self.log}"
                )
        match = re.search(r"^listening +(http://\S+)", self.output, re.M)
        assert match is not None
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
        for reader in self._readers:
            reader.join(30)
        return status

    def _read(self, name: str) -> None:
        stream = getattr(self.process, name)
        for line in stream:
            self._lines[name].append(line)
            if line.startswith("listening"):
                self._listening.set()
        stream.close()


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
