"""Moving workspaces to another embedder while they are served: new vectors are made beside the old
ones, then change places with them.

A workspace is moved under a lease, so that one process at a time does it, and each step looks anew
for what is missing. Work that was interrupted anywhere therefore goes on where it was when it is
begun again.

1. `build`: for each kind a space in state `building` is filled until less than a batch was left,
   then building and active become active and retired in one transaction. Who writes meanwhile goes
   on with the old space; queries go to the active one, whichever that is when they read it.
2. `settle`, a moment later, when all that was under way has ended: rows that were stored just
   before the change get their vectors, and the retired spaces are dropped.

To wait until no row is left would be to wait for a moment in which nobody writes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memservice.domain.errors import ConfigurationError, Unavailable
from memservice.domain.filters import Condition, all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import (
    ACTIVE,
    BUILDING,
    LIVE,
    RETIRED,
    Conclusion,
    Document,
    Lease,
    Message,
    Space,
    Workspace,
)
from memservice.pipeline.handler import backoff
from memservice.pipeline.indexing import embed
from memservice.runtime import Runtime
from memservice.services.indexing import CONCLUSION, DOCUMENT, MESSAGE, Kind
from memservice.services.tasks import lease_owner
from memservice.services.workspaces import not_found
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Embedder
from memservice.spi.llm import ModelFailure
from memservice.spi.storage import Transaction
from memservice.telemetry.context import Reason, embedding_for
from memservice.worker import retention
from memservice.worker.runner import Heartbeat, LeaseLost

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

log = logging.getLogger("memservice.reembed")

RECORDS: dict[Kind, type[Any]] = {MESSAGE: Message, CONCLUSION: Conclusion, DOCUMENT: Document}
BATCH_SIZE = 100
"""Texts that are embedded, and stored, at once."""
GRACE_SECONDS = 2.0
"""After the change, until every request that had read which space is the active one has ended."""
TRIES = 8
"""Of one batch, with the ordinary pauses: some ten minutes, during which an embedder may be
away."""
LOOK_SECONDS = 1.0
"""Between two looks at a workspace that another process is moving."""

Progress = Callable[[int], None]
"""Called with the number of rows that were looked at."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of one kind of vectors of a workspace."""

    kind: Kind
    was: str | None
    """The embedder of the space that was active before, if there was one."""
    made: int
    """Vectors that were made in this run."""


class Erased(Exception):
    """The workspace was deleted while it was moved."""


def unit_of(workspace_key: int) -> str:
    """The unit whose lease the mover of a workspace holds."""
    return f"reembed:{workspace_key}"


def chosen(rt: Runtime, slugs: Sequence[str] = ()) -> list[Workspace]:
    """The workspaces of these ids, or all of them. Raises `NotFound`."""
    with rt.storage.read() as tx:
        if not slugs:
            return tx.rows.page(Workspace, equals(state=ACTIVE))
        found = {slug: tx.workspaces.by_slug(slug) for slug in slugs}
    return [_present(slug, workspace) for slug, workspace in found.items()]


def _present(slug: str, workspace: Workspace | None) -> Workspace:
    if workspace is None:
        raise not_found(slug)
    return workspace


def rows_of(rt: Runtime, target: Embedder, workspace_key: int) -> int:
    """How many rows `build`, and again `settle`, looks at."""
    with rt.storage.read() as tx:
        return sum(
            tx.rows.count(RECORDS[kind], _rows(kind, workspace_key)) for kind in _kinds(rt, target)
        )


@contextmanager
def held(
    rt: Runtime, workspace_key: int, waiting: Callable[[], None] = lambda: None
) -> Iterator[Lease]:
    """The lease on moving a workspace. Waits while another process has it, having called `waiting`
    once."""
    mine = lease_owner.start_claim()
    seconds = rt.settings.deriver.stale_session_timeout_minutes * 60
    told = False
    try:
        while True:
            retention.free_abandoned(rt)
            lease = rt.storage.write(
                lambda tx: tx.tasks.claim(unit_of(workspace_key), mine, rt.clock(), seconds)
            )
            if lease is not None:
                break
            if not told:
                waiting()
                told = True
            time.sleep(LOOK_SECONDS)
        heartbeat = Heartbeat(rt, lease, seconds)
        try:
            yield lease
        finally:
            heartbeat.end()
            rt.storage.write(lambda tx: tx.tasks.release(lease))
    finally:
        lease_owner.end_claim(mine)


