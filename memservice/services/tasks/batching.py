"""Messages are batched before a costly reasoner call.

A unit is ready when its first pending task is due, so batching only sets that time: pending tasks
become due after a maximum age, or when the peer has been quiet for some time, and the first of them
as soon as there are enough tokens or messages in the unit. Once a worker has the unit, it takes all
its tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from memservice.domain.filters import equals
from memservice.domain.records import NEVER, PENDING, Task
from memservice.reasoning import choice
from memservice.runtime import Runtime
from memservice.services.tasks.kinds import REPRESENTATION, SUMMARY
from memservice.spi.capabilities import Capability
from memservice.spi.storage import Transaction

ENOUGH_MESSAGES = 200
"""This number of messages is enough, however short they are."""
SUMMARY_SECONDS = 1.0
"""How long a summary waits for further messages. While many are stored at once, a model that
answers at once would else write most summaries only to replace them."""


def is_enabled(rt: Runtime) -> bool:
    """Whether this installation batches messages."""
    deriver = rt.settings.deriver
    if deriver.flush_enabled or not deriver.representation_batch_work_unit_target_tokens:
        return False
    return rt.reasoner_can(choice.DERIVE, Capability.COSTLY)


def delay(rt: Runtime, tasks: Sequence[Task]) -> list[Task]:
    """The tasks of new messages, not stored yet, with the time at which they become due."""
    if is_enabled(rt):
        tasks = [
            replace(task, not_before=_due(rt, task, task.created_at))
            if task.kind == REPRESENTATION
            else task
            for task in tasks
        ]
    if _summaries_wait(rt):
        seconds = timedelta(seconds=SUMMARY_SECONDS)
        tasks = [
            replace(task, not_before=task.created_at + seconds) if task.kind == SUMMARY else task
            for task in tasks
        ]
    return list(tasks)


def _summaries_wait(rt: Runtime) -> bool:
    return not rt.settings.deriver.flush_enabled and rt.reasoner_can(
        choice.SUMMARIZE, Capability.COSTLY
    )


def _due(rt: Runtime, first: Task, last_message: datetime) -> datetime:
    """When a unit's first pending task becomes due, if no further message comes."""
    deriver = rt.settings.deriver
    max_age = deriver.representation_batch_max_age_seconds
    quiet = deriver.representation_batch_quiet_seconds
    ends = [
        start + timedelta(seconds=seconds)
        for start, seconds in ((first.created_at, max_age), (last_message, quiet))
        if seconds
    ]
    return min(ends, default=NEVER)


def after_messages(rt: Runtime, tx: Transaction, tasks: Sequence[Task]) -> None:
    """Make the units of new tasks ready if they have enough pending tasks; otherwise count the
    quiet time again. Reads at most one batch for each unit."""
    now = rt.clock()
    new = {task.uid for task in tasks}
    for unit in dict.fromkeys(
        task.unit for task in tasks if task.kind == REPRESENTATION and task.not_before > now
    ):
        pending = tx.tasks.pending(unit, ENOUGH_MESSAGES)
        if not pending or not _is_batched(pending[0], now):
            continue
        if _is_enough(rt, tx, pending):
            tx.tasks.make_due_if_untried(pending[0])
        elif pending[0].uid not in new:
            _change_due(tx, pending[0], _due(rt, pending[0], now))


def _is_batched(first: Task, now: datetime) -> bool:
    """Whether a unit's first task only waits for further messages. If it is due, backs off, or is
    paused until a model is available, it is taken later, and the new tasks are processed with
    it."""
    return first.attempts == 0 and first.not_before > now and "paused" not in first.outcome


def _change_due(tx: Transaction, first: Task, due: datetime) -> None:
    """Unless a worker, or a pause, has changed the task since it was read."""
    unchanged = equals(key=first.key, state=PENDING, attempts=0, not_before=first.not_before)
    tx.rows.change(Task, unchanged, not_before=due)


def _is_enough(rt: Runtime, tx: Transaction, pending: Sequence[Task]) -> bool:
    if len(pending) >= ENOUGH_MESSAGES:
        return True
    messages = tx.messages.by_keys(
        [task.message_key for task in pending if task.message_key is not None]
    )
    target = rt.settings.deriver.representation_batch_work_unit_target_tokens
    return sum(message.tokens for message in messages.values()) >= target


def release(rt: Runtime) -> int:
    """If batching is off, because the settings changed, make all waiting tasks due; returns their
    number."""
    if is_enabled(rt):
        return 0
    now = rt.clock()
    return rt.storage.write(lambda tx: tx.tasks.make_all_due(REPRESENTATION, now))
