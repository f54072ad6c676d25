"""Erases deleted sessions and workspaces: by key, at most a thousand rows in a transaction,
children before parents.

Every step queries the remaining rows. So interrupted work continues where it stopped, and rows that
concurrent writers stored after the deletion are erased too. The row of the session or workspace is
erased last, while it is locked and has no other rows.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from memservice.domain import records as r
from memservice.domain.filters import Condition, equals
from memservice.pipeline.deletion import batches, checking, messages, outside_vectors, peers
from memservice.pipeline.handler import Handler, Outcome, Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.erasure import (
    conclusions,
    embedding,
    receipts,
    redacted_names,
    remains,
    searches,
)
from memservice.services.erasure.erased import Erased, NotErased, joined, named
from memservice.services.tasks import kinds
from memservice.spi.rows import Order
from memservice.spi.schema import BY_RECORD
from memservice.spi.storage import Transaction
from memservice.telemetry.events import DeletionCompleted, Event

BATCH_SIZE = 1_000

OF_SESSION: tuple[type[Any], ...] = (
    r.Task,
    r.IdempotencyKey,
    r.ScopeSession,
    r.Summary,
    r.Metamessage,
    r.Conclusion,
    r.Message,
    r.Member,
)
"""Records that are erased with a session, in this order."""

OF_WORKSPACE: tuple[type[Any], ...] = (
    r.Task,
    r.Delivery,
    r.WebhookEndpoint,
    r.Metamessage,
    r.Document,
    r.NamedCollection,
    r.Conclusion,
    r.Message,
    r.Summary,
    r.IdempotencyKey,
    r.ScopeSession,
    r.Member,
    r.Session,
    r.Card,
    r.Collection,
    r.PeerName,
    r.Peer,
    r.Space,
)
"""Records that are erased with a workspace, in this order. Usage stays: it records costs, but no
texts."""

INDEXED: Mapping[type[Any], str] = {
    r.Message: "message",
    r.Conclusion: "conclusion",
    r.Document: "document",
}
"""The indexed records, with their kinds in the indexes."""

ORDERS: Mapping[tuple[type[Any], type[Any]], tuple[str, ...]] = {
    (r.Session, r.Conclusion): ("state",),
    (r.Session, r.Message): ("seq",),
    (r.Workspace, r.Task): ("kind", "state", "session_key", "unit"),
    (r.Workspace, r.Conclusion): ("state", "created_at"),
    (r.Workspace, r.Session): ("created_at",),
    (r.Workspace, r.Peer): ("created_at",),
}
"""For records with possibly many rows: the order of a database index, so that no step sorts all
remaining rows."""

VECTORS, WAITING, REMOVED = "vectors", "waiting", "removed"
"""Entry of the payload of the erasure of a session, with an index outside the storage: after its
last row, vectors that work in progress added are removed, then its own row is erased."""

Target = r.Session | r.Workspace
RemovedRows = frozenset[tuple[type[Any], int]]
"""Rows (record and key) that were removed from the index outside the storage."""


TASKS, NAMES, RECORDS, CHECK, RECLAIM, END = (
    "tasks",
    "names",
    "records",
    "check",
    "reclaim",
    "end",
)
"""Stages after the row of the session or workspace is erased, in this order."""


class Erase(Handler):
    """Handler of `erase` tasks, whose payload has the key of a session or a workspace. The outcome
    counts the erased rows by table."""

    kind = kinds.ERASE

    def prepare(self, rt: Runtime, tasks: Sequence[r.Task]) -> Prepared:
        task = tasks[0]
        if "uids" in task.payload:
            return messages.prepare(rt, task)
        if "peer" in task.payload:
            return peers.prepare(rt, task)
        if "stage" in task.payload:
            return _after_rows(rt, task)
        last = _last(task)
        left = []
        if last is not None:
            remains.remove_vectors(rt, last)
            left = searches.left_of_batch(rt, last)
        if task.payload.get(VECTORS) == WAITING:
            return outside_vectors.prepare(
                rt,
                task,
                task.payload["workspace"],
                lambda next_task: checking.at(next_task, None, **{VECTORS: REMOVED}),
            )
        removed = None if rt.vectors_transactional else _remove_vectors(rt, task)

        def store(tx: Transaction) -> Outcome | Unfinished:
            began = time.perf_counter()
            step = erase(tx)
            return batches.adapted(step, time.perf_counter() - began, BATCH_SIZE)

        def erase(tx: Transaction) -> Outcome | Unfinished:
            receipts.begin(tx, task)
            if last is not None and left:
                totals, batch = checking.remove(rt, tx, task, last, task.payload["last"])
                return checking.again(task, left, checking.ROUNDS, totals, last=batch)
            return _step(rt, tx, task, removed)

        return Prepared(store)

    def failure_events(self, rt: Runtime, task: r.Task, error: Exception) -> Iterable[Event]:
        with rt.storage.read() as tx:
            receipt = tx.erasures.of_task(task.uid)
        name = type(error).__name__
        return [
            *_completed(receipt, task.outcome, name),
            *checking.completed(receipt, task.outcome, name),
        ]


def _last(task: r.Task) -> Erased | None:
    """The batch before this step."""
    last = task.payload.get("last")
    return None if last is None else Erased.of(task, last)


def _after_rows(rt: Runtime, task: r.Task) -> Prepared:
    """The next step when no row of the session or workspace is left."""
    stage, after = task.payload["stage"], task.payload.get("after", 0)
    with rt.storage.read() as tx:
        erased = Erased.target(tx, task, task.payload["workspace"])
    if stage == TASKS and not after:
        checking.remove_traces(rt, task)
    if stage == CHECK:
        return checking.search(rt, task, erased, before=TASKS, then=RECLAIM)
    if stage == RECLAIM:
        return checking.reclaim(rt, task, END)
    if stage == END:
        return checking.finish(rt, task, _completed(erased.receipt, task.outcome))

    def store(tx: Transaction) -> Unfinished:
        clean, following = _CLEANING[stage]
        last = clean(tx, erased, after)
        return checking.at(task, stage=following if last is None else stage, after=last or 0)

    return Prepared(store)


_CLEANING: Mapping[str, tuple[Callable[[Transaction, Erased, int], int | None], str]] = {
    TASKS: (lambda tx, erased, after: remains.clean_tasks(tx, erased, after), NAMES),
    NAMES: (redacted_names.remove, RECORDS),
    RECORDS: (lambda tx, erased, after: remains.clean_idempotency_keys(tx, erased, after), CHECK),
}
"""What the steps of a stage call with the last key, and the stage that follows. The functions of
`remains` are looked up when they are called."""


def _completed(
    receipt: r.Erasure | None, counts: Mapping[str, int], error: str | None = None
) -> list[Event]:
    """The event of the end of an erasure of a session or workspace."""
    if receipt is None or receipt.kind not in (receipts.SESSION, receipts.WORKSPACE):
        return []
    return [
        DeletionCompleted(
            workspace_name=receipt.workspace,
            deletion_type="workspace" if receipt.kind == receipts.WORKSPACE else "session",
            resource_id=receipt.target,
            success=error is None,
            peers_deleted=counts.get("peers", 0),
            sessions_deleted=counts.get("sessions", 0),
            messages_deleted=counts.get("messages", 0),
            conclusions_deleted=counts.get("conclusions", 0),
            error_message=error,
        )
    ]


def _remove_vectors(rt: Runtime, task: r.Task) -> RemovedRows:
    """Remove the rows of the next step from the vector index outside the storage. For a workspace,
    whole spaces are dropped when their rows are next and nothing adds vectors any more."""
    with rt.storage.read() as tx:
        target = _target(tx, task)
        if target is None:
            return frozenset()
        spaces = tx.spaces.of_workspace(_workspace_of(target))
        rows = list(_remaining(tx, target, batches.size(task, BATCH_SIZE)))
    if isinstance(target, r.Session):
        for record, batch in rows:
            if record in INDEXED:
                keys = [row.key for row in batch]
                indexing.remove_vectors(rt, None, INDEXED[record], spaces, keys)
    elif not rows or rows[-1][0] is r.Space:
        key = target.key
        if outside_vectors.wait(rt, lambda tx: embedding.is_idle(rt, tx, key)):
            for space in (space for record, batch in rows if record is r.Space for space in batch):
                _drop(rt, None, space)
        else:
            rows = [(record, batch) for record, batch in rows if record is not r.Space]
    return frozenset((record, row.key) for record, batch in rows for row in batch)


def _step(
    rt: Runtime, tx: Transaction, task: r.Task, removed: RemovedRows | None
) -> Outcome | Unfinished:
    target = _target(tx, task)
    if target is None:
        return dict(task.outcome)
    counts = Counter(task.outcome)
    batch, number = named({}, (), ()), 0
    for record, remaining in _remaining(tx, target, batches.size(task, BATCH_SIZE)):
        rows = (
            remaining
            if removed is None or not _must_be_removed_first(target, record)
            else [row for row in remaining if (record, row.key) in removed]
        )
        if isinstance(target, r.Session) and record in (r.Conclusion, r.Message):
            erased = _erase_with_dependents(rt, tx, target, record, rows)
            batch = joined(batch, erased)
            counts["conclusions"] += len(erased["keys"][indexing.CONCLUSION])
            counts["messages"] += len(erased["keys"][indexing.MESSAGE])
        else:
            _erase(rt, tx, target, record, rows)
            counts[BY_RECORD[record].name] += len(rows)
        number += len(rows)
        if len(rows) < len(remaining):
            return checking.at(task, counts, last=batch, **{VECTORS: None})
    if number:
        return checking.at(task, counts, last=batch, **{VECTORS: None})
    return _end_of_rows(rt, tx, task, target, counts)


def _end_of_rows(
    rt: Runtime, tx: Transaction, task: r.Task, target: Target, counts: Counter[str]
) -> Unfinished:
    """Erase the row of the session or workspace, unless other rows were added just before it was
    locked."""
    tx.rows.get(type(target), equals(key=target.key), lock=True)
    if next(_remaining(tx, target, 1), None) is not None:
        return checking.at(task, counts, last=None)
    if not rt.vectors_transactional:
        if isinstance(target, r.Session):
            if task.payload.get(VECTORS) != REMOVED:
                return checking.at(task, counts, last=None, **{VECTORS: WAITING})
        elif not embedding.is_idle(rt, tx, target.key):
            return checking.at(task, counts, last=None)
    if isinstance(target, r.Workspace) and (
        dropped := rt.storage.text.drop(tx, target.key, BATCH_SIZE)
    ):
        counts["texts"] += dropped
        return checking.at(task, counts)
    if isinstance(target, r.Workspace) and not rt.vectors_transactional:  # expired ones
        tx.rows.delete(r.Lease, equals(unit=embedding.units_of_workspace(target.key)))
    counts[BY_RECORD[type(target)].name] += tx.rows.delete(type(target), equals(key=target.key))
    return checking.at(task, counts, stage=TASKS, workspace=_workspace_of(target), last=None)


def _target(tx: Transaction, task: r.Task) -> Target | None:
    """The session or workspace to erase; None if it no longer exists or is not being deleted."""
    if "uids" in task.payload or "peer" in task.payload:
        return None
    session, workspace = task.payload.get("session"), task.payload.get("workspace")
    target: Target | None = (
        tx.workspaces.by_key(workspace or 0) if session is None else tx.sessions.by_key(session)
    )
    return target if target is not None and target.state == r.DELETING else None


def _workspace_of(target: Target) -> int:
    return target.key if isinstance(target, r.Workspace) else target.workspace_key


def _must_be_removed_first(target: Target, record: type[Any]) -> bool:
    """Whether an index outside the storage must drop such a row before it is erased."""
    return record in INDEXED if isinstance(target, r.Session) else record is r.Space


def _remaining(
    tx: Transaction, target: Target, limit: int
) -> Iterator[tuple[type[Any], list[Any]]]:
    """The remaining rows in the order of erasure: at most `limit`, record by record, each record
    read when the iterator reaches it."""
    for record in OF_SESSION if isinstance(target, r.Session) else OF_WORKSPACE:
        order = [Order(field) for field in ORDERS.get((type(target), record), ())]
        rows = tx.rows.page(record, _of(target, record), [*order, Order("key")], limit)
        if rows:
            limit -= len(rows)
            yield record, rows
        if limit <= 0:
            return


def _of(target: Target, record: type[Any]) -> Condition:
    if isinstance(target, r.Workspace):
        return equals(workspace_key=target.key)
    if record is r.Task:
        return equals(workspace_key=target.workspace_key, session_key=target.key)
    return equals(session_key=target.key)


def _erase_with_dependents(
    rt: Runtime, tx: Transaction, session: r.Session, record: type[Any], rows: Sequence[Any]
) -> dict[str, Any]:
    """Erase messages or conclusions of a session, with the conclusions of other sessions that rest
    only on them. Returns all erased rows (`erased.named`)."""
    if not rows:
        return named({indexing.MESSAGE: []}, (), ())
    workspace_key = session.workspace_key
    if record is r.Message:
        dependents = conclusions.erase_resting_on(rt, tx, workspace_key, rows)
        _erase(rt, tx, session, record, rows)
        keys: dict[str, list[int]] = {indexing.MESSAGE: [row.key for row in rows]}
        return named(keys, [row.uid for row in rows], dependents)
    own = {row.key for row in rows}
    erased = list(rows) + [
        row
        for row in conclusions.with_dependents(tx, workspace_key, rows)
        if row.key not in own and row.session_key != session.key
    ]
    conclusions.erase(rt, tx, workspace_key, erased, session.key)
    return named({indexing.MESSAGE: []}, (), erased)


def _erase(
    rt: Runtime, tx: Transaction, target: Target, record: type[Any], rows: Sequence[Any]
) -> None:
    if not rows:
        return
    keys = tuple(row.key for row in rows)
    if record in INDEXED:
        indexing.remove_from_storage(rt, tx, INDEXED[record], _workspace_of(target), keys)
    if record is r.Task:
        # A worker that processes these tasks loses its lease and stores nothing more.
        units = {task.unit for task in rows}
        if not rt.vectors_transactional:
            # A lease shows that vectors may still be added to the index outside the storage.
            units -= set(embedding.units_of_workspace(_workspace_of(target)))
        tx.rows.delete(r.Lease, equals(unit=tuple(units)))
    elif record is r.Message:
        tx.rows.delete(r.Metamessage, equals(message_key=keys))
    elif record is r.Space and rt.vectors_transactional:
        for space in rows:
            _drop(rt, tx, space)
    tx.rows.delete(record, equals(key=keys))


def _drop(rt: Runtime, tx: Transaction | None, space: r.Space) -> None:
    """Remove a vector space, and check that it is empty."""
    rt.vectors.drop(tx, space)
    if rt.vectors.count(tx, space):
        raise NotErased(f"still left of the workspace: vectors of kind {space.kind}")
