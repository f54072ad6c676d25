"""What is over is erased after a while: tasks, conclusions that users deleted, records of
deliveries and of usage, idempotency keys."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import (
    DELETED,
    DONE,
    FAILED,
    AuditEntry,
    Conclusion,
    Delivery,
    IdempotencyKey,
    Usage,
)
from memservice.runtime import Runtime
from memservice.services.tasks import batching, lease_owner
from memservice.services.tasks.kinds import DREAM
from memservice.spi.repositories.base import CREATED
from memservice.spi.storage import Transaction
from memservice.telemetry.events import CleanupStaleItemsCompleted

log = logging.getLogger("memservice.maintenance")

UNIT = "maintenance:retention"
INTERVAL_SECONDS = 60.0
BATCH_SIZE = 1_000
RECLAIM_SECONDS = 5.0
"""Of each sweep, for what erased rows left behind."""
RECLAIM_PAUSE_SECONDS = 0.02
"""Between two steps of that, in which others write."""
MAX_REST_SECONDS = 0.25
"""Between two portions others may write for as long as the last one took, but no longer than
this."""
TURN_SECONDS = 1.0
"""How long a call goes on before other work has its turn."""


FACT = "retention.time"
CATCH_UP = timedelta(hours=1)
"""How far the time of retention moves in a minute where it is behind the clock."""


class Swept(Counter[str]):
    """How many rows of each kind were erased."""

    unfinished = False
    """Its turn ended before everything that is over was erased."""


def sweep(rt: Runtime) -> Swept:
    """Erase what is over, in short transactions, for about a second; `unfinished` says that there
    is more.

    One process at a time does it; the others return at once with nothing.
    """
    erased = Swept()
    began = time.perf_counter()
    mine = lease_owner.start_claim()
    try:
        lease = rt.storage.write(
            lambda tx: tx.tasks.claim(UNIT, mine, rt.clock(), INTERVAL_SECONDS)
        )
        if lease is not None:
            _erase(rt, erased)
            if not erased.unfinished:
                reclaim(rt)
            released = batching.release(rt)
            if released:
                log.info("%d messages that waited for company wait no longer", released)
            rt.storage.write(lambda tx: tx.tasks.release(lease))
    finally:
        lease_owner.end_claim(mine)
    tasks = erased["done tasks"] + erased["failed tasks"]
    if tasks:
        rt.emit(
            CleanupStaleItemsCompleted(
                documents_cleaned=erased["deleted conclusions"],
                queue_items_cleaned=tasks,
                total_duration_ms=round((time.perf_counter() - began) * 1000, 3),
            )
        )
    if erased.total():
        log.info(
            "erased %s", ", ".join(f"{number} {name}" for name, number in erased.items() if number)
        )
    return erased


def _steady_time(rt: Runtime) -> datetime:
    """The time by which that is erased which may still be needed: the clock's, but after a jump
    forward it follows by an hour a minute.

    A clock that is ahead by days for a minute would else erase all idempotency keys, and a repeated
    request would be stored twice.
    """
    now = rt.clock()
    with rt.storage.read() as tx:
        kept = tx.facts.get(FACT)
    steady = now
    if kept is not None:
        said = json.loads(kept)
        steady = min(now, datetime.fromisoformat(said["time"]))
        if abs(now - datetime.fromisoformat(said["clock"])) < timedelta(seconds=INTERVAL_SECONDS):
            return steady  # another process looked within this minute
        steady = min(now, steady + CATCH_UP)
    value = json.dumps({"time": steady.isoformat(), "clock": now.isoformat()})
    rt.storage.write(lambda tx: tx.facts.set(FACT, value))
    return steady


def _erase(rt: Runtime, erased: Swept) -> None:
    now, steady = rt.clock(), _steady_time(rt)
    retention = rt.settings.retention
    done = now - timedelta(hours=retention.done_tasks_hours)
    failed = steady - timedelta(seconds=rt.settings.deriver.queue_error_retention_seconds)
    deleted = now - timedelta(minutes=retention.deleted_conclusions_minutes)
    delivered = steady - timedelta(days=retention.deliveries_days)
    dreamt = steady - max(
        timedelta(days=retention.dreams_days), timedelta(hours=retention.done_tasks_hours)
    )
    used = steady - timedelta(days=retention.usage_days)
    asked = steady - timedelta(hours=retention.idempotency_hours)
    audited = steady - timedelta(days=retention.audit_days)
    portions: dict[str, Callable[[Transaction], int]] = {
        "deleted conclusions": lambda tx: _purge_deleted(tx, deleted),
        "idempotency keys": lambda tx: _purge_older(tx, IdempotencyKey, asked),
        "failed tasks": lambda tx: tx.tasks.purge(FAILED, failed, BATCH_SIZE),
        "done tasks": lambda tx: tx.tasks.purge(DONE, done, BATCH_SIZE, without=(DREAM,)),
        "dreams": lambda tx: tx.tasks.purge(DONE, dreamt, BATCH_SIZE),
        "deliveries": lambda tx: _purge_older(tx, Delivery, delivered),
        "records of usage": lambda tx: _purge_older(tx, Usage, used),
        "entries of the audit log": lambda tx: _purge_older(tx, AuditEntry, audited),
    }
    turn_ends = time.monotonic() + TURN_SECONDS
    for name, portion in portions.items():
        while True:
            began = time.monotonic()
            number = rt.storage.write(portion)
            erased[name] += number
            if number < BATCH_SIZE:
                break
            if time.monotonic() >= turn_ends:
                erased.unfinished = True
                return
            # Writers of other processes ask for SQLite's lock from time to time only: without a
            # rest they would hardly ever find it free.
            time.sleep(min(time.monotonic() - began, MAX_REST_SECONDS))


def reclaim(rt: Runtime) -> None:
    """Let the store go of what erased rows left behind, for a while; the next sweep goes on."""
    ends = time.monotonic() + RECLAIM_SECONDS
    while rt.storage.reclaim() and time.monotonic() < ends:
        time.sleep(RECLAIM_PAUSE_SECONDS)


def _purge_deleted(tx: Transaction, before: datetime) -> int:
    condition = all_of(equals(state=DELETED), Compare("deleted_at", "lt", before))
    keys = tuple(row.key for row in tx.rows.page(Conclusion, condition, limit=BATCH_SIZE))
    return tx.rows.delete(Conclusion, equals(key=keys)) if keys else 0


def _purge_older(tx: Transaction, record: type[Any], before: datetime) -> int:
    old = tx.rows.page(record, Compare("created_at", "lt", before), CREATED, BATCH_SIZE)
    return tx.rows.delete(record, equals(key=tuple(row.key for row in old))) if old else 0


def free_abandoned(rt: Runtime) -> int:
    """Let go of leases whose holders were processes of this machine that have ended, and of this
    process's own that it could not give back, so that nobody need wait for them to expire. Returns
    how many."""
    with rt.storage.read() as tx:
        gone = [lease for lease in tx.tasks.leases() if lease_owner.has_ended(lease.owner)]
    for lease in gone:
        rt.storage.write(lambda tx, lease=lease: tx.tasks.release(lease))  # type: ignore[misc]
    return len(gone)
