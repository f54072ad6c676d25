"""Heartbeats of processes: each worker and each server process records in the store that it is
alive, with its version, reasoners and embedder."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

import memservice
from memservice.domain.errors import MemserviceError
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import Fact
from memservice.runtime import Runtime
from memservice.services.tasks import lease_owner
from memservice.spi.storage import Transaction

WORKER, SERVER = "worker", "server"
"""Kinds of process. Facts of workers are named `worker:…`, those of servers `server:…`."""
AFTER_COLON = ";"
EVERY_SECONDS = 15.0
"""Seconds between two heartbeats of a process."""
HEARTBEAT_TIMEOUT = timedelta(seconds=60)
"""A process without a heartbeat for this long counts as ended."""


class Process(Struct, frozen=True):
    """A process with a recent heartbeat."""

    kind: str
    name: str
    """From `services.tasks.lease_owner`; the owners of its leases differ in the last part only."""
    last_heartbeat: datetime
    version: str
    """Of memservice; empty for a release that did not record it."""
    reasoners: dict[str, str]
    """Name of the reasoner by task."""
    embedder: str
    queues: tuple[str, ...] = ()
    """Queues in Redis that it takes work from, the most urgent first. Empty: it takes work from the
    store, or none."""
    started_at: datetime | None = None
    """None for a release that did not record it."""

    @property
    def host(self) -> str:
        return self.name.partition("|")[0]

    @property
    def pid(self) -> str:
        return self.name.split("|")[-3] if self.name.count("|") >= 3 else ""

    def holds(self, owner: str) -> bool:
        """Whether the process holds a lease of this owner."""
        return owner.rpartition("|")[0] == self.name.rpartition("|")[0] != ""


@contextmanager
def registered(rt: Runtime, kind: str = WORKER, queues: Sequence[str] = ()) -> Iterator[None]:
    """Send heartbeats while the block runs, from a separate thread, because work may take long."""
    name, ended = lease_owner.start_claim(), threading.Event()
    started_at = rt.clock()

    def beat() -> None:
        while True:
            # The work itself reports a store that cannot be reached or is damaged. Without
            # heartbeats the process counts as ended, which is right then.
            with suppress(MemserviceError):
                register(rt, name, kind, queues, started_at)
            if ended.wait(EVERY_SECONDS):
                return

    thread = threading.Thread(target=beat, name="heartbeats", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with suppress(MemserviceError):
            unregister(rt, name, kind)
        lease_owner.end_claim(name)


def register(
    rt: Runtime,
    name: str,
    kind: str = WORKER,
    queues: Sequence[str] = (),
    started_at: datetime | None = None,
) -> None:
    """Record one heartbeat; repeat it every `EVERY_SECONDS`. Removes the records of processes of
    the same kind that have ended."""
    value = json.dumps(
        {
            "seen": rt.clock().isoformat(),
            "version": memservice.__version__,
            "reasoners": dict(rt.reasoners),
            "embedder": rt.embedder.id,
            "queues": list(queues),
            "started": None if started_at is None else started_at.isoformat(),
        },
        sort_keys=True,
    )

    def change(tx: Transaction) -> None:
        tx.facts.set(f"{kind}:{name}", value)
        for fact in _facts(tx, kind):
            if not _is_alive(_read(fact), rt.clock()):
                tx.rows.delete(Fact, equals(name=fact.name))

    rt.storage.write(change)


def unregister(rt: Runtime, name: str, kind: str = WORKER) -> None:
    """Remove the record of a process that ends."""
    rt.storage.write(lambda tx: tx.rows.delete(Fact, equals(name=f"{kind}:{name}")))


def workers(tx: Transaction, now: datetime) -> list[Process]:
    """Workers that are alive, by name."""
    return _alive(tx, WORKER, now)


def servers(tx: Transaction, now: datetime) -> list[Process]:
    """Server processes that are alive, by name."""
    return _alive(tx, SERVER, now)


def _alive(tx: Transaction, kind: str, now: datetime) -> list[Process]:
    processes = [_read(fact) for fact in _facts(tx, kind)]
    return sorted(
        (process for process in processes if _is_alive(process, now)),
        key=lambda process: process.name,
    )


def _is_alive(process: Process, now: datetime) -> bool:
    """A heartbeat in the future comes from a clock that was ahead. If the process were still alive,
    it would have sent another one since."""
    return abs(now - process.last_heartbeat) <= HEARTBEAT_TIMEOUT


def _facts(tx: Transaction, kind: str) -> Sequence[Fact]:
    return tx.rows.page(
        Fact,
        all_of(Compare("name", "gte", f"{kind}:"), Compare("name", "lt", f"{kind}{AFTER_COLON}")),
    )


def _read(fact: Fact) -> Process:
    kind, _, name = fact.name.partition(":")
    value: dict[str, Any] = json.loads(fact.value)
    return Process(
        kind,
        name,
        datetime.fromisoformat(value["seen"]),
        value.get("version", ""),
        value["reasoners"],
        value["embedder"],
        tuple(value.get("queues", ())),
        datetime.fromisoformat(value["started"]) if value.get("started") else None,
    )
