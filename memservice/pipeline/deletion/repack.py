"""Closes the gaps that erased messages leave in the positions of a long session."""

from __future__ import annotations

import time
from collections.abc import Sequence

from memservice.domain.records import Task
from memservice.pipeline.deletion import batches
from memservice.pipeline.handler import Handler, Outcome, Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services.erasure import positions
from memservice.services.tasks import kinds
from memservice.spi.storage import Transaction


class Repack(Handler):
    """Handler of `repack` tasks: each step moves at most `positions.BATCH_SIZE` messages, as many
    as fit into a short transaction (`batches`). A repetition changes nothing."""

    kind = kinds.REPACK

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        task = tasks[0]

        def store(tx: Transaction) -> Outcome | Unfinished:
            began = time.perf_counter()
            step = _step(tx, task)
            return batches.adapted(step, time.perf_counter() - began, positions.BATCH_SIZE)

        return Prepared(store)


def _step(tx: Transaction, task: Task) -> Outcome | Unfinished:
    session = tx.sessions.by_key(task.session_key or 0, lock=True)
    if session is None:
        return {"skipped": "the session no longer exists"}
    progress = positions.progress_of(task) or positions.start(tx, session, task.payload["first"])
    size = batches.size(task, positions.BATCH_SIZE)
    following = positions.step(tx, session, progress, size)
    if following is None:
        return {"messages": session.message_count}
    return Unfinished(positions.with_progress(task, following))
