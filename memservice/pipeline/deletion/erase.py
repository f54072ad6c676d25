"""Erases deleted sessions and workspaces: by key, at most a thousand rows in a transaction,
children before parents.

Every step queries the remaining rows. So interrupted work continues where it stopped, and rows that
concurrent writers stored after the deletion are erased too. The row of the session or workspace is
erased last, while it is locked and has no other rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memservice.domain import records as r
from memservice.domain.filters import Condition, equals
from memservice.pipeline import card_lines
from memservice.pipeline.deletion import messages, peers
from memservice.pipeline.handler import Handler, Outcome, Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services import dreams, indexing, webhooks
from memservice.services.erasure import conclusions, receipts
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

Target = r.Session | r.Workspace
RemovedRows = frozenset[tuple[type[Any], int]]
"""Rows (record and key) that were removed from the index outside the storage."""


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
        with rt.storage.read() as tx:
            target = _target(tx, task)
            workspace = None if target is None else tx.workspaces.by_key(_workspace_of(target))
        removed = None if rt.vectors_transactional else _remove_vectors(rt, task)
        finished: list[webhooks.Event | None] = []

        def store(tx: Transaction) -> Outcome | Unfinished:
            finished.clear()
            receipts.begin(tx, task)
            outcome = _step(rt, tx, task, removed)
            if not isinstance(outcome, Unfinished):
                finished.append(receipts.finish(rt, tx, task, outcome))
            return outcome

        def events(outcome: Outcome) -> Iterable[Event]:
            for event in finished:
                webhooks.notify_plugins(rt, event)
            if target is not None and workspace is not None:
                yield _completed(target, workspace, outcome)

        return Prepared(store, events)

    def failure_events(self, rt: Runtime, task: r.Task, error: Exception) -> Iterable[Event]:
        with rt.storage.read() as tx:
            target = _target(tx, task)
            workspace = None if target is None else tx.workspaces.by_key(_workspace_of(target))
        if target is not None and workspace is not None:
            yield _completed(target, workspace, task.outcome, type(error).__name__)


def _completed(
    target: Target, workspace: r.Workspace, counts: Mapping[str, int], error: str | None = None
) -> DeletionCompleted:
    return DeletionCompleted(
        workspace_name=workspace.slug,
        deletion_type="workspace" if isinstance(target, r.Workspace) else "session",
        resource_id=target.slug,
        success=error is None,
        peers_deleted=counts.get("peers", 0),
        sessions_deleted=counts.get("sessions", 0),
        messages_deleted=counts.get("messages", 0),
        conclusions_deleted=counts.get("conclusions", 0),
        error_message=error,
    )


def _remove_vectors(rt: Runtime, task: r.Task) -> RemovedRows:
    """Remove the rows of the next step from the vector index outside the storage. For a workspace,
    whole spaces are dropped when their rows are next."""
    with rt.storage.read() as tx:
        target = _target(tx, task)
        if target is None:
            return frozenset()
        spaces = tx.spaces.of_workspace(_workspace_of(target))
        rows = list(_remaining(tx, target, BATCH_SIZE))
    for record, batch in rows:
        if isinstance(target, r.Session) and record in INDEXED:
            indexing.remove_vectors(rt, None, INDEXED[record], spaces, [row.key for row in batch])
        elif record is r.Space:
            for space in batch:
                rt.vectors.drop(None, space)
    return frozenset((record, row.key) for record, batch in rows for row in batch)


def _step(
    rt: Runtime, tx: Transaction, task: r.Task, removed: RemovedRows | None
) -> Outcome | Unfinished:
    target = _target(tx, task)
    if target is None:
        return dict(task.outcome)
    counts = Counter(task.outcome)
    unfinished = Unfinished(task)
    erased = 0
    for record, batch in _remaining(tx, target, BATCH_SIZE):
        rows = (
            batch
            if removed is None or not _must_be_removed_first(target, record)
            else [row for row in batch if (record, row.key) in removed]
        )
        counts["conclusions"] += _erase_dependents(rt, tx, target, record, rows)
        _erase(rt, tx, target, record, rows)
        counts[BY_RECORD[record].name] += len(rows)
        erased += len(rows)
        unfinished = Unfinished(replace(task, outcome=dict(+counts)))
        if len(rows) < len(batch):
            return unfinished
    if erased >= BATCH_SIZE:
        return unfinished
    # While it is locked, no rows can be added; the next query sees rows that were added just
    # before.
    tx.rows.get(type(target), equals(key=target.key), lock=True)
    if next(_remaining(tx, target, 1), None) is not None:
        return unfinished
    if isinstance(target, r.Workspace) and (
        dropped := rt.storage.text.drop(tx, target.key, BATCH_SIZE)
    ):
        counts["texts"] += dropped
        return Unfinished(replace(task, outcome=dict(counts)))
    counts[BY_RECORD[type(target)].name] += tx.rows.delete(type(target), equals(key=target.key))
    return dict(counts)


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


def _erase_dependents(
    rt: Runtime, tx: Transaction, target: Target, record: type[Any], rows: Sequence[Any]
) -> int:
    """Erase the conclusions of other sessions that rest only on these rows of a session. Returns
    their number."""
    if not isinstance(target, r.Session) or not rows:
        return 0
    workspace_key = target.workspace_key
    if record is r.Message:
        return len(conclusions.erase_resting_on(rt, tx, workspace_key, rows))
    if record is not r.Conclusion:
        return 0
    keys = {row.key for row in rows}
    dependents = [
        row
        for row in conclusions.with_dependents(tx, workspace_key, rows)
        if row.key not in keys and row.session_key != target.key
    ]
    conclusions.erase(rt, tx, workspace_key, dependents)
    return len(dependents)


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
        tx.rows.delete(r.Lease, equals(unit=tuple({task.unit for task in rows})))
    elif record is r.Message:
        tx.rows.delete(r.Metamessage, equals(message_key=keys))
    elif record is r.Conclusion:
        explicit_counts = Counter(
            row.collection_key for row in rows if row.level == r.EXPLICIT and row.state == r.LIVE
        )
        for collection, number in explicit_counts.items():
            tx.conclusions.count_explicit(collection, -number)
        if isinstance(target, r.Session):
            card_lines.remove_quoted(rt, tx, rows)
            dreams.restore_superseded(rt, tx, rows, target.key)
    elif record is r.Space and rt.vectors_transactional:
        for space in rows:
            rt.vectors.drop(tx, space)
    tx.rows.delete(record, equals(key=keys))
