"""The process from which tests fork runs of `memservice`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from support.processes import fork_server, preloaded
from support.processes.processes import eventually, parents

FORK_AND_WAIT = """
import socket, sys, time
from support.processes import fork_server
if fork_server.wait_for_run(socket.socket(fileno=int(sys.argv[1]))):
    time.sleep(60)
"""

KILL_AT_ONCE = """
import os, signal, time
from types import SimpleNamespace
from support.processes import fork_server

def set_up_slowly(set_up=fork_server.set_up_fork):
    time.sleep(0.3)
    set_up()

fork_server.set_up_fork = set_up_slowly
fork_server.run_gunicorn = lambda: time.sleep(60)
supervisor = SimpleNamespace(_plan=SimpleNamespace(environment={}))
server = fork_server.fork_child(supervisor, ["python", "-m", "gunicorn"], {})
os.killpg(server.pid, signal.SIGKILL)
print(server.wait(20))
"""


def test_a_child_has_its_session_when_the_supervisor_gets_it(tmp_path: Path) -> None:
    """So a start that fails at once can kill its server, as `Supervisor.abort` does."""
    result = preloaded.run_python(KILL_AT_ONCE, folder=tmp_path)
    assert (result.stdout, result.stderr) == ("-9\n", "")


def test_an_interrupted_test_run_leaves_no_process(root: Path, tmp_path: Path) -> None:
    """The end of the tests closes their end of the connection, however they end."""
    control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with control, other, open(os.devnull, "r+b") as nothing:
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", FORK_AND_WAIT, str(other.fileno())],
            env={"PYTHONPATH": str(root / "tests")},
            pass_fds=[other.fileno()],
        )
        other.close()
        started = []
        for _ in range(2):
            run: fork_server.Run = {
                "command": ["serve"],
                "folder": str(tmp_path),
                "environment": {},
            }
            read, write = os.pipe()
            streams = [nothing.fileno()] * 3
            socket.send_fds(control, [json.dumps(run).encode()], [*streams, write])
            os.close(write)
            with open(read, encoding="utf-8") as report:
                started.append(int(report.readline()))
        assert set(started) <= set(parents())
    assert process.wait(20) == 0
    eventually(lambda: not set(started) & set(parents()), what="the forks ended")
