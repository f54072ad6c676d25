"""The process from which tests fork runs of `memservice`."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from support.processes import fork_server, preloaded
from support.processes.processes import eventually, parents
from support.stores import sqlite_store

FORK_AND_WAIT = """
import socket, sys, time
from support.processes import fork_server
if fork_server.wait_for_run(socket.socket(fileno=int(sys.argv[1]))):
    time.sleep(60)
"""

SET_UP = ("auto_vacuum", "journal_mode", "page_size", "application_id", "user_version")

DERIVE = """
import json, os, threading
from datetime import UTC, datetime
from pathlib import Path
from memservice.plugins import load_plugins
from memservice.reasoning.apart.reasoner import Apart, location_of
from memservice.spi.reasoner import DeriveRequest, Utterance

provider = load_plugins().reasoner("extractive")
apart = Apart(provider, location_of(provider), 10, threading.Event(), lambda: None)
request = DeriveRequest("ada", [Utterance(1, "m1", "ada", "I keep bees.", datetime.now(UTC))])
(statement,) = apart.derive(request).statements
(child,) = apart._idle
parent = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[1])
apart.close()
print(json.dumps([statement.content, parent == os.getppid(), child._process.poll()]))
"""


def contents(path: Path) -> list[object]:
    """How a SQLite file is set up, its tables, and their rows."""
    with closing(sqlite3.connect(path)) as connection:
        schema = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        tables = [name for name, sql in schema if sql and sql.startswith("CREATE TABLE")]
        return [
            *(connection.execute(f"PRAGMA {name}").fetchone() for name in SET_UP),
            schema,
            *(connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables),
        ]


def test_the_process_of_a_reasoner_is_forked_by_the_server(tmp_path: Path) -> None:
    result = preloaded.run_python(DERIVE, folder=tmp_path)
    assert result.stderr == ""
    assert json.loads(result.stdout) == ["I keep bees.", True, 0]


def test_a_store_of_a_fork_is_as_the_migrations_make_it(
    tmp_path: Path, own_migrations: None
) -> None:
    sqlite_store.migrated(tmp_path / "migrated.db").close()
    for name in ("memservice.db", "migrated.db"):
        uri = {"DB_CONNECTION_URI": f"sqlite:///{name}"}
        assert preloaded.run(["db", "upgrade"], tmp_path, uri).returncode == 0
    forked, migrated = (contents(tmp_path / name) for name in ("memservice.db", "migrated.db"))
    assert forked == migrated
    assert (tmp_path / "memservice.db").stat().st_mode & 0o777 == 0o600


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
