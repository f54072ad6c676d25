"""Erasing sessions and workspaces that were deleted: by key, at most a thousand rows in a
transaction, children before parents.

Every step looks anew for what is left, so work that was interrupted anywhere goes on where it was,
and what writers that were under way stored after the deletion is found as well. The row itself goes
last, while it is held and after nothing else was found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memservice.domain import records as r
from memservice.domain.filters import Condition, equals
from memservice.pipeline.handler import Handler, Outcome, Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services import dreams, indexing
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
"""What a session takes with it, in this order."""

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
"""What a workspace takes with it, in this order. Usage stays: it says what was spent, and nothing
of what was said."""

INDEXED: Mapping[type[Any], str] = {
    r.Message: "message",
    r.Conclusion: "conclusion",
    r.Document: "document",
}
"""Records that lie in the indexes, under which kind."""

ORDERS: Mapping[tuple[type[Any], type[Any]], tuple[str, ...]] = {
    (r.Session, r.Conclusion): ("state",),
    (r.Session, r.Message): ("seq",),
    (r.Workspace, r.Task): ("kind", "state", "session_key", "unit"),
    (r.Workspace, r.Conclusion): ("state", "created_at"),
    (r.Workspace, r.Session): ("created_at",),
    (r.Workspace, r.Peer): ("created_at",),
}
"""Where there may be many rows: the order in which an index has them, so that no step sorts all
that are left."""

Doomed = r.Session | r.Workspace
DeletionEvents = frozenset[tuple[type[Any], int]]
"""Rows (record and key) that an index outside the storage was told of."""


class Erase(Handler):
    """Handler of `erase` tasks, which name a session or a workspace in their payload. The outcome
    counts the rows erased, by table."""

    kind = kinds.ERASE

    def prepare(self, rt: Runtime, tasks: Sequence[r.Task]) -> Prepared:
        task = tasks[0]
        with rt.storage.read() as tx:
            doomed = _doomed(tx, task)
            workspace = None if doomed is None else tx.workspaces.by_key(_workspace_of(doomed))
        told = None if rt.vectors_transactional else _tell(rt, task)

        def events(outcome: Outcome) -> Iterable[Event]:
            if doomed is not None and workspace is not None:
                yield _completed(doomed, workspace, outcome)

        return Prepared(lambda tx: _step(rt, tx, task, told), events)

    def failure_events(self, rt: Runtime, task: r.Task, error: Exception) -> Iterable[Event]:
        with rt.storage.read() as tx:
            doomed = _doomed(tx, task)
            workspace = None if doomed is None else tx.workspaces.by_key(_workspace_of(doomed))
        if doomed is not None and workspace is not None:
            yield _completed(doomed, workspace, task.outcome, type(error).__name__)


def _completed(
    doomed: Doomed, workspace: r.Workspace, counts: Mapping[str, int], error: str | None = None
) -> DeletionCompleted:
    return DeletionCompleted(
        workspace_name=workspace.slug,
        deletion_type="workspace" if isinstance(doomed, r.Workspace) else "session",
        resource_id=doomed.slug,
        success=error is None,
        peers_deleted=counts.get("peers", 0),
        sessions_deleted=counts.get("sessions", 0),
        messages_deleted=counts.get("messages", 0),
        conclusions_deleted=counts.get("conclusions", 0),
        error_message=error,
    )


def _tell(rt: Runtime, task: r.Task) -> DeletionEvents:
    """Let the vector index outside the storage forget what the next step erases; a whole
    workspace's when its spaces go."""
    with rt.storage.read() as tx:
        doomed = _doomed(tx, task)
        if doomed is None:
            return frozenset()
        spaces = tx.spaces.of_workspace(_workspace_of(doomed))
        rows = list(_left(tx, doomed, BATCH_SIZE))
    for record, found in rows:
        if isinstance(doomed, r.Session) and record in INDEXED:
            indexing.forget_vectors(rt, None, INDEXED[record], spaces, [row.key for row in found])
        elif record is r.Space:
            for space in found:
                rt.vectors.drop(None, space)
    return frozenset((record, row.key) for record, found in rows for row in found)


