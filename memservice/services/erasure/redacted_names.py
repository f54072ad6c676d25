"""Names that the erasure of a peer replaces in what others said: its task keeps them until it has
found no more of them. The end of an erasure looks for what is left of them."""

from __future__ import annotations

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import Erasure, Lease, Peer, Task, Workspace
from memservice.services.erasure import receipts
from memservice.services.erasure.erased import Erased
from memservice.services.tasks.outbox import REDACTION
from memservice.spi.storage import Transaction

BATCH_SIZE = 500
"""Receipts per transaction."""


def without(task: Task) -> dict[str, object]:
    """The payload of a task without names."""
    return {name: task.payload[name] for name in task.payload if name != REDACTION}


def remove(tx: Transaction, erased: Erased, after: int) -> int | None:
    """Remove the names from the tasks of the next erasures of peers of an erased workspace. Returns
    the last key of a receipt, None at the end."""
    naming, last = search(tx, erased, after)
    if naming:
        # A worker that processes such a task stores nothing more, also not the names again.
        tx.rows.delete(Lease, equals(unit=tuple(task.unit for task in naming)))
    for task in tx.locked(Task, [task.key for task in naming]):
        tx.rows.change(Task, equals(key=task.key), payload=without(task))
    return last


def search(tx: Transaction, erased: Erased, after: int) -> tuple[list[Task], int | None]:
    """The tasks that have names of an erased peer, or of any erased peer of an erased workspace,
    and the last key of a receipt, None at the end."""
    if Workspace in erased.keys:
        own = equals(workspace_key=erased.workspace_key, kind=receipts.PEER)
        page = all_of(own, Compare("key", "gt", after))
        erasures = tx.rows.page(Erasure, page, limit=BATCH_SIZE)
    else:
        is_own = erased.receipt is not None and Peer in erased.keys
        erasures = [erased.receipt] if is_own and erased.receipt is not None else []
    uids = tuple(erasure.task_uid for erasure in erasures)
    tasks = tx.rows.page(Task, equals(uid=uids)) if uids else []
    last = erasures[-1].key if len(erasures) == BATCH_SIZE else None
    return [task for task in tasks if REDACTION in task.payload], last
