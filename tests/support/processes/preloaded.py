"""The `memservice` command in a new process that does not start Python or import the product again.

Both take most of a second of CPU, which is more than most commands take themselves. A process that
has imported the command forks once for each run. The fork has its own working directory,
environment, session, and standard streams, so only imports can differ from a new interpreter.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.clients.server import MEMSERVICE, environment

PROGRAM = """
import gc, json, os, sys

import memservice_hashed.embedder, memservice_memory, memservice_sql.migrating
import memservice_sqlite.storage, memservice_sqlite.vectors
from memservice import app, plugins
from memservice.cli import main

plugins.load_plugins()
gc.freeze()
for line in sys.stdin:
    run = json.loads(line)
    pid = os.fork()
    if not pid:
        break
    print(pid, flush=True)
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
else:
    sys.exit()

os.setsid()
for descriptor, path in enumerate((os.devnull, run["stdout"], run["stderr"])):
    os.dup2(os.open(path, os.O_RDWR), descriptor)
os.chdir(run["folder"])
os.environ.clear()
os.environ.update(run["environment"])
sys.argv = run["command"]
sys.exit(main())
"""
READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "COVERAGE")
"""Prefixes of variables that an interpreter reads when it starts, and of those that change what it
can import: a command with such a setting runs in a new interpreter."""


class PreloadedCommand:
    """Runs `memservice` as `subprocess.run` does."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            # -P: the product is the installed one, not that of the folder which tests run in.
            [sys.executable, "-P", "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
            bufsize=1,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._replies = self._process.stdin, self._process.stdout

    def run(
        self,
        arguments: Sequence[str],
        folder: Path,
        settings: Mapping[str, str],
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """`arguments` in `folder`, with no settings but these. `timeout` is in seconds.

        Raises `subprocess.TimeoutExpired` after it has killed the command.
        """
        command = [str(MEMSERVICE), *arguments]
        if any(name.startswith(READ_AT_START) for name in settings):
            return subprocess.run(
                command,
                cwd=folder,
                env=environment(**settings),
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        with tempfile.TemporaryDirectory() as streams:
            stdout, stderr = Path(streams, "stdout"), Path(streams, "stderr")
            stdout.touch()
            stderr.touch()
            run = {
                "command": command,
                "folder": str(folder),
                "environment": environment(**settings),
                "stdout": str(stdout),
                "stderr": str(stderr),
            }
            self._requests.write(json.dumps(run) + "\n")
            pid = int(self._replies.readline())
            timer = threading.Timer(timeout, os.killpg, (pid, signal.SIGKILL))
            timer.start()
            status = int(self._replies.readline())
            timer.cancel()
            output, errors = stdout.read_text("utf-8"), stderr.read_text("utf-8")
        if status == -signal.SIGKILL:
            raise subprocess.TimeoutExpired(command, timeout, output, errors)
        return subprocess.CompletedProcess(command, status, output, errors)

    def close(self) -> None:
        self._process.communicate(timeout=20)
