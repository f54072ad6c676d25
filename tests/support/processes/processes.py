"""Processes of the service on one database file: started, found in the process table, ended, and
always cleaned up."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from support.clients.server import Server
from support.processes import preloaded
from support.processes.command import environment
from support.stores.postgres_server import connect

PATIENCE = 60.0


def eventually(condition: Callable[[], bool], what: str | Callable[[], str] = "") -> float:
    """Wait until it holds; returns how many seconds that took. Tests have no limits of their own:
    those that fit an idle machine fail on a busy one. A function describes what there is in the
    end, if it does not hold."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > PATIENCE:
            described = what if isinstance(what, str) else what()
            raise AssertionError(f"did not come true within {PATIENCE:.0f} s: {described}")
        time.sleep(0.05)
    return time.monotonic() - began


def parents() -> dict[int, int]:
    """Parent by process, of all that run now."""
    parents_of: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            state, parent = stat.rpartition(")")[2].split()[:2]
            if state != "Z":
                parents_of[int(entry.name)] = int(parent)
    return parents_of


def below(pid: int) -> list[int]:
    """All descendants of a process, nearest first."""
    table = parents()
    descendants, layer = list[int](), [pid]
    while layer:
        layer = [child for child, parent in table.items() if parent in layer]
        descendants += layer
    return descendants


def command_of(pid: int) -> str:
    """The command line and, for what it says about forks, the name of the process."""
    folder = Path(f"/proc/{pid}")
    try:
        parts = folder.joinpath("cmdline").read_bytes(), folder.joinpath("comm").read_bytes()
    except OSError:
        return ""
    return b" ".join(parts).replace(b"\0", b" ").decode()


def running(pid: int) -> bool:
    return pid in parents()