def build(
    rt: Runtime, target: Embedder, workspace: Workspace, lease: Lease, progress: Progress
) -> list[Moved]:
    """Give a workspace vectors by the target, and let them change places with those that it is
    answered from. Returns what was moved: nothing if it had been before."""
    _drop_retired(rt, workspace.key)
    moved = []
    # a remote embedder may have to be asked, which no transaction waits for
    dimension = target.dimension
    for kind in RECORDS:
        wanted = kind in _kinds(rt, target)
        before = rt.storage.write(
            lambda tx, k=kind, w=wanted: _begin(rt, tx, lease, workspace, k, target, dimension, w)  # type: ignore[misc]
        )
        if before is None:
            continue
        made = 0
        if before.building is not None:
            made = _fill(rt, target, workspace, before.building, lease, progress)
            rt.storage.write(lambda tx, b=before: _change_places(tx, lease, workspace, b))  # type: ignore[misc]
        moved.append(Moved(kind, before.active.embedder if before.active else None, made))
    return moved


def settle(
    rt: Runtime, target: Embedder, workspace: Workspace, lease: Lease, progress: Progress
) -> int:
    """Make the vectors that the target's active spaces lack, and drop the retired ones. Returns how
    many were made. To be called `GRACE_SECONDS` after `build`."""
    with rt.storage.read() as tx:
        spaces = [
            space
            for space in tx.spaces.of_workspace(workspace.key)
            if space.state == ACTIVE and space.embedder == target.id
        ]
    made = sum(_fill(rt, target, workspace, space, lease, progress) for space in spaces)
    _drop_retired(rt, workspace.key)
    return made


def _kinds(rt: Runtime, target: Embedder) -> Sequence[Kind]:
    """Messages have vectors only by an embedder that understands."""
    messages = Capability.SEMANTIC in target.capabilities and rt.settings.app.embed_messages
    return (MESSAGE, CONCLUSION, DOCUMENT) if messages else (CONCLUSION, DOCUMENT)


def _rows(kind: Kind, workspace_key: int, after: int = 0) -> Condition:
    """The rows of a kind that have vectors."""
    mine = all_of(equals(workspace_key=workspace_key), Compare("key", "gt", after))
    return all_of(mine, equals(state=LIVE)) if kind == CONCLUSION else mine


@dataclass(frozen=True, slots=True)
class _Before:
    active: Space | None
    building: Space | None
    """None where the rows are to have no vectors any more."""


def _begin(
    rt: Runtime,
    tx: Transaction,
    lease: Lease,
    workspace: Workspace,
    kind: Kind,
    target: Embedder,
    dimension: int,
    wanted: bool,
) -> _Before | None:
    """Find or make the space to fill; None if there is nothing to move."""
    _require(tx, lease)
    if tx.workspaces.by_slug(workspace.slug, lock=True) is None:
        return None
    active = tx.spaces.active(workspace.key, kind)
    spaces = [space for space in tx.spaces.of_workspace(workspace.key) if space.kind == kind]
    building = None
    for space in spaces:
        if (
            space.state == BUILDING
            and wanted
            and (space.embedder, space.dimension) == (target.id, dimension)
        ):
            building = space
        elif space.state == BUILDING:
            # of a move to somewhere else that was not finished
            tx.spaces.save(replace(space, state=RETIRED))
    if not wanted:
        if active is None:
            return None
        tx.spaces.save(replace(active, state=RETIRED))
        return _Before(active, None)
    if active is not None and active.embedder == target.id:
        if active.dimension != dimension:
            raise ConfigurationError(
                f"the embedder {target.id!r} makes vectors of dimension {dimension}, but "
                f"those of workspace {workspace.slug!r} by the same "
                f"name have {active.dimension}: another model answers to its name"
            )
        return None
    if active is None and not tx.rows.page(RECORDS[kind], _rows(kind, workspace.key), limit=1):
        return None  # whoever writes first makes the space
    if building is None:
        space = Space(
            workspace_key=workspace.key,
            kind=kind,
            embedder=target.id,
            dimension=dimension,
            state=BUILDING,
            created_at=rt.clock(),
        )
        building = tx.spaces.save(space)
    return _Before(active, building)


def _change_places(tx: Transaction, lease: Lease, workspace: Workspace, before: _Before) -> None:
    """The moment from which a workspace is answered from the new vectors."""
    _require(tx, lease)
    assert before.building is not None
    active = tx.spaces.active(workspace.key, before.building.kind)
    if active is not None:
        tx.spaces.save(replace(active, state=RETIRED))
    if not tx.rows.change(Space, equals(key=before.building.key, state=BUILDING), state=ACTIVE):
        raise Erased(workspace.slug)


