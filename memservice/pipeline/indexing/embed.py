"""Embeds rows in the background, if that is too slow for the request path."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from memservice.domain.errors import ConfigurationError
from memservice.domain.filters import equals
from memservice.domain.records import (
    DELETING,
    LIVE,
    RETIRED,
    Conclusion,
    Document,
    Message,
    Session,
    Space,
    Task,
    Workspace,
)
from memservice.pipeline.handler import Handler, InputErased, Outcome, Prepared, backoff, nothing
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.indexing import CONCLUSION, DOCUMENT, MESSAGE
from memservice.services.tasks import kinds
from memservice.spi.embedding import Embedder
from memservice.spi.llm import ModelFailure
from memservice.spi.storage import Transaction
from memservice.spi.vectors import VectorRow
from memservice.telemetry.context import Reason, embedding_for

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

Row = Message | Conclusion | Document

log = logging.getLogger("memservice.pipeline")

MAX_REQUESTED_PAUSE = 3600.0

MAX_ROWS = 100
"""Texts per call of the embedder."""


RECORDS: Mapping[str, type[Row]] = {
    MESSAGE: Message,
    CONCLUSION: Conclusion,
    DOCUMENT: Document,
}
"""Records that have vectors, by kind."""
_NONE: Mapping[int, int] = MappingProxyType({})


class SpaceReplaced(Exception):
    """The workspace was moved to another embedder (`reembed`) while the old one computed vectors.
    The next try uses the new one."""


def stored(tx: Transaction, space: Space) -> Space | None:
    """The stored state of a space; None if it no longer exists."""
    return tx.rows.get(Space, equals(key=space.key))


def _require_in_use(space: Space | None) -> None:
    if space is None or space.state == RETIRED:
        raise SpaceReplaced("the workspace was moved to another embedder during the work")


class Embed(Handler):
    """Handler of `embed` tasks: each has the keys of some rows of one kind. A repetition changes
    nothing."""

    kind = kinds.EMBED

    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        rows = 0
        for number, task in enumerate(pending):
            rows += len(task.payload.get("keys", []))
            if rows > MAX_ROWS and number > 0:
                return number
        return len(pending)

    def retry_after(self, rt: Runtime, attempts: int, error: Exception) -> float | None:
        is_outage = isinstance(error, ModelFailure) and error.fault == "provider"
        if attempts >= rt.settings.worker.max_attempts and not is_outage:
            return None
        requested = error.retry_after if isinstance(error, ModelFailure) else None
        return max(backoff(rt, attempts), min(requested or 0.0, MAX_REQUESTED_PAUSE))

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        kind, workspace_key = tasks[0].payload["kind"], tasks[0].workspace_key or 0
        keys = sorted({int(key) for task in tasks for key in task.payload.get("keys", [])})
        with rt.storage.read() as tx:
            rows = rows_of(tx, kind, keys)
            workspace = tx.workspaces.by_key(workspace_key)
            spaces = tx.spaces.of_workspace(workspace_key)
        if _is_erased(workspace):
            return nothing(skipped="the workspace is being erased")
        if not rt.vectors_transactional and (erased := set(keys) - {row.key for row in rows}):
            # An interrupted try may have added them.
            indexing.remove_vectors(rt, None, kind, spaces, sorted(erased))
        if not rows:
            return nothing(skipped="the rows no longer exist")
        purpose = "message_create" if kind == MESSAGE else "create_observations"
        with embedding_for(Reason(purpose, workspace_key, workspace.slug if workspace else None)):
            space, embedder = _space(rt, workspace_key, kind)
            if tasks[0].attempts and not rt.vectors_transactional:
                # fails while the index is unavailable, before a further call of the embedder
                rt.vectors.count(None, space)
            vectors = vectors_of(rt, space, embedder, rows, _like(tasks))
        new = indexing.vector_rows(rows, vectors)
        if not rt.vectors_transactional:
            _require_in_use(add_outside(rt, space, rows, new))

        def store(tx: Transaction) -> Outcome:
            if rt.vectors_transactional:
                _require_in_use(stored(tx, space))
                # Rows may have been erased since they were read. They are locked, so that an
                # erasure cannot overtake the change of their index.
                tx.locked(RECORDS[kind], keys)
                existing = {row.key for row in rows_of(tx, kind, keys)}
                rt.vectors.upsert(tx, space, [row for row in new if row.key in existing])
            return {"embedded": len(new)}

        return Prepared(store)


def add_outside(
    rt: Runtime, space: Space, rows: Sequence[Row], vectors: Sequence[VectorRow]
) -> Space | None:
    """Add vectors of rows to an index outside the storage, without those of rows that were erased
    or changed since they were read. Returns the stored space, None if it no longer exists.

    Call it while holding the lease of a unit that `services.erasure.embedding` names: an erasure
    waits for it, so that it finds what an interrupted call added.
    """
    rt.vectors.upsert(None, space, vectors)
    with rt.storage.read() as tx:
        current = stored(tx, space)
        unchanged = _unchanged(tx, space, rows)
    if invalid := [row.key for row in rows if row.key not in unchanged]:
        rt.vectors.delete(None, space, invalid)
    if current is None:
        rt.vectors.drop(None, space)  # it had been dropped, and `upsert` created it again
    return current


def _unchanged(tx: Transaction, space: Space, rows: Sequence[Row]) -> set[int]:
    """Keys of the rows that are as they were read. Rows of a session or workspace that is being
    erased do not count: their vectors may have been removed already."""
    if _is_erased(tx.workspaces.by_key(space.workspace_key)):
        return set()
    contents = {row.key: row.content for row in rows_of(tx, space.kind, [row.key for row in rows])}
    sessions = {row.key: row.session_key for row in rows if not isinstance(row, Document)}
    keys = tuple({key for key in sessions.values() if key is not None})
    is_erased = equals(key=keys, state=DELETING)
    erased = {session.key for session in tx.rows.page(Session, is_erased)} if keys else set()
    return {
        row.key
        for row in rows
        if contents.get(row.key) == row.content and sessions.get(row.key) not in erased
    }


def _is_erased(workspace: Workspace | None) -> bool:
    return workspace is None or workspace.state == DELETING


def _like(tasks: Sequence[Task]) -> dict[int, int]:
    """Keys of rows, with the key of another row that has the same text."""
    pairs = [
        zip(task.payload["keys"], task.payload["like"], strict=True)
        for task in tasks
        if "like" in task.payload
    ]
    return {int(key): int(other) for pair in pairs for key, other in pair}


def vectors_of(
    rt: Runtime,
    space: Space,
    embedder: Embedder,
    rows: Sequence[Row],
    like: Mapping[int, int] = _NONE,
) -> Sequence[Vector]:
    """The vectors of rows, in order: copied if there is one of the same text, else computed by the
    embedder."""
    copied: dict[int, Vector] = {}
    if like:
        with rt.storage.read() as tx:
            copied = rt.vectors.fetch(rt.beside(tx), space, list(like.values()))
    new = [row for row in rows if like.get(row.key) not in copied]
    embedded = (
        dict(
            zip((row.key for row in new), embedder.embed([row.content for row in new]), strict=True)
        )
        if new
        else {}
    )
    if wrong_dimensions := {len(vector) for vector in embedded.values()} - {space.dimension}:
        raise ConfigurationError(
            f"the embedder {embedder.id!r} returns vectors of dimension {wrong_dimensions.pop()}, "
            f"but those of this workspace have {space.dimension}: "
            "the endpoint serves another model under this name"
        )
    return [embedded[row.key] if row.key in embedded else copied[like[row.key]] for row in rows]


def rows_of(tx: Transaction, kind: str, keys: Sequence[int]) -> Sequence[Row]:
    """The rows with these keys that should have vectors."""
    if kind == CONCLUSION:
        return [row for row in tx.conclusions.by_keys(keys).values() if row.state == LIVE]
    if kind == DOCUMENT:
        return tx.rows.page(Document, equals(key=tuple(keys)))
    return list(tx.messages.by_keys(keys).values())


def _space(rt: Runtime, workspace_key: int, kind: indexing.Kind) -> tuple[Space, Embedder]:
    """The active space for rows of this kind, and its embedder. The first task of a workspace
    creates the space."""
    with rt.storage.read() as tx:
        space = tx.spaces.active(workspace_key, kind)
    if space is None:
        # A remote embedder may need a call to determine its dimension: not inside a transaction.
        dimension = rt.embedder.dimension
        space = rt.storage.write(lambda tx: _first_space(rt, tx, workspace_key, kind))
        log.info(
            "vectors of kind %s of workspace %d come from %s, dimension %d",
            kind,
            workspace_key,
            rt.embedder.id,
            dimension,
        )
    embedder = rt.embedder_of(space.embedder)
    if embedder is None:
        raise ConfigurationError(
            f"the vectors of this workspace are from the embedder {space.embedder!r}, "
            "which this process cannot open; "
            f"the configured one is {rt.embedder.id!r}"
        )
    return space, embedder


def _first_space(rt: Runtime, tx: Transaction, workspace_key: int, kind: indexing.Kind) -> Space:
    if _is_erased(tx.workspaces.by_key(workspace_key, lock=True)):
        raise InputErased
    return tx.spaces.active(workspace_key, kind) or indexing.new_space(rt, tx, workspace_key, kind)