def _step(
    rt: Runtime, tx: Transaction, task: r.Task, told: DeletionEvents | None
) -> Outcome | Unfinished:
    doomed = _doomed(tx, task)
    if doomed is None:
        return dict(task.outcome)
    counts = Counter(task.outcome)
    unfinished = Unfinished(task)
    erased = 0
    for record, found in _left(tx, doomed, BATCH_SIZE):
        rows = (
            found
            if told is None or not _is_told(doomed, record)
            else [row for row in found if (record, row.key) in told]
        )
        _erase(rt, tx, doomed, record, rows)
        counts[BY_RECORD[record].name] += len(rows)
        erased += len(rows)
        unfinished = Unfinished(replace(task, outcome=dict(+counts)))
        if len(rows) < len(found):
            return unfinished
    if erased >= BATCH_SIZE:
        return unfinished
    # Held, nobody can add to it any more; and what was added just before is seen.
    tx.rows.get(type(doomed), equals(key=doomed.key), lock=True)
    if next(_left(tx, doomed, 1), None) is not None:
        return unfinished
    if isinstance(doomed, r.Workspace) and (
        dropped := rt.storage.text.drop(tx, doomed.key, BATCH_SIZE)
    ):
        counts["texts"] += dropped
        return Unfinished(replace(task, outcome=dict(counts)))
    counts[BY_RECORD[type(doomed)].name] += tx.rows.delete(type(doomed), equals(key=doomed.key))
    return dict(counts)


def _doomed(tx: Transaction, task: r.Task) -> Doomed | None:
    """What is to be erased; None if it is gone, or was never deleted."""
    session, workspace = task.payload.get("session"), task.payload.get("workspace")
    found: Doomed | None = (
        tx.workspaces.by_key(workspace or 0) if session is None else tx.sessions.by_key(session)
    )
    return found if found is not None and found.state == r.DELETING else None


def _workspace_of(doomed: Doomed) -> int:
    return doomed.key if isinstance(doomed, r.Workspace) else doomed.workspace_key


def _is_told(doomed: Doomed, record: type[Any]) -> bool:
    """Has an index outside the storage to be told before such a row may go?"""
    return record in INDEXED if isinstance(doomed, r.Session) else record is r.Space


def _left(tx: Transaction, doomed: Doomed, limit: int) -> Iterator[tuple[type[Any], list[Any]]]:
    """What is left of it, in the order in which it has to go: at most `limit` rows, record by
    record, each read when it is asked for."""
    for record in OF_SESSION if isinstance(doomed, r.Session) else OF_WORKSPACE:
        order = [Order(field) for field in ORDERS.get((type(doomed), record), ())]
        rows = tx.rows.page(record, _of(doomed, record), [*order, Order("key")], limit)
        if rows:
            limit -= len(rows)
            yield record, rows
        if limit <= 0:
            return


def _of(doomed: Doomed, record: type[Any]) -> Condition:
    if isinstance(doomed, r.Workspace):
        return equals(workspace_key=doomed.key)
    if record is r.Task:
        return equals(workspace_key=doomed.workspace_key, session_key=doomed.key)
    return equals(session_key=doomed.key)


def _erase(
    rt: Runtime, tx: Transaction, doomed: Doomed, record: type[Any], rows: Sequence[Any]
) -> None:
    if not rows:
        return
    keys = tuple(row.key for row in rows)
    if record in INDEXED:
        indexing.forget(rt, tx, INDEXED[record], _workspace_of(doomed), keys)
    if record is r.Task:
        # Whoever works on these has lost the unit, and stores nothing more.
        tx.rows.delete(r.Lease, equals(unit=tuple({task.unit for task in rows})))
    elif record is r.Message:
        tx.rows.delete(r.Metamessage, equals(message_key=keys))
    elif record is r.Conclusion:
        counted = Counter(
            row.collection_key for row in rows if row.level == r.EXPLICIT and row.state == r.LIVE
        )
        for collection, number in counted.items():
            tx.conclusions.count_explicit(collection, -number)
        if isinstance(doomed, r.Session):
            dreams.give_back(rt, tx, rows, doomed.key)
    elif record is r.Space and rt.vectors_transactional:
        for space in rows:
            rt.vectors.drop(tx, space)
    tx.rows.delete(record, equals(key=keys))