def _fill(
    rt: Runtime,
    target: Embedder,
    workspace: Workspace,
    space: Space,
    lease: Lease,
    progress: Progress,
) -> int:
    """Make the vectors that the space lacks, and take out those whose rows are gone; returns how
    many were made. Rows that are stored while the last batch is made stay without."""
    kind: Kind = space.kind  # type: ignore[assignment]  # it is one of the three
    made, after = 0, 0
    while True:
        with rt.storage.read() as tx:
            rows = tx.rows.page(RECORDS[kind], _rows(kind, workspace.key, after), limit=BATCH_SIZE)
            end = rows[-1].key if len(rows) == BATCH_SIZE else None
            inside = None if not rt.vectors_transactional else _keys(rt, tx, space, after, end)
        if inside is None:
            inside = _keys(rt, None, space, after, end)
        missing = [row for row in rows if row.key not in inside and row.content.strip()]
        gone = sorted(inside - {row.key for row in rows})
        if missing or gone:
            vectors = _vectors(rt, target, workspace, space, missing)
            _store(rt, space, lease, kind, missing, vectors, gone)
        made += len(missing)
        progress(len(rows))
        if end is None:
            return made
        after = end


def _keys(
    rt: Runtime, tx: Transaction | None, space: Space, after: int, end: int | None
) -> set[int]:
    """Keys that the space has behind `after`, up to and with `end`."""
    found: set[int] = set()
    while True:
        some = rt.vectors.keys(tx, space, after, limit=BATCH_SIZE)
        found.update(key for key in some if end is None or key <= end)
        if len(some) < BATCH_SIZE or (end is not None and some[-1] >= end):
            return found
        after = some[-1]


def _vectors(
    rt: Runtime, target: Embedder, workspace: Workspace, space: Space, rows: Sequence[embed.Row]
) -> Sequence[Vector]:
    """The rows' vectors, in order. An embedder that fails is asked again after a while; then the
    last error is told."""
    if not rows:
        return []
    for attempt in range(1, TRIES + 1):
        try:
            with embedding_for(Reason("vector_sync", workspace.key, workspace.slug)):
                return embed.vectors_of(rt, space, target, rows)
        except ConfigurationError:
            raise
        except Exception as error:  # whatever a provider raises
            may_pass = not isinstance(error, ModelFailure) or error.retryable
            if attempt == TRIES or not may_pass:
                raise Unavailable(
                    f"the embedder {target.id!r} failed ({type(error).__name__}: {error}). "
                    "Nothing is lost: run this again when it "
                    "answers, and it goes on where it was"
                ) from error
            asked = error.retry_after if isinstance(error, ModelFailure) else None
            pause = max(backoff(rt, attempt), min(asked or 0.0, embed.MAX_REQUESTED_PAUSE))
            log.warning(
                "the embedder %s failed (%s): trying again in %.0f s",
                target.id,
                type(error).__name__,
                pause,
            )
            time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def _store(
    rt: Runtime,
    space: Space,
    lease: Lease,
    kind: Kind,
    rows: Sequence[embed.Row],
    vectors: Sequence[Vector],
    gone: Sequence[int],
) -> None:
    vector_rows = embed.vector_rows(rows, vectors)
    keys = [row.key for row in rows]

    def left(tx: Transaction) -> set[int]:
        """Rows may have been erased, and others stored, since they were read."""
        return {row.key for row in embed.rows_of(tx, kind, [*keys, *gone])}

    def transactionally(tx: Transaction) -> None:
        _require(tx, lease)
        if embed.stored(tx, space) is None:
            raise Erased(space.kind)
        there = left(tx)
        rt.vectors.upsert(tx, space, [row for row in vector_rows if row.key in there])
        rt.vectors.delete(tx, space, [key for key in gone if key not in there])

    if rt.vectors_transactional:
        rt.storage.write(transactionally)
        return
    rt.storage.write(lambda tx: _require(tx, lease))
    rt.vectors.upsert(None, space, vector_rows)
    with rt.storage.read() as tx:
        there = left(tx)
        erased = embed.stored(tx, space) is None
    rt.vectors.delete(None, space, [key for key in [*keys, *gone] if key not in there])
    if erased:
        rt.vectors.drop(None, space)
        raise Erased(space.kind)


def _require(tx: Transaction, lease: Lease) -> None:
    if not tx.tasks.holds(lease):
        raise LeaseLost(lease.unit)


def _drop_retired(rt: Runtime, workspace_key: int) -> None:
    with rt.storage.read() as tx:
        retired: Iterable[Space] = [
            space for space in tx.spaces.of_workspace(workspace_key) if space.state == RETIRED
        ]
    for space in retired:
        if not rt.vectors_transactional:
            rt.vectors.drop(None, space)
        rt.storage.write(lambda tx, space=space: _drop(rt, tx, space))  # type: ignore[misc]


def _drop(rt: Runtime, tx: Transaction, space: Space) -> None:
    if rt.vectors_transactional:
        rt.vectors.drop(tx, space)
    tx.rows.delete(Space, equals(key=space.key))
