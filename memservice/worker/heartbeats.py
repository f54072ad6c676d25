"""Which workers there are: each says so in the store while it lives, with what an operator may want
to compare between processes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from memservice.domain.errors import MemserviceError
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import Fact
from memservice.runtime import Runtime
from memservice.services.tasks import lease_owner
from memservice.spi.storage import Transaction

PREFIX, AFTER = "worker:", "worker;"
"""Facts of workers have names between these two: `;` follows `:`."""
EVERY_SECONDS = 15.0
"""How often a worker says that it is there."""
GONE_AFTER = timedelta(seconds=60)
"""A worker that said nothing for so long is not there."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker that was there a moment ago."""

    name: str
    seen: datetime
    reasoners: dict[str, str]
    """By task, the reasoner that does it there."""
    embedder: str


@contextmanager
def registered(rt: Runtime) -> Iterator[None]:
    """This process is a worker, and says so as long as the block lasts, from a thread of its own:
    its work may take as long as it likes."""
    name, ended = lease_owner.this_process(), threading.Event()

    def speak() -> None:
        while True:
            # Whoever does the work tells that the store is away, or damaged; one that is silent
            # meanwhile is taken for gone, rightly.
            with suppress(MemserviceError):
                register(rt, name)
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
            unregister(rt, name)
        lease_owner.ended(name)


def register(rt: Runtime, name: str) -> None:
    """This worker is there; to be said again every `EVERY_SECONDS`. Those that have long been
    silent are forgotten."""
    said = json.dumps(
        {
            "seen": rt.clock().isoformat(),
            "reasoners": dict(rt.reasoners),
            "embedder": rt.embedder.id,
        },
        sort_keys=True,
    )

    def change(tx: Transaction) -> None:
        tx.facts.set(PREFIX + name, said)
        gone = [fact for fact in _facts(tx) if not _is_there(_read(fact), rt.clock())]
        for fact in gone:
            tx.rows.delete(Fact, equals(name=fact.name))

    rt.storage.write(change)


def unregister(rt: Runtime, name: str) -> None:
    """This worker ends."""
    rt.storage.write(lambda tx: tx.rows.delete(Fact, equals(name=PREFIX + name)))


def workers(tx: Transaction, now: datetime) -> list[Worker]:
    """Those that are there, by name."""
    workers = [_read(fact) for fact in _facts(tx)]
    return sorted(
        (worker for worker in workers if _is_there(worker, now)), key=lambda worker: worker.name
    )


def _is_there(worker: Worker, now: datetime) -> bool:
    """One that was last seen in the future said so by a clock that was ahead: it would say so again
    if it still lived."""
    return abs(now - worker.seen) <= GONE_AFTER


def _facts(tx: Transaction) -> Sequence[Fact]:
    return tx.rows.page(Fact, all_of(Compare("name", "gte", PREFIX), Compare("name", "lt", AFTER)))


def _read(fact: Fact) -> Worker:
    said: dict[str, Any] = json.loads(fact.value)
    return Worker(
        fact.name.removeprefix(PREFIX),
        datetime.fromisoformat(said["seen"]),
        said["reasoners"],
        said["embedder"],
    )
