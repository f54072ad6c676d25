"""Comparing the vector index with the rows, from time to time: what is missing or left over is
mended by tasks (`pipeline.indexing.repair`).

One process at a time does it. A round goes through all active spaces in order of their keys, a
portion of rows at a time, and remembers in the store how far it came, so that it goes on there
after an interruption, in whichever process.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

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
"""How long a call goes on before other work has its turn."""
MAX_TASKS_READ = 500
"""Pending tasks of a space whose rows are known to be seen to. Where there are more, the space is
not compared this time."""

_RECORDS: dict[str, type[Any]] = {MESSAGE: Message, CONCLUSION: Conclusion, DOCUMENT: Document}


@dataclass(frozen=True, slots=True)
class _Progress:
    space: int = 0
    """Key of the space that is being compared; earlier ones are done."""
    after: int = 0
    """Key of the last row of it that was."""
    ended: str | None = None
    """When the last round did; None while one is under way."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A portion of a space and the index: what the tasks that wait will see to is neither missing
    nor left over."""

    missing: list[int]
    orphans: list[int]
    until: int | None
    """Key up to which the space is compared; None: all of it."""


def look(rt: Runtime) -> float:
    """Begin a round if one is due, or go on with it for a moment. Returns in how many seconds to
    look again.

    An index that is away ends the round: the next one is tried after the ordinary interval. Raises
    `Unavailable` if the store is.
    """
    interval = rt.settings.vector_store.reconciliation_interval_seconds
    mine = lease_owner.start_claim()
    try:
        lease = rt.storage.write(lambda tx: tx.tasks.claim(UNIT, mine, rt.clock(), LEASE_SECONDS))
        if lease is None:
            return interval
        try:
            return _go_on(rt, interval)
        finally:
            rt.storage.write(lambda tx: tx.tasks.release(lease))
    finally:
        lease_owner.end_claim(mine)


def _go_on(rt: Runtime, interval: float) -> float:
    progress = _read(rt)
    if progress.ended is not None:
        waited = (rt.clock() - datetime.fromisoformat(progress.ended)).total_seconds()
        # a round that ended in the future was dated by a clock that was ahead
        if 0 <= waited < interval:
            return interval - waited
        progress = _Progress()
    turn_ends = time.monotonic() + TIME_SLICE_SECONDS
    while True:
        try:
            progress = _step(rt, progress)
        except (
            Exception
        ) as error:  # raised by a plugin: nothing changed, the next round tries again
            log.warning(
                "vectors could not be compared with the rows: %s: %s", type(error).__name__, error
            )
            progress = _ended(rt)
        _keep(rt, progress)
        if progress.ended is not None:
            return interval
        if time.monotonic() >= turn_ends:
            return 0.0


def _step(rt: Runtime, progress: _Progress) -> _Progress:
    with rt.storage.read() as tx:
        further = tx.rows.page(
            Space, all_of(equals(state=ACTIVE), Compare("key", "gte", progress.space)), BY_KEY, 1
        )
    if not further:
        return _ended(rt)
    (space,) = further
    after = progress.after if space.key == progress.space else 0
    compared = compare(rt, space, after)
    if compared.missing or compared.orphans:
        task = outbox.repair(
            rt, space.kind, space.workspace_key, compared.missing, compared.orphans
        )
        rt.storage.write(lambda tx: tx.tasks.add([task]))
        log.warning(
            "vectors of kind %s of workspace %d: %d missing, %d left over; they are being mended",
            *(space.kind, space.workspace_key, len(compared.missing), len(compared.orphans)),
        )
    return (
        _Progress(space.key + 1) if compared.until is None else _Progress(space.key, compared.until)
    )


def compare(rt: Runtime, space: Space, after: int) -> Compared:
    """The next portion of a space, of the rows with greater keys than `after`. Changes nothing.
    Raises what the index and the store do."""
    embedder = rt.embedder_of(space.embedder)
    inline = embedder is not None and Capability.INLINE in embedder.capabilities
    if rt.vectors_transactional and inline:  # such vectors were stored with their rows
        return Compared([], [], None)
    # The index is read before the rows: a vector whose row is not there afterwards has lost it.
    held = [] if rt.vectors_transactional else rt.vectors.keys(None, space, after, BATCH_SIZE)
    with rt.storage.read() as tx:
        if rt.vectors_transactional:
            held = rt.vectors.keys(tx, space, after, BATCH_SIZE)
        rows = tx.rows.page(_RECORDS[space.kind], _wanted(space, after), BY_KEY, BATCH_SIZE)
        seen_to = _seen_to(rt, tx, space)
    if seen_to is None:
        return Compared([], [], None)
    ends = [
        portion[-1] for portion in (held, [row.key for row in rows]) if len(portion) == BATCH_SIZE
    ]
    until = min(ends, default=None)
    within = [row for row in rows if until is None or row.key <= until]
    there, known = set(held), {row.key for row in within}
    missing = [
        row
        for row in within
        if row.key not in there and row.key not in seen_to and row.content.strip()
    ]
    orphans = [
        key
        for key in held
        if key not in known and key not in seen_to and (until is None or key <= until)
    ]
    if embedder is None or (space.kind == MESSAGE and not rt.settings.app.embed_messages):
        return Compared([], orphans, until)
    return Compared(
        _with_content(embedder, missing) if inline else [row.key for row in missing], orphans, until
    )


def _wanted(space: Space, after: int) -> Condition:
    """The rows that are to have a vector in this space."""
    mine = all_of(equals(workspace_key=space.workspace_key), Compare("key", "gt", after))
    return all_of(mine, equals(state=LIVE)) if space.kind == CONCLUSION else mine


def _seen_to(rt: Runtime, tx: Transaction, space: Space) -> set[int] | None:
    """Rows that pending tasks will see to; None if there is so much work that it is not worth
    looking."""
    unit = outbox.repair(rt, space.kind, space.workspace_key, [], []).unit
    pending = tx.tasks.pending(unit, MAX_TASKS_READ)
    if len(pending) == MAX_TASKS_READ:
        return None
    return {
        int(key)
        for task in pending
        for name in ("keys", "orphans")
        for key in task.payload.get(name, [])
    }


def _with_content(embedder: Embedder, rows: Sequence[Any]) -> list[int]:
    """Those in which this embedder, which costs nothing, finds anything: the others have no vector
    by right."""
    vectors = embedder.embed([row.content for row in rows]) if rows else []
    return [row.key for row, vector in zip(rows, vectors, strict=True) if vector.any()]


def _ended(rt: Runtime) -> _Progress:
    return _Progress(ended=rt.clock().isoformat())


def _read(rt: Runtime) -> _Progress:
    with rt.storage.read() as tx:
        kept = tx.facts.get(FACT)
    return _Progress(**json.loads(kept)) if kept else _Progress()


def _keep(rt: Runtime, progress: _Progress) -> None:
    value = json.dumps({"space": progress.space, "after": progress.after, "ended": progress.ended})
    rt.storage.write(lambda tx: tx.facts.set(FACT, value))
