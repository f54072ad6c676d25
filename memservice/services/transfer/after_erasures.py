"""The end of an import that left rows out: conclusions that they superseded are live again, and
summaries that covered them are written again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial

from memservice.domain import records as r
from memservice.domain.filters import equals
from memservice.runtime import Runtime
from memservice.services import supersession
from memservice.services.erasure import conclusions, reasons, summaries
from memservice.services.transfer.lines import parse_time
from memservice.spi.storage import Transaction

BATCH_SIZE = 500
Supersession = tuple[str | None, str | None]
"""Uid of the successor, and when it superseded the conclusion, as in the file."""


def restore(
    rt: Runtime,
    workspace_key: int,
    superseded: Mapping[str, Supersession],
    left_out: Mapping[str, Supersession],
) -> None:
    """Give the imported conclusions whose successor was left out the next one that was not; without
    one they are live again. Both mappings are by uid here: of superseded conclusions, and of those
    that were left out."""
    uids = sorted(uid for uid, (successor, _) in superseded.items() if successor in left_out)
    for start in range(0, len(uids), BATCH_SIZE):
        part = {uid: superseded[uid] for uid in uids[start : start + BATCH_SIZE]}
        rt.storage.write(
            lambda tx, part=part: _restore(rt, tx, workspace_key, part, left_out)  # type: ignore[misc]
        )


def _restore(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    superseded: Mapping[str, Supersession],
    left_out: Mapping[str, Supersession],
) -> None:
    ends = {uid: _end(link, left_out) for uid, link in superseded.items()}
    uids = {*superseded, *(uid for uid, _ in ends.values() if uid is not None)}
    page = tx.rows.page(r.Conclusion, equals(workspace_key=workspace_key, uid=tuple(uids)))
    rows = {row.uid: row for row in page}
    live: list[r.Conclusion] = []
    for uid, (_, at) in superseded.items():
        row = rows.get(uid)
        # Something else may have superseded it here since it was imported.
        if row is None or row.state != r.SUPERSEDED or row.superseded_by is not None:
            continue
        if row.superseded_at != (None if at is None else parse_time(at)):
            continue
        end, ended_at = ends[uid]
        successor = rows.get(end or "")
        if successor is None:
            live.append(row)
            continue
        tx.rows.change(
            r.Conclusion,
            equals(key=row.key),
            superseded_by=successor.key,
            superseded_at=None if ended_at is None else parse_time(ended_at),
            internal=supersession.without_reason(row),
        )
    if live:
        supersession.make_live(rt, tx, live, with_lapse=False)


def forget_reasons(rt: Runtime, workspace_key: int, successors: Collection[str]) -> None:
    """Remove the reasons of conclusions that were superseded by these ones, which lost a source.
    `successors`: uids here."""
    uids = sorted(successors)
    for start in range(0, len(uids), BATCH_SIZE):
        condition = equals(workspace_key=workspace_key, uid=tuple(uids[start : start + BATCH_SIZE]))
        rt.storage.write(
            lambda tx, condition=condition: supersession.forget_reasons(  # type: ignore[misc]
                tx, tx.rows.page(r.Conclusion, condition)
            )
        )


def forget_later_reasons(rt: Runtime, since: Mapping[tuple[str, str], datetime]) -> None:
    """Remove the reasons that were written after a conclusion that was left out was stored.
    `since`: when the first one was, by uids here of the observer and the observed peer."""
    for (observer_uid, observed_uid), first in since.items():
        rt.storage.write(partial(_forget_later_reasons, observer_uid, observed_uid, first))


def _forget_later_reasons(
    observer_uid: str, observed_uid: str, since: datetime, tx: Transaction
) -> None:
    page = tx.rows.page(r.Peer, equals(uid=(observer_uid, observed_uid)))
    keys = {peer.uid: peer.key for peer in page}
    if observer_uid in keys and observed_uid in keys:
        collection = tx.conclusions.collection(keys[observer_uid], keys[observed_uid])
        if collection is not None:
            reasons.remove_since(tx, collection.key, since)


def _end(link: Supersession, left_out: Mapping[str, Supersession]) -> Supersession:
    """The first successor in a chain that was not left out."""
    visited: set[str] = set()
    while link[0] is not None and link[0] in left_out and link[0] not in visited:
        visited.add(link[0])
        link = left_out[link[0]]
    return (None, None) if link[0] in visited else link


def erase_based_on(rt: Runtime, workspace_key: int, left_out: Collection[str]) -> int:
    """Erase the imported conclusions that were concluded only from ones that come later in the file
    and were left out. Returns their number. `left_out`: uids here."""
    uids, erased = sorted(left_out), 0
    for start in range(0, len(uids), BATCH_SIZE):
        erased += rt.storage.write(
            partial(_erase_based_on, rt, workspace_key, uids[start : start + BATCH_SIZE])
        )
    return erased


def _erase_based_on(rt: Runtime, workspace_key: int, uids: Sequence[str], tx: Transaction) -> int:
    return conclusions.erase_based_on(rt, tx, workspace_key, uids)


def summarise(rt: Runtime, workspace_key: int, missing: Mapping[str, set[str]]) -> None:
    """Add the tasks that write summaries that were left out, unless the session has them or will
    have them. `missing`: kinds by uid here of the session."""
    sessions = sorted(missing)
    for start in range(0, len(sessions), BATCH_SIZE):
        part = sessions[start : start + BATCH_SIZE]
        rt.storage.write(
            lambda tx, part=part: _summarise(rt, tx, workspace_key, part, missing)  # type: ignore[misc]
        )


def _summarise(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    uids: Sequence[str],
    missing: Mapping[str, set[str]],
) -> None:
    for session in tx.rows.page(r.Session, equals(workspace_key=workspace_key, uid=tuple(uids))):
        kinds = missing[session.uid] - tx.summaries.of_session(session.key).keys()
        if kinds and not summaries.are_waiting(tx, session):
            last = dict.fromkeys(sorted(kinds), session.message_count)
            summaries.make_again(rt, tx, session, last)
