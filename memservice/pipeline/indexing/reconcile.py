"""Compares the vector index with the rows periodically. Tasks repair missing and orphaned vectors
(`pipeline.indexing.repair`).

One process does it at a time. A round visits all active spaces in order of their keys, a batch of
rows at a time, and stores its progress. After an interruption any process can continue it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare, Condition
from memservice.domain.records import ACTIVE, LIVE, Conclusion, Document, Message, Space
from memservice.runtime import Runtime
from memservice.services.indexing import CONCLUSION, DOCUMENT, MESSAGE
from memservice.services.tasks import lease_owner, outbox
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Embedder
from memservice.spi.rows import BY_KEY
from memservice.spi.storage import Transaction

log = logging.getLogger("memservice.maintenance")

UNIT = "maintenance:vectors"
LEASE_SECONDS = 60.0
FACT = "vectors.reconciliation"
BATCH_SIZE = 1_000
TIME_SLICE_SECONDS = 0.5
"""A call of `run` ends after this time, so that other work gets its turn."""
MAX_QUEUED_TASKS = 500
"""Pending tasks of a space whose rows are excluded from the comparison. If there are more, this
round skips the space."""

_RECORDS: dict[str, type[Any]] = {MESSAGE: Message, CONCLUSION: Conclusion, DOCUMENT: Document}


class _Progress(Struct, frozen=True):
    space: int = 0
    """Key of the current space; earlier ones are done."""
    after: int = 0
    """Key of its last compared row."""
    ended: str | None = None
    """When the last round ended; None during a round."""


class Compared(Struct, frozen=True):
    """The differences in a batch of a space. Rows of pending tasks are left out."""

    missing: list[int]
    orphans: list[int]
    until: int | None
    """Key up to which the space is compared; None: the whole space."""


def run(rt: Runtime) -> float:
    """Start a round if one is due, or continue it for one time slice. Returns the seconds until the
    next call.

    An unavailable index ends the round; the next one starts after the usual interval. Raises
    `Unavailable` if the store is unavailable.
    """
    interval = rt.settings.vector_store.reconciliation_interval_seconds
    owner = lease_owner.start_claim()
    try:
        lease = rt.storage.write(lambda tx: tx.tasks.claim(UNIT, owner, rt.clock(), LEASE_SECONDS))
        if lease is None:
            return interval
        try:
            return _go_on(rt, interval)
        finally:
            rt.storage.write(lambda tx: tx.tasks.release(lease))
    finally:
        lease_owner.end_claim(owner)


def _go_on(rt: Runtime, interval: float) -> float:
    progress = _read(rt)
    if progress.ended is not None:
        elapsed = (rt.clock() - datetime.fromisoformat(progress.ended)).total_seconds()
        # a time in the future comes from a clock that was ahead
        if 0 <= elapsed < interval:
            return interval - elapsed
        progress = _Progress()
    slice_ends = time.monotonic() + TIME_SLICE_SECONDS
    while True:
        try:
            progress = _step(rt, progress)
        except Exception as error:  # raised by a plugin: nothing changed, the next round retries
            log.warning(
                "vectors could not be compared with the rows: %s: %s", type(error).__name__, error
            )
            progress = _ended(rt)
        _keep(rt, progress)
        if progress.ended is not None:
            return interval
        if time.monotonic() >= slice_ends:
            return 0.0


def _step(rt: Runtime, progress: _Progress) -> _Progress:
    with rt.storage.read() as tx:
        spaces = tx.rows.page(
            Space, all_of(equals(state=ACTIVE), Compare("key", "gte", progress.space)), BY_KEY, 1
        )
    if not spaces:
        return _ended(rt)
    (space,) = spaces
    after = progress.after if space.key == progress.space else 0
    compared = compare(rt, space, after)
    if compared.missing or compared.orphans:
        task = outbox.repair(
            rt, space.kind, space.workspace_key, compared.missing, compared.orphans
        )
        rt.storage.write(lambda tx: tx.tasks.add([task]))
        log.warning(
            "vectors of kind %s of workspace %d: %d missing, %d orphaned; a task repairs them",
            *(space.kind, space.workspace_key, len(compared.missing), len(compared.orphans)),
        )
    return (
        _Progress(space.key + 1) if compared.until is None else _Progress(space.key, compared.until)
    )


def compare(rt: Runtime, space: Space, after: int) -> Compared:
    """Compare the next batch of a space: rows with keys greater than `after`. Changes nothing.
    Raises the errors of the index and the store."""
    embedder = rt.embedder_of(space.embedder)
    inline = embedder is not None and Capability.INLINE in embedder.capabilities
    if rt.vectors_transactional and inline:  # such vectors were stored with their rows
        return Compared([], [], None)
    # The index is read before the rows: a vector without a row is then certainly an orphan.
    indexed = [] if rt.vectors_transactional else rt.vectors.keys(None, space, after, BATCH_SIZE)
    with rt.storage.read() as tx:
        if rt.vectors_transactional:
            indexed = rt.vectors.keys(tx, space, after, BATCH_SIZE)
        rows = tx.rows.page(
            _RECORDS[space.kind], _rows_with_vectors(space, after), BY_KEY, BATCH_SIZE
        )
        queued = _queued_keys(rt, tx, space)
    if queued is None:
        return Compared([], [], None)
    ends = [batch[-1] for batch in (indexed, [row.key for row in rows]) if len(batch) == BATCH_SIZE]
    until = min(ends, default=None)
    within = [row for row in rows if until is None or row.key <= until]
    indexed_keys, row_keys = set(indexed), {row.key for row in within}
    missing = [
        row
        for row in within
        if row.key not in indexed_keys and row.key not in queued and row.content.strip()
    ]
    orphans = [
        key
        for key in indexed
        if key not in row_keys and key not in queued and (until is None or key <= until)
    ]
    if embedder is None or (space.kind == MESSAGE and not rt.settings.app.embed_messages):
        return Compared([], orphans, until)
    return Compared(
        _with_content(embedder, missing) if inline else [row.key for row in missing], orphans, until
    )


def _rows_with_vectors(space: Space, after: int) -> Condition:
    """Condition of the rows that should have a vector in this space."""
    rows = all_of(equals(workspace_key=space.workspace_key), Compare("key", "gt", after))
    return all_of(rows, equals(state=LIVE)) if space.kind == CONCLUSION else rows


def _queued_keys(rt: Runtime, tx: Transaction, space: Space) -> set[int] | None:
    """Keys of rows in pending repair tasks; None if there are too many tasks for a comparison."""
    unit = outbox.repair(rt, space.kind, space.workspace_key, [], []).unit
    pending = tx.tasks.pending(unit, MAX_QUEUED_TASKS)
    if len(pending) == MAX_QUEUED_TASKS:
        return None
    return {
        int(key)
        for task in pending
        for name in ("keys", "orphans")
        for key in task.payload.get(name, [])
    }


def _with_content(embedder: Embedder, rows: Sequence[Any]) -> list[int]:
    """Keys of the rows for which this inline embedder returns a vector other than zero. The others
    correctly have no vector."""
    vectors = embedder.embed([row.content for row in rows]) if rows else []
    return [row.key for row, vector in zip(rows, vectors, strict=True) if vector.any()]


def _ended(rt: Runtime) -> _Progress:
    return _Progress(ended=rt.clock().isoformat())


def _read(rt: Runtime) -> _Progress:
    with rt.storage.read() as tx:
        fact = tx.facts.get(FACT)
    return _Progress(**json.loads(fact)) if fact else _Progress()


def _keep(rt: Runtime, progress: _Progress) -> None:
    value = json.dumps({"space": progress.space, "after": progress.after, "ended": progress.ended})
    rt.storage.write(lambda tx: tx.facts.set(FACT, value))
