"""Closes the gaps that erased messages leave in the positions of a long session."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.records import Task
from memservice.pipeline.handler import Handler, Outcome, Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services.erasure import positions
from memservice.services.tasks import kinds
from memservice.spi.storage import Transaction


class Repack(Handler):
    """Handler of `repack` tasks: each step moves at most `positions.BATCH_SIZE` messages. A
    repetition changes nothing."""

    kind = kinds.REPACK

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        task = tasks[0]
        return Prepared(lambda tx: _step(tx, task))


def _step(tx: Transaction, task: Task) -> Outcome | Unfinished:
    session = tx.sessions.by_key(task.session_key or 0, lock=True)
    if session is None:
        return {"skipped": "the session no longer exists"}
    progress = positions.progress_of(task) or positions.start(tx, session, task.payload["first"])
    following = positions.step(tx, session, progress)
    if following is None:
        return {"messages": session.message_count}
    return Unfinished(positions.with_progress(task, following))
