"""Erases old rows: finished tasks, deleted conclusions, idempotency keys, and records of
deliveries, usage and console actions."""

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
    HELD,
    AuditEntry,
    Conclusion,
    Delivery,
    IdempotencyKey,
    Usage,
)
from memservice.runtime import Runtime
from memservice.services import message_days
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
"""Maximum time of each sweep for the remains of erased rows."""
RECLAIM_PAUSE_SECONDS = 0.02
"""Pause between two such steps, for other writers."""
MAX_PAUSE_SECONDS = 0.25
"""The pause after a batch is as long as the batch took, but no longer than this."""
TIME_SLICE_SECONDS = 1.0
"""A call of `sweep` ends after this time, so that other work gets its turn."""


FACT = "retention.time"
CATCH_UP = timedelta(hours=1)
"""How much the time of retention advances in a minute while it is behind the clock."""


class Swept(Counter[str]):
    """The number of erased rows of each kind."""

    unfinished = False
    """Whether the time slice ended before all old rows were erased."""


def sweep(rt: Runtime) -> Swept:
    """Erase old rows, in short transactions, for about a second. `unfinished`: there are more.

    Only one process does it at a time. In the others it returns at once.
    """
    erased = Swept()
    began = time.perf_counter()
    owner = lease_owner.start_claim()
    try:
        lease = rt.storage.write(
            lambda tx: tx.tasks.claim(UNIT, owner, rt.clock(), INTERVAL_SECONDS)
        )
        if lease is not None:
            _erase(rt, erased)
            if not erased.unfinished:
                reclaim(rt)
            message_days.count(rt)
            released = batching.release(rt)
            if released:
                log.info("released %d tasks that waited for a full batch", released)
            rt.storage.write(lambda tx: tx.tasks.release(lease))
    finally:
        lease_owner.end_claim(owner)
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


def steady_time(rt: Runtime) -> datetime:
    """The present time for rows that may still be needed. It is the clock's, but after a jump
    forward it advances by an hour a minute.

    Otherwise a clock that is ahead by days for a minute would erase all idempotency keys, and a
    repeated request would be stored twice.
    """
    now = rt.clock()
    with rt.storage.read() as tx:
        fact = tx.facts.get(FACT)
    steady = now
    if fact is not None:
        previous = json.loads(fact)
        steady = min(now, datetime.fromisoformat(previous["time"]))
        if abs(now - datetime.fromisoformat(previous["clock"])) < timedelta(
            seconds=INTERVAL_SECONDS
        ):
            return steady  # another process updated it within this minute
        steady = min(now, steady + CATCH_UP)
    value = json.dumps({"time": steady.isoformat(), "clock": now.isoformat()})
    rt.storage.write(lambda tx: tx.facts.set(FACT, value))
    return steady


def _erase(rt: Runtime, erased: Swept) -> None:
    now, steady = rt.clock(), steady_time(rt)
    retention = rt.settings.retention
    done_before = now - timedelta(hours=retention.done_tasks_hours)
    failed = steady - timedelta(seconds=rt.settings.deriver.queue_error_retention_seconds)
    deleted = now - timedelta(minutes=retention.deleted_conclusions_minutes)
    delivered = steady - timedelta(days=retention.deliveries_days)
    dreamt = steady - max(
        timedelta(days=retention.dreams_days), timedelta(hours=retention.done_tasks_hours)
    )
    used = steady - timedelta(days=retention.usage_days)
    idempotent_before = steady - timedelta(hours=retention.idempotency_hours)
    audited = steady - timedelta(days=retention.audit_days)
    batches: dict[str, Callable[[Transaction], int]] = {
        "deleted conclusions": lambda tx: _purge_deleted(tx, deleted),
        "idempotency keys": lambda tx: _purge_older(tx, IdempotencyKey, idempotent_before),
        "failed tasks": lambda tx: tx.tasks.purge(FAILED, failed, BATCH_SIZE),
        "done tasks": lambda tx: tx.tasks.purge(DONE, done_before, BATCH_SIZE, without=(DREAM,)),
        "dreams": lambda tx: tx.tasks.purge(DONE, dreamt, BATCH_SIZE),
        "proposals of dreams": lambda tx: tx.tasks.purge(HELD, dreamt, BATCH_SIZE),
        "deliveries": lambda tx: _purge_older(tx, Delivery, delivered),
        "records of usage": lambda tx: _purge_older(tx, Usage, used),
        "entries of the audit log": lambda tx: _purge_older(tx, AuditEntry, audited),
    }
    slice_ends = time.monotonic() + TIME_SLICE_SECONDS
    for name, erase_batch in batches.items():
        while True:
            began = time.monotonic()
            number = rt.storage.write(erase_batch)
            erased[name] += number
            if number < BATCH_SIZE:
                break
            if time.monotonic() >= slice_ends:
                erased.unfinished = True
                return
            # Writers of other processes poll SQLite's lock: without a pause they would rarely get
            # it.
            time.sleep(min(time.monotonic() - began, MAX_PAUSE_SECONDS))


def reclaim(rt: Runtime) -> None:
    """Remove the remains of erased rows from the store, for a few seconds. The next sweep
    continues."""
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
    """Release the leases of ended processes of this machine, and those that this process failed to
    release, so that their units need not wait until they expire. Returns how many."""
    with rt.storage.read() as tx:
        abandoned = [lease for lease in tx.tasks.leases() if lease_owner.has_ended(lease.owner)]
    for lease in abandoned:
        rt.storage.write(lambda tx, lease=lease: tx.tasks.release(lease))  # type: ignore[misc]
    return len(abandoned)