def send(pid: int, number: signal.Signals) -> bool:
    """False if it has ended already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def stand_still(pid: int, database: Path) -> None:
    """Stop a process, at a moment when it neither writes to the database nor leads others: what it
    would hold then, all would wait for."""
    deadline = time.monotonic() + PATIENCE
    while True:
        send(pid, signal.SIGSTOP)
        with (
            closing(sqlite3.connect(database, timeout=0.5, isolation_level=None)) as connection,
            suppress(sqlite3.OperationalError),
        ):
            connection.execute("BEGIN IMMEDIATE")
            leads = connection.execute(
                "SELECT 1 FROM leases WHERE unit LIKE 'maintenance:%'"
            ).fetchall()
            connection.execute("ROLLBACK")
            if not leads:
                return
        assert time.monotonic() < deadline, "it writes or leads all the time"
        send(pid, signal.SIGCONT)
        time.sleep(0.05)


def python_path(*folders: Path) -> str:
    """What a child needs to import what the tests import."""
    return os.pathsep.join(
        [
            *map(str, folders),
            *(entry for entry in sys.path if entry and "site-packages" not in entry),
        ]
    )


class Service:
    """One `memservice serve`, started again as often as a test ends it, and workers beside it.
    `address` is where it answers now."""

    def __init__(self, folder: Path, *options: str, **settings: str) -> None:
        self.folder = folder
        self.options = options
        self.settings = settings
        self.server = Server(folder, *options, **settings)
        self.workers: list[preloaded.Process] = []
        self._pids: set[int] = set()
        self._lock = threading.Lock()
        self._started()

    @property
    def database(self) -> Path:
        return self.folder / "memservice.db"

    @property
    def uri(self) -> str:
        return self.settings.get("DB_CONNECTION_URI", f"sqlite:///{self.database}")

    @property
    def address(self) -> str:
        with self._lock:
            return self.server.url

    def roles(self) -> dict[str, list[int]]:
        """The processes that run now, by what they do."""
        supervisor = self.server.process.pid
        roles: dict[str, list[int]] = {
            "supervisor": [supervisor] if running(supervisor) else [],
            "master": [],
            "server": [],
            "worker": [],
        }
        for pid in below(supervisor):
            command = command_of(pid)
            if "memservice work" in command:
                roles["worker"].append(pid)
            elif "gunicorn" in command:
                roles["master" if parents().get(pid) == supervisor else "server"].append(pid)
        roles["extra"] = [worker.pid for worker in self.workers if worker.poll() is None]
        return roles

    def remember(self) -> None:
        """Everything that runs now is ours to end."""
        self._pids |= {pid for pids in self.roles().values() for pid in pids}

    def add_worker(self, **settings: str) -> preloaded.Process:
        log = (self.folder / f"worker-{len(self.workers)}.log").open("ab")
        with log:
            worker = preloaded.start(
                ["worker"], self.folder, environment(**(self.settings | settings)), log
            )
        self.workers.append(worker)
        self._pids.add(worker.pid)
        return worker

    def restart(self) -> None:
        """Start again after the server ended, once everything that it left has ended as well."""
        eventually(
            lambda: (
                not any(
                    running(pid) for pid in self._pids - {worker.pid for worker in self.workers}
                )
            ),
            what="children end",
        )
        server = Server(self.folder, *self.options, **self.settings)
        with self._lock:
            self.server = server
        self._started()

    def _started(self) -> None:
        try:
            self.server.wait_until_healthy()
            self.remember()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Whatever is left of it."""
        self.remember()
        for pid in self._pids:
            if "memservice" in command_of(pid) or "gunicorn" in command_of(pid):
                send(pid, signal.SIGCONT)
                send(pid, signal.SIGKILL)
        self.server.process.wait(PATIENCE)
        for worker in self.workers:
            worker.wait(PATIENCE)

    def post(self, path: str, body: object, timeout: float = 30.0, **headers: str) -> Any:
        """The answer's JSON. Raises OSError where there is none."""
        request = urllib.request.Request(
            f"{self.address}/v3/workspaces/w{path}",
            json.dumps(body).encode(),
            {
                "Content-Type": "application/json",
                **{name.replace("_", "-"): value for name, value in headers.items()},
            },
        )
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.load(answer)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.address}/v3/workspaces/w{path}", timeout=30) as answer:
            return json.load(answer)

    def say(
        self, session: str, *turns: tuple[str, str], timeout: float = 30.0, **headers: str
    ) -> Any:
        messages = [{"peer_id": peer, "content": content} for peer, content in turns]
        return self.post(
            f"/sessions/{session}/messages", {"messages": messages}, timeout, **headers
        )

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of the database itself, whichever processes run."""
        if self.uri.startswith("postgresql"):
            with connect(self.uri) as other:
                return other.execute(sql.replace("?", "%s").encode(), values).fetchall()
        with closing(
            sqlite3.connect(
                f"file:{self.uri.removeprefix('sqlite:///')}?mode=ro", uri=True, timeout=30
            )
        ) as connection:
            return connection.execute(sql, values).fetchall()

    def unfinished(self) -> int:
        """Tasks that wait or are worked on; timers of dreams are for later."""
        return int(
            self.rows(
                "SELECT count(*) FROM tasks WHERE state = 'pending' AND kind != 'dream_timer'"
            )[0][0]
        )

    def drained(self) -> float:
        try:
            return eventually(
                lambda: self.unfinished() == 0 and not self.rows("SELECT 1 FROM leases")
            )
        except AssertionError as late:
            left = self.rows(
                "SELECT unit, kind, attempts, not_before FROM tasks WHERE state = "
                "'pending' LIMIT 10"
            )
            leases = self.rows("SELECT unit, owner, expires_at FROM leases")
            raise AssertionError(
                f"the queue is not empty after {PATIENCE:.0f} s: {left}; leases {leases}; "
                f"{self.roles()}"
            ) from late

    def texts(self) -> list[tuple[str, str, int]]:
        """Observer, content and times derived of every live conclusion, sorted."""
        return sorted(
            self.rows(
                "SELECT observer, content, times_derived FROM conclusions WHERE state = 'live'"
            )
        )


def served(folder: Path, *options: str, **settings: str) -> Iterator[Service]:
    """For a fixture."""
    service = Service(folder, *options, **settings)
    try:
        yield service
    finally:
        service.end()
