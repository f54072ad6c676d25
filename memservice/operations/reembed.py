"""Moving workspaces to another embedder while they are served: new vectors are made beside the old ones, then change places with them.

A workspace is moved under a lease, so that one process at a time does it, and each step looks anew for what is missing. Work that was
interrupted anywhere therefore goes on where it was when it is begun again.

1. `build`: for each kind a space in state `building` is filled until less than a batch was left, then building and active become active
   and retired in one transaction. Who writes meanwhile goes on with the old space; queries go to the active one, whichever that is when
   they read it.
2. `settle`, a moment later, when all that was under way has ended: rows that were stored just before the change get their vectors, and the
   retired spaces are dropped.

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
from memservice.domain.filters import Node, all_of, where
from memservice.domain.filters.ast import Compare
from memservice.domain.records import ACTIVE, BUILDING, LIVE, RETIRED, Conclusion, Document, Lease, Message, Space, Workspace
from memservice.pipeline.handler import backoff
from memservice.pipeline.indexing import embed
from memservice.runtime import Runtime
from memservice.services.indexing import CONCLUSION, DOCUMENT, MESSAGE, Kind
from memservice.services.tasks import lease_owner
from memservice.services.workspaces import not_found
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Embedder
from memservice.spi.llm import ModelFailure
from memservice.spi.storage import View
from memservice.telemetry.context import Reason, embedding_for
from memservice.worker import retention
from memservice.worker.runner import (
    Heartbeat,
    LeaseLost,
)

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

log = logging.getLogger("memservice.reembed")

RECORDS: dict[Kind, type[Any]] = {MESSAGE: Message, CONCLUSION: Conclusion, DOCUMENT: Document}
ROWS_AT_ONCE = 100
"""Texts that are embedded, and stored, at once."""
GRACE_SECONDS = 2.0
"""After the change, until every request that had read which space is the active one has ended."""
TRIES = 8
"""Of one batch, with the ordinary pauses: some ten minutes, during which an embedder may be away."""
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


def unit_of(workspace: int) -> str:
    """The unit whose lease the mover of a workspace holds."""
    return f"reembed:{workspace}"


def chosen(rt: Runtime, slugs: Sequence[str] = ()) -> list[Workspace]:
    """The workspaces of these ids, or all of them. Raises `NotFound`."""
    with rt.storage.read() as view:
        if not slugs:
            return view.rows.page(Workspace, where(state=ACTIVE))
        found = {slug: view.workspaces.by_slug(slug) for slug in slugs}
    return [_present(slug, place) for slug, place in found.items()]


def _present(slug: str, place: Workspace | None) -> Workspace:
    if place is None:
        raise not_found(slug)
    return place


def rows_of(rt: Runtime, target: Embedder, workspace: int) -> int:
    """How many rows `build`, and again `settle`, looks at."""
    with rt.storage.read() as view:
        return sum(view.rows.count(RECORDS[kind], _rows(kind, workspace)) for kind in _kinds(rt, target))


@contextmanager
def held(rt: Runtime, workspace: int, waiting: Callable[[], None] = lambda: None) -> Iterator[Lease]:
    """The lease on moving a workspace. Waits while another process has it, having called `waiting` once."""
    mine = lease_owner.this_process()
    seconds = rt.settings.deriver.stale_session_timeout_minutes * 60
    told = False
    try:
        while True:
            retention.free_abandoned(rt)
            lease = rt.storage.write(lambda view: view.tasks.claim(unit_of(workspace), mine, rt.clock(), seconds))
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
            rt.storage.write(lambda view: view.tasks.release(lease))
    finally:
        lease_owner.ended(mine)


def build(rt: Runtime, target: Embedder, place: Workspace, lease: Lease, progress: Progress) -> list[Moved]:
    """Give a workspace vectors by the target, and let them change places with those that it is answered from. Returns what was moved:
    nothing if it had been before."""
    _drop_retired(rt, place.key)
    moved = []
    dimension = target.dimension  # a remote embedder may have to be asked, which no transaction waits for
    for kind in RECORDS:
        wanted = kind in _kinds(rt, target)
        before = rt.storage.write(lambda view, k=kind, w=wanted: _begin(rt, view, lease, place, k, target, dimension, w))  # type: ignore[misc]
        if before is None:
            continue
        made = 0
        if before.building is not None:
            made = _fill(rt, target, place, before.building, lease, progress)
            rt.storage.write(lambda view, b=before: _change_places(view, lease, place, b))  # type: ignore[misc]
        moved.append(Moved(kind, before.active.embedder if before.active else None, made))
    return moved


def settle(rt: Runtime, target: Embedder, place: Workspace, lease: Lease, progress: Progress) -> int:
    """Make the vectors that the target's active spaces lack, and drop the retired ones. Returns how many were made. To be called
    `GRACE_SECONDS` after `build`."""
    with rt.storage.read() as view:
        spaces = [space for space in view.spaces.of_workspace(place.key) if space.state == ACTIVE and space.embedder == target.id]
    made = sum(_fill(rt, target, place, space, lease, progress) for space in spaces)
    _drop_retired(rt, place.key)
    return made


def _kinds(rt: Runtime, target: Embedder) -> Sequence[Kind]:
    """Messages have vectors only by an embedder that understands."""
    messages = Capability.SEMANTIC in target.capabilities and rt.settings.app.embed_messages
    return (MESSAGE, CONCLUSION, DOCUMENT) if messages else (CONCLUSION, DOCUMENT)


def _rows(kind: Kind, workspace: int, after: int = 0) -> Node:
    """The rows of a kind that have vectors."""
    mine = all_of(where(workspace_key=workspace), Compare("key", "gt", after))
    return all_of(mine, where(state=LIVE)) if kind == CONCLUSION else mine


@dataclass(frozen=True, slots=True)
class _Before:
    active: Space | None
    building: Space | None
    """None where the rows are to have no vectors any more."""


def _begin(
    rt: Runtime, view: View, lease: Lease, place: Workspace, kind: Kind, target: Embedder, dimension: int, wanted: bool
) -> _Before | None:
    """Find or make the space to fill; None if there is nothing to move."""
    _require(view, lease)
    if view.workspaces.by_slug(place.slug, lock=True) is None:
        return None
    active = view.spaces.active(place.key, kind)
    spaces = [space for space in view.spaces.of_workspace(place.key) if space.kind == kind]
    building = None
    for space in spaces:
        if space.state == BUILDING and wanted and (space.embedder, space.dimension) == (target.id, dimension):
            building = space
        elif space.state == BUILDING:
            view.spaces.save(replace(space, state=RETIRED))  # of a move to somewhere else that was not finished
    if not wanted:
        if active is None:
            return None
        view.spaces.save(replace(active, state=RETIRED))
        return _Before(active, None)
    if active is not None and active.embedder == target.id:
        if active.dimension != dimension:
            raise ConfigurationError(
                f"the embedder {target.id!r} makes vectors of dimension {dimension}, but those of workspace {place.slug!r} by the same "
                f"name have {active.dimension}: another model answers to its name"
            )
        return None
    if active is None and not view.rows.page(RECORDS[kind], _rows(kind, place.key), limit=1):
        return None  # whoever writes first makes the space
    if building is None:
        space = Space(workspace_key=place.key, kind=kind, embedder=target.id, dimension=dimension, state=BUILDING, created_at=rt.clock())
        building = view.spaces.save(space)
    return _Before(active, building)


def _change_places(view: View, lease: Lease, place: Workspace, before: _Before) -> None:
    """The moment from which a workspace is answered from the new vectors."""
    _require(view, lease)
    assert before.building is not None
    active = view.spaces.active(place.key, before.building.kind)
    if active is not None:
        view.spaces.save(replace(active, state=RETIRED))
    if not view.rows.change(Space, where(key=before.building.key, state=BUILDING), state=ACTIVE):
        raise Erased(place.slug)


def _fill(rt: Runtime, target: Embedder, place: Workspace, space: Space, lease: Lease, progress: Progress) -> int:
    """Make the vectors that the space lacks, and take out those whose rows are gone; returns how many were made. Rows that are stored
    while the last batch is made stay without."""
    kind: Kind = space.kind  # type: ignore[assignment]  # it is one of the three
    made, after = 0, 0
    while True:
        with rt.storage.read() as view:
            rows = view.rows.page(RECORDS[kind], _rows(kind, place.key, after), limit=ROWS_AT_ONCE)
            end = rows[-1].key if len(rows) == ROWS_AT_ONCE else None
            inside = None if not rt.vectors_transactional else _keys(rt, view, space, after, end)
        if inside is None:
            inside = _keys(rt, None, space, after, end)
        missing = [row for row in rows if row.key not in inside and row.content.strip()]
        gone = sorted(inside - {row.key for row in rows})
        if missing or gone:
            vectors = _vectors(rt, target, place, space, missing)
            _store(rt, space, lease, kind, missing, vectors, gone)
        made += len(missing)
        progress(len(rows))
        if end is None:
            return made
        after = end


def _keys(rt: Runtime, view: View | None, space: Space, after: int, end: int | None) -> set[int]:
    """Keys that the space has behind `after`, up to and with `end`."""
    found: set[int] = set()
    while True:
        some = rt.vectors.keys(view, space, after, limit=ROWS_AT_ONCE)
        found.update(key for key in some if end is None or key <= end)
        if len(some) < ROWS_AT_ONCE or (end is not None and some[-1] >= end):
            return found
        after = some[-1]


def _vectors(rt: Runtime, target: Embedder, place: Workspace, space: Space, rows: Sequence[embed.Row]) -> Sequence[Vector]:
    """The rows' vectors, in order. An embedder that fails is asked again after a while; then the last error is told."""
    if not rows:
        return []
    for attempt in range(1, TRIES + 1):
        try:
            with embedding_for(Reason("vector_sync", place.key, place.slug)):
                return embed.made(rt, space, target, rows)
        except ConfigurationError:
            raise
        except Exception as error:  # whatever a provider raises
            may_pass = not isinstance(error, ModelFailure) or error.retryable
            if attempt == TRIES or not may_pass:
                raise Unavailable(
                    f"the embedder {target.id!r} failed ({type(error).__name__}: {error}). Nothing is lost: run this again when it "
                    "answers, and it goes on where it was"
                ) from error
            asked = error.retry_after if isinstance(error, ModelFailure) else None
            pause = max(backoff(rt, attempt), min(asked or 0.0, embed.LONGEST_ASKED_PAUSE))
            log.warning("the embedder %s failed (%s): trying again in %.0f s", target.id, type(error).__name__, pause)
            time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def _store(
    rt: Runtime, space: Space, lease: Lease, kind: Kind, rows: Sequence[embed.Row], vectors: Sequence[Vector], gone: Sequence[int]
) -> None:
    made = embed.vector_rows(rows, vectors)
    keys = [row.key for row in rows]

    def left(view: View) -> set[int]:
        """Rows may have been erased, and others stored, since they were read."""
        return {row.key for row in embed.rows_of(view, kind, [*keys, *gone])}

    def transactionally(view: View) -> None:
        _require(view, lease)
        if embed.stored(view, space) is None:
            raise Erased(space.kind)
        there = left(view)
        rt.vectors.upsert(view, space, [row for row in made if row.key in there])
        rt.vectors.delete(view, space, [key for key in gone if key not in there])

    if rt.vectors_transactional:
        rt.storage.write(transactionally)
        return
    rt.storage.write(lambda view: _require(view, lease))
    rt.vectors.upsert(None, space, made)
    with rt.storage.read() as view:
        there = left(view)
        erased = embed.stored(view, space) is None
    rt.vectors.delete(None, space, [key for key in [*keys, *gone] if key not in there])
    if erased:
        rt.vectors.drop(None, space)
        raise Erased(space.kind)


def _require(view: View, lease: Lease) -> None:
    if not view.tasks.holds(lease):
        raise LeaseLost(lease.unit)


def _drop_retired(rt: Runtime, workspace: int) -> None:
    with rt.storage.read() as view:
        retired: Iterable[Space] = [space for space in view.spaces.of_workspace(workspace) if space.state == RETIRED]
    for space in retired:
        if not rt.vectors_transactional:
            rt.vectors.drop(None, space)
        rt.storage.write(lambda view, space=space: _drop(rt, view, space))  # type: ignore[misc]


def _drop(rt: Runtime, view: View, space: Space) -> None:
    if rt.vectors_transactional:
        rt.vectors.drop(view, space)
    view.rows.delete(Space, where(key=space.key))
