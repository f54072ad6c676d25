"""Giving rows their vectors, where that is not for the request path."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.errors import ConfigurationError
from memservice.domain.records import LIVE, Conclusion, Message, Space, Task
from memservice.pipeline.handler import Outcome, Prepared, nothing
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.indexing import CONCLUSION
from memservice.spi.storage import View
from memservice.spi.vectors import VectorRow

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
        vectors = embedder.embed([row.content for row in rows])
        made: list[VectorRow] = []
        conclusions = [row for row in rows if isinstance(row, Conclusion)]
        messages = [row for row in rows if isinstance(row, Message)]
        made = indexing.conclusion_vectors(conclusions, vectors) if conclusions else indexing.message_vectors(messages, vectors)
        if not rt.vectors_transactional:
            rt.vectors.upsert(None, space, made)

        def store(view: View) -> Outcome:
            if rt.vectors_transactional:
                rt.vectors.upsert(view, space, made)
            return {"embedded": len(made)}

        return Prepared(store)


def _rows(view: View, kind: str, keys: Sequence[int]) -> Sequence[Message | Conclusion]:
    if kind == CONCLUSION:
        return [row for row in view.conclusions.by_keys(keys).values() if row.state == LIVE]
    return list(view.messages.by_keys(keys).values())


def _space(rt: Runtime, view: View, workspace: int, kind: indexing.Kind) -> Space:
    return view.spaces.active(workspace, kind) or indexing.new_space(rt, view, workspace, kind)
