"""Messages are batched before a costly reasoner call.

A unit is ready when its first pending task is due, so batching only sets that time: pending tasks
become due after a maximum age, and the first of them as soon as there are enough tokens or messages
in the unit. Once a worker has the unit, it takes all its tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from memservice.domain.records import NEVER, Task
from memservice.reasoning import choice
from memservice.runtime import Runtime
from memservice.services.tasks.kinds import REPRESENTATION
from memservice.spi.capabilities import Capability
from memservice.spi.storage import Transaction

ENOUGH_MESSAGES = 200
"""This number of messages is enough, however short they are."""


def is_enabled(rt: Runtime) -> bool:
    """Whether messages are batched at all in this installation."""
    deriver = rt.settings.deriver
    if deriver.flush_enabled or not deriver.representation_batch_work_unit_target_tokens:
        return False
    return rt.reasoner_can(choice.DERIVE, Capability.COSTLY)


def delay(rt: Runtime, tasks: Sequence[Task]) -> list[Task]:
    """The tasks of new messages, not stored yet, with the time at which they become due."""
    if not is_enabled(rt):
        return list(tasks)
    seconds = rt.settings.deriver.representation_batch_max_age_seconds
    return [
        replace(task, not_before=_until(task, seconds)) if task.kind == REPRESENTATION else task
        for task in tasks
    ]


def _until(task: Task, seconds: float) -> datetime:
    return task.created_at + timedelta(seconds=seconds) if seconds else NEVER


def release_if_full(rt: Runtime, tx: Transaction, tasks: Sequence[Task]) -> None:
    """Make the units of new tasks ready if they have enough pending tasks. Reads at most one batch
    for each unit."""
    now = rt.clock()
    for unit in dict.fromkeys(
        task.unit for task in tasks if task.kind == REPRESENTATION and task.not_before > now
    ):
        pending = tx.tasks.pending(unit, ENOUGH_MESSAGES)
        # A unit whose first task is due, or backs off, is taken or will be: the new tasks are
        # processed with it.
        if (
            pending
            and pending[0].attempts == 0
            and pending[0].not_before > now
            and _is_enough(rt, tx, pending)
        ):
            tx.tasks.make_due_if_untried(pending[0])


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
