"""Giving rows their vectors, where that is not for the request path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memservice.domain.errors import ConfigurationError
from memservice.domain.records import LIVE, Conclusion, Message, Space, Task
from memservice.pipeline.handler import Outcome, Prepared, nothing
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.indexing import CONCLUSION
from memservice.spi.embedding import Embedder
from memservice.spi.storage import View
from memservice.spi.vectors import VectorRow

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

MAX_ROWS = 100
"""Texts that are embedded at once."""


class Embed:
    """Handler of `embed` tasks: each names the keys of some rows of one kind. Doing one twice changes nothing."""

    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        rows = 0
        for number, task in enumerate(pending):
            rows += len(task.payload.get("keys", []))
            if rows > MAX_ROWS and number > 0:
                return number
        return len(pending)

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        kind, workspace = tasks[0].payload["kind"], tasks[0].workspace_key or 0
        keys = sorted({int(key) for task in tasks for key in task.payload.get("keys", [])})
        with rt.storage.read() as view:
            rows = _rows(view, kind, keys)
        if not rows:
            return nothing(skipped="the rows are gone")
        space = rt.storage.write(lambda view: _space(rt, view, workspace, kind))
        embedder = rt.embedder_of(space.embedder)
        if embedder is None:
            raise ConfigurationError(
                f"the vectors of this workspace were made by the embedder {space.embedder!r}, which this process cannot open; "
                f"configured is {rt.embedder.id!r}"
            )
        made = _vectors_of(rows, _made(rt, space, embedder, rows, _like(tasks)))
        if not rt.vectors_transactional:
            rt.vectors.upsert(None, space, made)
            with rt.storage.read() as view:
                left = {row.key for row in _rows(view, kind, keys)}
            rt.vectors.delete(None, space, [row.key for row in made if row.key not in left])

        def store(view: View) -> Outcome:
            if rt.vectors_transactional:
                # Rows may have been erased since they were read.
                left = {row.key for row in _rows(view, kind, keys)}
                rt.vectors.upsert(view, space, [row for row in made if row.key in left])
            return {"embedded": len(made)}

        return Prepared(store)


def _like(tasks: Sequence[Task]) -> dict[int, int]:
    """Rows whose text another row has as well, by key."""
    pairs = [zip(task.payload["keys"], task.payload["like"], strict=True) for task in tasks if "like" in task.payload]
    return {int(key): int(other) for pair in pairs for key, other in pair}


def _made(rt: Runtime, space: Space, embedder: Embedder, rows: Sequence[Message | Conclusion], like: Mapping[int, int]) -> Sequence[Vector]:
    """The rows' vectors, in order: copied where there is one of the same text, else asked of the embedder."""
    known: dict[int, Vector] = {}
    if like:
        with rt.storage.read() as view:
            known = rt.vectors.fetch(rt.beside(view), space, list(like.values()))
    new = [row for row in rows if like.get(row.key) not in known]
    asked = dict(zip((row.key for row in new), embedder.embed([row.content for row in new]), strict=True)) if new else {}
    return [asked[row.key] if row.key in asked else known[like[row.key]] for row in rows]


def _vectors_of(rows: Sequence[Message | Conclusion], vectors: Sequence[Vector]) -> list[VectorRow]:
    """`rows` are of one kind."""
    conclusions = [row for row in rows if isinstance(row, Conclusion)]
    messages = [row for row in rows if isinstance(row, Message)]
    return indexing.conclusion_vectors(conclusions, vectors) if conclusions else indexing.message_vectors(messages, vectors)


def _rows(view: View, kind: str, keys: Sequence[int]) -> Sequence[Message | Conclusion]:
    if kind == CONCLUSION:
        return [row for row in view.conclusions.by_keys(keys).values() if row.state == LIVE]
    return list(view.messages.by_keys(keys).values())


def _space(rt: Runtime, view: View, workspace: int, kind: indexing.Kind) -> Space:
    return view.spaces.active(workspace, kind) or indexing.new_space(rt, view, workspace, kind)
