"""The references from superseded conclusions of a file to their successors, set when all rows are
stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec.structs import replace

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
    *,
    again: bool,
) -> None:
    """Set the successors of superseded conclusions. Both are by uid here.

    With `again`, for an import that brings erased rows back: a conclusion that is live because its
    successor was erased is superseded again. One that a caller has restored since stays live.
    """
    uids = sorted(superseded)
    for start in range(0, len(uids), BATCH_SIZE):
        part = {uid: superseded[uid] for uid in uids[start : start + BATCH_SIZE]}
        rt.storage.write(partial(_set, rt, workspace_key, part, again))


def without_repetitions(
    rt: Runtime, tx: Transaction, rows: Sequence[r.Conclusion], newest: int
) -> Sequence[r.Conclusion]:
    """New conclusions that an import brings back; those that were said again since they were erased
    are superseded by what was concluded then. `newest`: key of the newest conclusion before the
    import."""
    live = [row for row in rows if row.state == r.LIVE]
    twins = supersession.live_twins(tx, live, {row.key for row in rows})
    changed = {
        row.key: replace(
            row,
            state=r.SUPERSEDED,
            superseded_by=twins[row.key].key,
            superseded_at=rt.clock(),
            internal={**row.internal, supersession.REASON: supersession.SAID_AGAIN},
        )
        for row in live
        if row.key in twins and twins[row.key].key <= newest
    }
    if changed:
        tx.rows.put(list(changed.values()))
    return [changed.get(row.key, row) for row in rows]


def _set(
    rt: Runtime,
    workspace_key: int,
    superseded: Mapping[str, Supersession],
    again: bool,
    tx: Transaction,
) -> None:
    uids = {*superseded, *(uid for uid, _ in superseded.values() if uid is not None)}
    page = tx.rows.page(r.Conclusion, equals(workspace_key=workspace_key, uid=tuple(uids)))
    rows = {row.uid: row for row in page}
    for uid, (successor_uid, at) in superseded.items():
        old, successor = rows.get(uid), rows.get(successor_uid or "")
        if old is None or successor is None:
            continue
        superseded_at = None if at is None else parse_time(at)
        # Not one that was superseded here in another way, such as by a caller who took it back.
        if old.state == r.SUPERSEDED and old.superseded_at == superseded_at:
            _link(tx, old, successor)
        elif again and old.state == r.LIVE and _was_superseded(old, at):
            step = supersession.Supersession(old, successor.key, RETURNED)
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
