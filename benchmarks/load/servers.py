"""The servers that are measured: started on loopback, and stopped."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from flask import Flask

from memservice.compose import open_runtime
from memservice.runtime import Runtime
from memservice.serving.forks import NUMERIC_THREADS
from memservice.serving.logs import set_up_logging
from memservice.settings import Settings, load_settings

START_SECONDS = 60.0
STOP_SECONDS = 30.0
FLOOR = ("-k", "gthread", "--workers", "2", "--threads", "8", "--log-level", "warning")


@dataclass(frozen=True, slots=True)
class Server:
    """A server and where its processes are. None: not on this machine, so not measured."""

    url: str
    pid: int | None
    start_seconds: float = 0.0
    """From the start of the process to its first answer."""


def hello() -> Flask:
    """The bare application whose cost is the floor."""
    app = Flask("hello")

    @app.get("/")
    def answer() -> dict[str, str]:
        return {"hello": "world"}

    return app


@contextmanager
def floor() -> Iterator[Server]:
    port = _free_port()
    command = [sys.executable, "-m", "gunicorn", *FLOOR, "-b", f"127.0.0.1:{port}"]
    command += ["benchmarks.load.servers:hello()"]
    with _running(command, port, "/", {}) as server:
        yield server


@contextmanager
def embedder(dimension: int) -> Iterator[dict[str, str]]:
    """A stand-in for a remote embedding model, and the settings that use it. Nothing is derived, so
    that a worker only embeds."""
    port = _free_port()
    command = [sys.executable, "-m", "benchmarks.load.embedder", str(port)]
    # The processors are for the servers that are measured.
    one_thread = dict.fromkeys(NUMERIC_THREADS, "1")
    with _running(command, port, "/", one_thread) as server:
        model = "EMBEDDING_MODEL_CONFIG__"
        yield {
            "EMBEDDER": "openai",
            f"{model}MODEL": f"stand-in-{dimension}",
            f"{model}DIMENSIONS_MODE": "always",
            f"{model}OVERRIDES__BASE_URL": f"{server.url}/v1",
            f"{model}OVERRIDES__API_KEY": "none",
            "EMBEDDING_VECTOR_DIMENSIONS": str(dimension),
            "DERIVER_ENABLED": "false",
            "SUMMARY_ENABLED": "false",
        }


def embed_pending(db: str, options: Mapping[str, str]) -> None:
    """Do the pending background work of a store."""
    subprocess.run(
        [sys.executable, "-m", "memservice", "worker", "--burst"],
        env={**os.environ, "DB_CONNECTION_URI": db, **options},
        cwd="/",
        check=True,
        capture_output=True,
    )


@contextmanager
def service(
    db: str, options: Mapping[str, str], workers: int, *, background: bool = False
) -> Iterator[Server]:
    """`memservice serve` with these settings and no file of settings. `background`: with a
    worker."""
    port = _free_port()
    command = [sys.executable, "-m", "memservice", "serve", "--port", str(port)]
    command += ["--workers", str(workers), *([] if background else ["--no-worker"])]
    environment = {"DB_CONNECTION_URI": db, **options}
    with _running(command, port, "/health", environment, Path("/")) as server:
        yield server


@contextmanager
def opened(db: str, options: Mapping[str, str], *, migrate: bool = False) -> Iterator[Runtime]:
    """A store opened in this process, with these settings and no file of settings. `migrate`
    prepares an empty one."""
    settings = load_settings(environ={"DB_CONNECTION_URI": db, **options}, cwd=Path("/"))
    with _logging(settings), closing(open_runtime(settings, "api")) as runtime:
        if migrate:
            runtime.storage.migrate()
        yield runtime


@contextmanager
def _logging(settings: Settings) -> Iterator[None]:
    """The line of each request is written, as by a server, but nobody reads it."""
    switches = logging.logThreads, logging.logMultiprocessing
    loggers = [logging.getLogger(), logging.getLogger("memservice")]
    levels, handlers = [logger.level for logger in loggers], list(loggers[0].handlers)
    with open(os.devnull, "w") as nowhere:
        loggers[0].handlers.clear()  # else they would be closed
        with redirect_stderr(nowhere):
            set_up_logging(settings)
        try:
            yield
        finally:
            for handler in loggers[0].handlers:
                handler.flush()
            logging.logThreads, logging.logMultiprocessing = switches
            loggers[0].handlers[:] = handlers
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


@contextmanager
def _running(
    command: Sequence[str],
    port: int,
    path: str,
    environment: Mapping[str, str],
    folder: Path | None = None,
) -> Iterator[Server]:
    with tempfile.TemporaryFile() as log:
        began = time.monotonic()
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, cwd=folder, stdout=log, stderr=log
        )
        url = f"http://127.0.0.1:{port}"
        try:
            _wait(process, url + path, log)
            yield Server(url, process.pid, time.monotonic() - began)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: IO[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        if process.poll() is not None:
            log.seek(0)
            output = log.read()[-2_000:].decode(errors="replace")
            raise RuntimeError(f"the server ended with status {process.returncode}: {output}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def postmaster(db: str) -> int | None:
    """The process id of the database's server; None if there is none on this machine."""
    if not db.startswith("postgres"):
        return None
    import psycopg
    from sqlalchemy.engine import make_url

    uri = make_url(db).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(uri) as connection:
        stat = Path(f"/proc/{connection.info.backend_pid}/stat")
        return int(stat.read_text().rpartition(")")[2].split()[1]) if stat.exists() else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
