"""The references from superseded conclusions of a file to their successors, set when all rows are
stored."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from memservice.domain import records as r
from memservice.domain.filters import equals
from memservice.runtime import Runtime
from memservice.services import supersession
from memservice.services.transfer.after_erasures import Supersession
from memservice.services.transfer.lines import parse_time
from memservice.spi.storage import Transaction

BATCH_SIZE = 500
RETURNED = "An import brought its successor back."
"""Reason of conclusions whose successor was erased here and imported again."""


def set_all(
    rt: Runtime,
    workspace_key: int,
    superseded: Mapping[str, Supersession],
    newest: int | None,
) -> None:
    """Set the successors of superseded conclusions. Both are by uid here.

    `newest`: key of the newest conclusion before an import that brings erased rows back. A
    conclusion that is live only because its successor was erased is superseded again by a successor
    that is newer. None: no conclusion that exists changes.
    """
    uids = sorted(superseded)
    for start in range(0, len(uids), BATCH_SIZE):
        part = {uid: superseded[uid] for uid in uids[start : start + BATCH_SIZE]}
        rt.storage.write(partial(_set, rt, workspace_key, part, newest))


def _set(
    rt: Runtime,
    workspace_key: int,
    superseded: Mapping[str, Supersession],
    newest: int | None,
    tx: Transaction,
) -> None:
    uids = {*superseded, *(uid for uid, _ in superseded.values() if uid is not None)}
    page = tx.rows.page(r.Conclusion, equals(workspace_key=workspace_key, uid=tuple(uids)))
    rows = {row.uid: row for row in page}
    for uid, (successor_uid, at) in superseded.items():
        old, successor = rows.get(uid), rows.get(successor_uid or "")
        if old is None or successor is None:
            continue
        if old.state == r.SUPERSEDED:
            _link(tx, old, successor)
        elif newest is not None and successor.key > newest and _was_superseded(old, at):
            step = supersession.Supersession(old, successor.key, RETURNED)
            superseded_at = None if at is None else parse_time(at)
            supersession.supersede(rt, tx, workspace_key, [step], superseded_at)


def _link(tx: Transaction, old: r.Conclusion, successor: r.Conclusion) -> None:
    superseded_at = old.superseded_at
    if superseded_at is None and successor.created_at > old.created_at:
        # An export of an older release: usually both were stored at once.
        superseded_at = successor.created_at
    tx.rows.change(
        r.Conclusion,
        equals(key=old.key, superseded_by=None),
        superseded_by=successor.key,
        superseded_at=superseded_at,
    )


def _was_superseded(row: r.Conclusion, at: str | None) -> bool:
    """Whether nobody has restored a live conclusion since it was superseded in the file."""
    return row.restored_at is None or (at is not None and row.restored_at < parse_time(at))
