"""A store, and RQ workers as processes of their own."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from memservice.compose import open_runtime
from memservice.services import messages
from memservice.services.auth.principal import Principal
from memservice.services.messages import Draft
from memservice.settings import load_settings
from memservice.testing import failpoints
from support.processes import preloaded
from support.processes.command import environment
from support.processes.gate import FOLDER, Gates
from support.processes.processes import below, eventually, python_path, send
from support.stores.stores import sqlite_store_at

SOON = {
    "WORKER_SWEEP_INTERVAL_SECONDS": "0.5",
    "DERIVER_STALE_WORK_UNIT_CLEANUP_INTERVAL_SECONDS": "0.0",
    "WORKER_RETRY_BACKOFF_SECONDS": "0.1",
    "REASONER": "gated",
}


class Delivery:
    """Writes as a server process does; `worker()` starts `memservice worker`. The reasoner waits at
    the gates of `crash.gate`."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.folder = folder
        self.gates = Gates(folder / "gates")
        self.site = failpoints.announce(folder / "site", gate="support.processes.gate")
        self.settings = {"DB_CONNECTION_URI": sqlite_store_at(folder / "d.db"), **SOON, **settings}
        # A server derives nothing, so it needs no reasoner of ours.
        loaded = load_settings(environ={**self.settings, "REASONER": "extractive"}, cwd=folder)
        self.rt = open_runtime(loaded)
        self.rt.storage.migrate()
        self.workers: list[preloaded.Process] = []
        self._pids: set[int] = set()

    def worker(self, *options: str, **settings: str) -> preloaded.Process:
        variables = environment(
            PYTHONPATH=python_path(self.site),
            **{FOLDER: str(self.gates.folder), **self.settings, **settings},
        )
        with (self.folder / f"worker-{len(self.workers)}.log").open("ab") as log:
            self.workers.append(preloaded.start(["worker", *options], self.folder, variables, log))
        return self.workers[-1]

    def log(self, number: int = 0) -> str:
        return (self.folder / f"worker-{number}.log").read_text(encoding="utf-8")

    def at_gate(self, name: str) -> int:
        """The process that waits there."""
        eventually(
            lambda: self.gates.waiting(name) is not None, what=f"somebody comes to the gate {name}"
        )
        pid = self.gates.waiting(name)
        assert pid is not None
        self._pids.add(pid)
        return pid

    def say(self, session: str, *texts: str, author: str = "alice") -> None:
        messages.create(
            self.rt, Principal(admin=True), "w", session, [Draft(text, author) for text in texts]
        )

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(
            sqlite3.connect(f"file:{self.folder}/d.db?mode=ro", uri=True, timeout=30)
        ) as connection:
            return connection.execute(sql, values).fetchall()

    def set_version(self, version: str) -> None:
        """Write the schema version of the store, as a migration does."""
        path = self.folder / "d.db"
        with closing(sqlite3.connect(path, timeout=30)) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = ?", [version])

    def texts(self) -> list[tuple[str, int]]:
        """Content and times derived of every live conclusion, in the order in which they were
        stored."""
        return self.rows(
            "SELECT content, times_derived FROM conclusions WHERE state = 'live' ORDER BY key"
        )

    def derived(self, *texts: str, in_order: bool = True) -> float:
        """Wait until these are the conclusions, each once, and nothing is left to do. Returns how
        long it took. `in_order`: they were stored in this order."""
        expected = [(text, 1) for text in texts]

        def are_derived() -> bool:
            stored = self.texts()
            same = stored == expected if in_order else sorted(stored) == sorted(expected)
            return same and self.idle()

        return eventually(
            are_derived, what=lambda: f"{texts}, there is {self.texts()}\n{self._state()}"
        )

    def _state(self) -> str:
        """Tasks, leases, and what the workers have logged."""
        tasks, leases = self.rows("SELECT * FROM tasks"), self.rows("SELECT * FROM leases")
        logs = "\n".join(map(self.log, range(len(self.workers))))
        return f"tasks {tasks}\nleases {leases}\n{logs}"

    def idle(self) -> bool:
        waits = self.rows("SELECT 1 FROM tasks WHERE state = 'pending' AND kind != 'dream_timer'")
        return not waits and not self.rows("SELECT 1 FROM leases")

    def end(self) -> None:
        self.rt.close()
        for worker in self.workers:
            pids = [*below(worker.pid), worker.pid] if worker.poll() is None else []
            for pid in {*pids, *self._pids}:
                send(pid, signal.SIGCONT)
                send(pid, signal.SIGKILL)
            worker.wait(20)
