"""Running `memservice` as an operator does: the installed command, in a directory of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from support.clients.server import MEMSERVICE, environment

Run = Callable[..., subprocess.CompletedProcess[str]]


FORKS = """
import gc, json, os, sys

import memservice_memory, memservice_sqlite.storage, memservice_sql.migrating  # what most commands import
from memservice import app, plugins
from memservice.cli import main

plugins.load_plugins()
gc.freeze()
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(child, flush=True)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
else:
    sys.exit()

os.setsid()
for number, name in ((0, os.devnull), (1, asked["stdout"]), (2, asked["stderr"])):
    os.dup2(os.open(name, os.O_RDONLY if number == 0 else os.O_WRONLY), number)
os.chdir(asked["cwd"])
os.environ.clear()
os.environ.update(asked["environment"])
sys.path[1:1] = os.environ.get("PYTHONPATH", "").split(os.pathsep) if "PYTHONPATH" in os.environ else []
sys.argv = asked["command"]
sys.exit(main())
"""
"""A process that has imported the command, and runs it in a copy of itself for each line: to start Python and to import everything
takes a second of CPU, which is most of what a command takes."""
STARTED_ANEW = ("PYTHON", "LC_", "LANG", "TZ", "COVERAGE")
"""How variables begin that Python reads when it starts. A command that is given one, other than PYTHONPATH, has a process of its own."""


class Forks:
    """Runs `memservice` as `subprocess.run` would, from a process that has imported it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(), bufsize=1
        )

    def run(self, arguments: Sequence[str], folder: Path, given: Mapping[str, str], seconds: float) -> subprocess.CompletedProcess[str]:
        command = [str(MEMSERVICE), *arguments]
        with tempfile.TemporaryDirectory() as kept:
            said = [Path(kept, name) for name in ("stdout", "stderr")]
            for path in said:
                path.touch()
            asked = {"command": command, "cwd": str(folder), "environment": given, "stdout": str(said[0]), "stderr": str(said[1])}
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(asked) + "\n")
            child = self._told()
            ended = threading.Timer(seconds, os.killpg, (child, signal.SIGKILL))
            ended.start()
            status = self._told()
            ended.cancel()
            stdout, stderr = (path.read_text(encoding="utf-8") for path in said)
        if status == -signal.SIGKILL:
            raise subprocess.TimeoutExpired(command, seconds, stdout, stderr)
        return subprocess.CompletedProcess(command, status, stdout, stderr)

    def _told(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=20)


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    started = Forks()
    yield started
    started.close()


@pytest.fixture
def memservice(tmp_path: Path, forks: Forks) -> Run:
    """`memservice("db", "upgrade", DB_SYNCHRONOUS="normal")`, in `tmp_path`. No command may show a traceback."""

    def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        given = environment(**settings)
        if any(name != "PYTHONPATH" and name.startswith(STARTED_ANEW) for name in settings):
            command = [str(MEMSERVICE), *arguments]
            done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=60, check=False)
        else:
            done = forks.run(arguments, tmp_path, given, 60)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


@pytest.fixture
def install(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """`install("name", source)` makes a plugin as an installed distribution has it; returns the PYTHONPATH that shows it."""
    folder = tmp_path_factory.mktemp("site")

    def make(name: str, source: str) -> str:
        (folder / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[memservice]\n{name} = {name}\n", encoding="utf-8")
        return str(folder)

    return make
