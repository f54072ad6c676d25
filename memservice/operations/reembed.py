"""Moving workspaces to another embedder while they are in use: new vectors are created beside the
old ones, then replace them.

A workspace is moved under a lease, so that one process at a time moves it, and each step searches
again for missing vectors. So interrupted work continues where it stopped.

1. `build`: for each kind, a space in state `building` is filled until less than a batch remains,
   then building and active become active and retired in one transaction. Until then, writes go to
   the old space; queries use the space that is active when they read it.
2. `settle`, a moment later, when all requests from before the switch have ended: rows that were
   stored just before it get their vectors, and the retired spaces are dropped.

`build` does not wait until no row remains: with steady writes, that moment might never come.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.errors import ConfigurationError, Unavailable
from memservice.domain.filters import Condition, all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import (
    ACTIVE,
    BUILDING,
    DELETING,
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
from memservice.services import indexing
from memservice.services.indexing import CONCLUSION, DOCUMENT, MESSAGE, Kind
from memservice.services.tasks import lease_owner, outbox
from memservice.services.workspaces import not_found
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Embedder
from memservice.spi.llm import ModelFailure
from memservice.spi.storage import Transaction
from memservice.telemetry.context import Reason, embedding_for
from memservice.worker import retention
from memservice.worker.lease_heartbeat import LeaseHeartbeat
from memservice.worker.runner import LeaseLost

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

log = logging.getLogger("memservice.reembed")

RECORDS: dict[Kind, type[Any]] = {MESSAGE: Message, CONCLUSION: Conclusion, DOCUMENT: Document}
BATCH_SIZE = 100
"""Number of texts that are embedded, and stored, at once."""
GRACE_SECONDS = 2.0
"""Time after the switch until all requests that had read the previous active space have ended."""
TRIES = 8
"""Tries of one batch, with the ordinary pauses: they bridge an outage of the embedder of about ten
minutes."""
LOOK_SECONDS = 1.0
"""Time between two checks of a workspace that another process is moving."""

Progress = Callable[[int], None]
"""Called with the number of processed rows."""


class Moved(Struct, frozen=True):
    """The result for one kind of vectors of a workspace."""

    kind: Kind
    previous: str | None
    """The embedder of the previously active space, if there was one."""
    created: int
    """Number of vectors that this run created."""


class Erased(Exception):
    """The workspace was deleted while it was moved."""


def chosen(rt: Runtime, slugs: Sequence[str] = ()) -> list[Workspace]:
    """The workspaces of these ids, or all of them. Raises `NotFound`."""
    with rt.storage.read() as tx:
        if not slugs:
            return tx.rows.page(Workspace, equals(state=ACTIVE))
        workspaces = {slug: tx.workspaces.by_slug(slug) for slug in slugs}
    return [_present(slug, workspace) for slug, workspace in workspaces.items()]


def _present(slug: str, workspace: Workspace | None) -> Workspace:
    if workspace is None:
        raise not_found(slug)
    return workspace


def rows_of(rt: Runtime, target: Embedder, workspace_key: int) -> int:
    """Number of rows that `build`, and again `settle`, processes."""
    with rt.storage.read() as tx:
        return sum(
            tx.rows.count(RECORDS[kind], _rows(kind, workspace_key)) for kind in _kinds(rt, target)
        )


@contextmanager
def hold_lease(
    rt: Runtime, workspace_key: int, waiting: Callable[[], None] = lambda: None
) -> Iterator[Lease]:
    """The lease on moving a workspace. While another process holds it, calls `waiting` once and
    waits."""
    mine = lease_owner.start_claim()
    seconds = rt.settings.deriver.stale_session_timeout_minutes * 60
    has_called = False
    try:
        while True:
            retention.free_abandoned(rt)
            lease = rt.storage.write(
                lambda tx: tx.tasks.claim(
                    outbox.reembed_unit(workspace_key), mine, rt.clock(), seconds
                )
            )
            if lease is not None:
                break
            if not has_called:
                waiting()
                has_called = True
            time.sleep(LOOK_SECONDS)
        heartbeat = LeaseHeartbeat(rt, lease, seconds)
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
    """Create vectors of a workspace with the target, and switch to them. Returns the moved kinds:
    none if it was moved before."""
    _drop_retired(rt, workspace.key)
    moved = []
    # may call a remote embedder, so before the transaction
    dimension = target.dimension
    for kind in RECORDS:
        has_vectors = kind in _kinds(rt, target)
        before = rt.storage.write(
            lambda tx, k=kind, w=has_vectors: _begin(  # type: ignore[misc]
                rt,
                tx,
                lease,
                workspace,
                k,  # pyrefly: ignore[bad-argument-type]
                target,
                dimension,
                w,
            )
        )
        if before is None:
            continue
        created = 0
        if before.building is not None:
            created = _fill(rt, target, workspace, before.building, lease, progress)
            rt.storage.write(lambda tx, b=before: _switch(tx, lease, workspace, b))  # type: ignore[misc]
        moved.append(Moved(kind, before.active.embedder if before.active else None, created))
    return moved


def settle(
    rt: Runtime, target: Embedder, workspace: Workspace, lease: Lease, progress: Progress
) -> int:
    """Create the vectors that the target's active spaces lack, and drop the retired spaces. Returns
    the number of created vectors. Call it `GRACE_SECONDS` after `build`."""
    with rt.storage.read() as tx:
        spaces = [
            space
            for space in tx.spaces.of_workspace(workspace.key)
            if space.state == ACTIVE and space.embedder == target.id
        ]
    created = sum(_fill(rt, target, workspace, space, lease, progress) for space in spaces)
    _drop_retired(rt, workspace.key)
    return created


def _kinds(rt: Runtime, target: Embedder) -> Sequence[Kind]:
    """Messages have vectors only with a semantic embedder, and if the settings enable them."""
    messages = Capability.SEMANTIC in target.capabilities and rt.settings.app.embed_messages
    return (MESSAGE, CONCLUSION, DOCUMENT) if messages else (CONCLUSION, DOCUMENT)


def _rows(kind: Kind, workspace_key: int, after: int = 0) -> Condition:
    """The rows of a kind that have vectors."""
    mine = all_of(equals(workspace_key=workspace_key), Compare("key", "gt", after))
    return all_of(mine, equals(state=LIVE)) if kind == CONCLUSION else mine


class _Spaces(Struct, frozen=True):
    active: Space | None
    building: Space | None
    """None if the rows get no vectors any more."""


def _begin(
    rt: Runtime,
    tx: Transaction,
    lease: Lease,
    workspace: Workspace,
    kind: Kind,
    target: Embedder,
    dimension: int,
    has_vectors: bool,
) -> _Spaces | None:
    """Find or create the space to fill; None if there is nothing to move."""
    _require(tx, lease)
    if tx.workspaces.by_slug(workspace.slug, lock=True) is None:
        return None
    active = tx.spaces.active(workspace.key, kind)
    spaces = [space for space in tx.spaces.of_workspace(workspace.key) if space.kind == kind]
    building = None
    for space in spaces:
        if (
            space.state == BUILDING
            and has_vectors
            and (space.embedder, space.dimension) == (target.id, dimension)
        ):
            building = space
        elif space.state == BUILDING:
            # of an unfinished move to another embedder
            tx.spaces.save(replace(space, state=RETIRED))
    if not has_vectors:
        if active is None:
            return None
        tx.spaces.save(replace(active, state=RETIRED))
        return _Spaces(active, None)
    if active is not None and active.embedder == target.id:
        if active.dimension != dimension:
            raise ConfigurationError(
                f"the embedder {target.id!r} creates vectors of dimension {dimension}, but its "
                f"vectors of workspace {workspace.slug!r} have dimension {active.dimension}: "
                "another model has the same name"
            )
        return None
    if active is None and not tx.rows.page(RECORDS[kind], _rows(kind, workspace.key), limit=1):
        return None  # the first write creates the space
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
    return _Spaces(active, building)


def _switch(tx: Transaction, lease: Lease, workspace: Workspace, before: _Spaces) -> None:
    """Switch the workspace to the new vectors."""
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
    """Create the vectors that the space lacks, and remove those without a row; returns the number
    of created ones. Rows that are stored during the last batch get none."""
    kind: Kind = space.kind  # type: ignore[assignment]  # it is one of the three
    created, after = 0, 0
    while True:
        with rt.storage.read() as tx:
            rows = tx.rows.page(RECORDS[kind], _rows(kind, workspace.key, after), limit=BATCH_SIZE)
            end = rows[-1].key if len(rows) == BATCH_SIZE else None
            inside = None if not rt.vectors_transactional else _keys(rt, tx, space, after, end)
        if inside is None:
            inside = _keys(rt, None, space, after, end)
        missing = [row for row in rows if row.key not in inside and row.content.strip()]
        stale = sorted(inside - {row.key for row in rows})
        if missing or stale:
            vectors = _vectors(rt, target, workspace, space, missing)
            _store(rt, space, lease, kind, missing, vectors, stale)
        created += len(missing)
        progress(len(rows))
        if end is None:
            return created
        after = end


def _keys(
    rt: Runtime, tx: Transaction | None, space: Space, after: int, end: int | None
) -> set[int]:
    """Keys in the space after `after`, up to and including `end`."""
    keys: set[int] = set()
    while True:
        some = rt.vectors.keys(tx, space, after, limit=BATCH_SIZE)
        keys.update(key for key in some if end is None or key <= end)
        if len(some) < BATCH_SIZE or (end is not None and some[-1] >= end):
            return keys
        after = some[-1]


def _vectors(
    rt: Runtime, target: Embedder, workspace: Workspace, space: Space, rows: Sequence[embed.Row]
) -> Sequence[Vector]:
    """The rows' vectors, in order. If the embedder fails, retries after a pause; the last error is
    raised as `Unavailable`."""
    if not rows:
        return []
    for attempt in range(1, TRIES + 1):
        try:
            with embedding_for(Reason("vector_sync", workspace.key, workspace.slug)):
                return embed.vectors_of(rt, space, target, rows)
        except ConfigurationError:
            raise
        except Exception as error:  # a provider may raise anything
            may_pass = not isinstance(error, ModelFailure) or error.retryable
            if attempt == TRIES or not may_pass:
                raise Unavailable(
                    f"the embedder {target.id!r} failed ({type(error).__name__}: {error}). "
                    "Nothing is lost: run this again when the embedder "
                    "works, and it continues where it stopped"
                ) from error
            requested = error.retry_after if isinstance(error, ModelFailure) else None
            pause = max(backoff(rt, attempt), min(requested or 0.0, embed.MAX_REQUESTED_PAUSE))
            log.warning(
                "the embedder %s failed (%s): next try in %.0f s",
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
    stale: Sequence[int],
) -> None:
    vector_rows = indexing.vector_rows(rows, vectors)
    keys = [row.key for row in rows]

    def left(tx: Transaction) -> set[int]:
        """Rows may have been erased, and others stored, since they were read."""
        return {row.key for row in embed.rows_of(tx, kind, [*keys, *stale])}

    def transactionally(tx: Transaction) -> None:
        _require(tx, lease)
        if embed.stored(tx, space) is None:
            raise Erased(space.kind)
        there = left(tx)
        rt.vectors.upsert(tx, space, [row for row in vector_rows if row.key in there])
        rt.vectors.delete(tx, space, [key for key in stale if key not in there])

    if rt.vectors_transactional:
        rt.storage.write(transactionally)
        return
    rt.storage.write(lambda tx: _require(tx, lease))
    row_keys = embed.add_outside(rt, space, rows, vector_rows)
    with rt.storage.read() as tx:
        there = left(tx)
        workspace = tx.workspaces.by_key(space.workspace_key)
    if orphans := [key for key in stale if key not in there]:
        rt.vectors.delete(None, space, orphans)
    if row_keys is None or workspace is None or workspace.state == DELETING:
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
