"""Which processes there are: each worker and each server process says in the store that it is
alive, with what an operator compares between processes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

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
"""How often a process says that it is alive."""
GONE_AFTER = timedelta(seconds=60)
"""A process that said nothing for so long is gone."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that was alive a moment ago."""

    kind: str
    name: str
    """As in `services.tasks.lease_owner`; names of its leases differ in the last part only."""
    seen: datetime
    version: str
    """Of memservice; empty for a release that did not say it."""
    reasoners: dict[str, str]
    """By task, the reasoner that does it there."""
    embedder: str

    @property
    def host(self) -> str:
        return self.name.partition("|")[0]

    @property
    def pid(self) -> str:
        return self.name.split("|")[-3] if self.name.count("|") >= 3 else ""

    def holds(self, owner: str) -> bool:
        """Whether a lease of this owner is held by the process."""
        return owner.rpartition("|")[0] == self.name.rpartition("|")[0] != ""


@contextmanager
def registered(rt: Runtime, kind: str = WORKER) -> Iterator[None]:
    """This process says that it is alive as long as the block lasts, from a thread of its own, as
    its work may take long."""
    name, ended = lease_owner.this_process(), threading.Event()

    def speak() -> None:
        while True:
            # The work itself reports a store that is away or damaged. A process that is silent
            # meanwhile counts as gone, rightly.
            with suppress(MemserviceError):
                register(rt, name, kind)
            if ended.wait(EVERY_SECONDS):
                return

    thread = threading.Thread(target=speak, name="presence", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with suppress(MemserviceError):
            unregister(rt, name, kind)
        lease_owner.ended(name)


def register(rt: Runtime, name: str, kind: str = WORKER) -> None:
    """This process is alive; to be repeated every `EVERY_SECONDS`. Forgets processes of its kind
    that have been silent for long."""
    value = json.dumps(
        {
            "seen": rt.clock().isoformat(),
            "version": memservice.__version__,
            "reasoners": dict(rt.reasoners),
            "embedder": rt.embedder.id,
        },
        sort_keys=True,
    )

    def change(tx: Transaction) -> None:
        tx.facts.set(f"{kind}:{name}", value)
        for fact in _facts(tx, kind):
            if not _is_there(_read(fact), rt.clock()):
                tx.rows.delete(Fact, equals(name=fact.name))

    rt.storage.write(change)


def unregister(rt: Runtime, name: str, kind: str = WORKER) -> None:
    """This process ends."""
    rt.storage.write(lambda tx: tx.rows.delete(Fact, equals(name=f"{kind}:{name}")))


def workers(tx: Transaction, now: datetime) -> list[Process]:
    """Those that are alive, by name."""
    return _alive(tx, WORKER, now)


def servers(tx: Transaction, now: datetime) -> list[Process]:
    """Server processes that are alive, by name."""
    return _alive(tx, SERVER, now)


def _alive(tx: Transaction, kind: str, now: datetime) -> list[Process]:
    processes = [_read(fact) for fact in _facts(tx, kind)]
    return sorted(
        (process for process in processes if _is_there(process, now)),
        key=lambda process: process.name,
    )


def _is_there(process: Process, now: datetime) -> bool:
    """One that was last seen in the future had a clock that was ahead: it would say so again if it
    were still alive."""
    return abs(now - process.seen) <= GONE_AFTER


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
    )
