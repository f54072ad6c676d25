"""Work in progress that adds vectors to an index outside the storage.

Such work may have read a row before it was erased. It removes the vector again before it ends, or
if it is interrupted, when its task is tried again. So nothing is left in the index once the claims
that existed after the erasure of the rows have ended, and the vectors of all erased rows that are
named by waiting tasks are removed.
"""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import FAILED, PENDING, Lease, Task
from memservice.runtime import Runtime
from memservice.services.erasure import remains
from memservice.services.tasks import kinds, outbox
from memservice.spi.storage import Transaction

BATCH_SIZE = 500
"""Tasks that are read at once."""

Claims = Sequence[Sequence[int]]
"""Key and number of leases."""


def claims(rt: Runtime, tx: Transaction, workspace_key: int) -> list[list[int]]:
    """The claims of the units that add vectors of a workspace."""
    return [
        [lease.key, lease.number] for lease in _leases(rt, tx, outbox.embed_units(workspace_key))
    ]


def have_ended(rt: Runtime, tx: Transaction, workspace_key: int, claimed: Claims) -> bool:
    """Whether none of these claims is held any more."""
    return not any([key, number] in claimed for key, number in claims(rt, tx, workspace_key))


def is_idle(rt: Runtime, tx: Transaction, workspace_key: int) -> bool:
    """Whether nothing adds vectors of a workspace. Of a workspace that is being erased this stays
    true, since work on it that begins later adds none."""
    return not _leases(rt, tx, units_of_workspace(workspace_key))


def units_of_workspace(workspace_key: int) -> tuple[str, ...]:
    """The units that add vectors of a workspace, to any of its spaces."""
    return (*outbox.embed_units(workspace_key), outbox.reembed_unit(workspace_key))


def _leases(rt: Runtime, tx: Transaction, units: Sequence[str]) -> list[Lease]:
    """An expired lease is of a process that has ended."""
    unexpired = all_of(equals(unit=tuple(units)), Compare("expires_at", "gt", rt.clock()))
    return tx.rows.page(Lease, unexpired)


def missing_rows(
    tx: Transaction, workspace_key: int, after: int
) -> tuple[dict[str, list[int]], int | None]:
    """Keys of rows that the next waiting tasks would embed but that do not exist, by kind, and the
    last key of a task; None at the end."""
    own = equals(
        workspace_key=workspace_key, kind=(kinds.EMBED, kinds.REPAIR), state=(PENDING, FAILED)
    )
    tasks = tx.rows.page(Task, all_of(own, Compare("key", "gt", after)), limit=BATCH_SIZE)
    return remains.missing_rows(tx, tasks), tasks[-1].key if len(tasks) == BATCH_SIZE else None
