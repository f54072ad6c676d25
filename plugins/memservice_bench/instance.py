"""A scratch instance: `memservice serve` with the current settings, but another store and
model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memservice_bench.client import BenchError

START_SECONDS = 60.0
STOP_SECONDS = 30.0
_LISTENING = re.compile(r"http://127\.0\.0\.1:\d+")


@contextmanager
def served(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """The base URL of a server whose store and log are in `folder`. It stops at the end of the
    block."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "serve.log"
    environment = os.environ | {
        "DB_CONNECTION_URI": f"sqlite:///{folder / 'bench.db'}",
        "AUTH_USE_AUTH": "false",
        **settings,
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "memservice", "serve", "--host", "127.0.0.1", "--port", "0"],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield _listening(process, log)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _listening(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if match := _LISTENING.search(log.read_text("utf-8", "replace")):
            return match[0]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise BenchError(f"the scratch instance did not start: see {log}")
