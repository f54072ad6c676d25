"""Removes rows that no longer exist from a vector index outside the storage."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.filters import equals
from memservice.domain.records import LIVE, Conclusion, Task
from memservice.pipeline.handler import Handler, Prepared, nothing
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.tasks import kinds

MAX_TASKS = 100


class DeleteVectors(Handler):
    """Handler of `forget` tasks: each has the keys of some rows of one kind. A repetition changes
    nothing."""

    kind = kinds.DELETE_VECTORS

    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        return min(len(pending), MAX_TASKS)

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        kind, workspace_key = tasks[0].payload["kind"], tasks[0].workspace_key or 0
        keys = sorted({int(key) for task in tasks for key in task.payload.get("keys", [])})
        with rt.storage.read() as tx:
            spaces = tx.spaces.of_workspace(workspace_key)
            # A conclusion may have been restored since.
            live = (
                {row.key for row in tx.rows.page(Conclusion, equals(key=tuple(keys), state=LIVE))}
                if kind == indexing.CONCLUSION
                else set()
            )
        deleted = [key for key in keys if key not in live]
        indexing.remove_vectors(rt, None, kind, spaces, deleted)
        return nothing(forgotten=len(deleted))
