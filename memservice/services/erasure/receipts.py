"""Receipts of erasures: what was asked for, by whom, when, and what came of it.

A receipt is stored in the transaction that accepts the erasure, and kept. It contains ids and
counts, never erased text. The task of the erasure moves it on: `accepted` → `erasing` → `done`. An
erasure whose task has failed, or was deleted, is `failed`; a retried task continues it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memservice.domain.errors import NotFound
from memservice.domain.filters import TRUE, Condition, equals
from memservice.domain.ids import new_uid
from memservice.domain.records import (
    ACCEPTED,
    DELETING,
    ERASING,
    FAILED,
    FINISHED,
    Erasure,
    Task,
    Workspace,
)
from memservice.domain.times import wire_seconds
from memservice.runtime import Runtime
from memservice.services import webhooks, workspaces
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.erasure.erased import NotErased
from memservice.services.paging import Listing, Page, Paging, listing, page_after
from memservice.services.webhooks import ERASURE_DONE, Event
from memservice.spi.storage import Transaction

MESSAGE, PEER, SESSION, WORKSPACE = "message", "peer", "session", "workspace"
"""Kinds of erasure that a caller asks for."""
MESSAGES, CONCLUSIONS = "messages", "conclusions"
"""Kinds of erasure by retention."""
RETENTION = "retention"
"""`requested_by` of an erasure by retention."""
BEFORE = "before"
"""Entry of the options of an erasure by retention: what is older is erased, ISO 8601."""
BATCH_SIZE = 500


class ErasureRequest(Struct, frozen=True):
    """What a caller asks to erase."""

    kind: str
    workspace: Workspace
    target: str
    """The id that the caller named."""
    target_uid: str | None
    """The uid of the row; None: several rows."""
    session: str | None = None
    """The slug of the session that it belongs to."""
    options: Mapping[str, Any] = field(default_factory=dict)


class Receipt(Struct, frozen=True):
    """An erasure, as callers see it."""

    uid: str
    kind: str
    workspace: str
    session: str | None
    target: str
    requested_by: str
    options: Mapping[str, Any]
    state: str
    """`accepted`, `erasing`, `done` or `failed`."""
    reason: str | None
    """Why it failed; None in other states."""
    counts: Mapping[str, int]
    """Number of erased rows by table; empty until it is done."""
    task: str
    """The uid of its task: a failed one can be retried as a job."""
    created_at: datetime
    finished_at: datetime | None


def open(
    rt: Runtime, tx: Transaction, requested_by: str, request: ErasureRequest, task: Task
) -> Erasure:
    """Store the receipt of an erasure that `task` carries out. Call it in the transaction that
    accepts the erasure. `requested_by`: `Principal.actor`, or `RETENTION`."""
    return tx.erasures.add(
        Erasure(
            uid=new_uid(),
            kind=request.kind,
            workspace_key=request.workspace.key,
            workspace=request.workspace.slug,
            workspace_uid=request.workspace.uid,
            session=request.session,
            target=request.target,
            target_uid=request.target_uid,
            requested_by=requested_by,
            options=dict(request.options),
            task_uid=task.uid,
            created_at=rt.clock(),
        )
    )


def begin(tx: Transaction, task: Task) -> None:
    """The task has begun. Without a receipt (an abandoned copy of a session) nothing happens."""
    erasure = tx.erasures.of_task(task.uid)
    if erasure is not None and erasure.state == ACCEPTED:
        tx.erasures.save(replace(erasure, state=ERASING))


def finish(rt: Runtime, tx: Transaction, task: Task, counts: Mapping[str, int]) -> Event | None:
    """The task has erased everything. Returns the event for
    `webhooks.notify_plugins` after the commit; None without a receipt, and for a repetition."""
    erasure = tx.erasures.of_task(task.uid)
    if erasure is None or erasure.state == FINISHED:
        return None
    erasure = tx.erasures.save(
        replace(erasure, state=FINISHED, counts=dict(counts), finished_at=rt.clock())
    )
    workspace = tx.workspaces.by_key(erasure.workspace_key or 0)
    event = Event(ERASURE_DONE, _event_data(erasure))
    if workspace is None or workspace.state == DELETING:
        return event
    return webhooks.emit(rt, tx, workspace.key, event)


def _event_data(erasure: Erasure) -> dict[str, Any]:
    return {
        "workspace_id": erasure.workspace,
        "erasure_id": erasure.uid,
        "kind": erasure.kind,
        "session_id": erasure.session,
        "target_id": erasure.target,
        "counts": dict(erasure.counts),
    }


def accepted(erasure: Erasure, task: Task) -> Receipt:
    """The receipt of an erasure that the same transaction opened with this task."""
    return _receipt(erasure, task)


def receipt(tx: Transaction, erasure: Erasure) -> Receipt:
    return _receipts(tx, [erasure])[0]


def page(rt: Runtime, principal: Principal, workspace_id: str, paging: Paging) -> Page[Receipt]:
    """The receipts of a workspace, newest first. Empty if the workspace does not exist."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
        if workspace is None:
            return paging.empty()
        return _page(tx, equals(workspace_key=workspace.key), paging)


def page_of_store(
    rt: Runtime, principal: Principal, paging: Paging, workspace_id: str | None = None
) -> Page[Receipt]:
    """The receipts of all workspaces, newest first, also of erased ones; with `workspace_id`, of
    every workspace that has, or had, this id."""
    policy.require_admin(principal, needs=Permission.VIEW_AUDIT_LOG)
    condition = TRUE if workspace_id is None else equals(workspace=workspace_id)
    with rt.storage.read() as tx:
        return _page(tx, condition, paging)


def browse(
    rt: Runtime, principal: Principal, workspace_id: str, after: str | None = None
) -> Listing[Receipt]:
    """Like `page`, after the receipt `after`. Raises NotFound for an unknown workspace."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        workspace = workspaces.require(tx, workspace_id)
        part = page_after(tx, Erasure, equals(workspace_key=workspace.key), after)
        return Listing(_receipts(tx, part.items), part.after)


def get(rt: Runtime, principal: Principal, workspace_id: str, uid: str) -> Receipt:
    """A receipt of a workspace. Raises NotFound."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
        erasure = tx.erasures.by_uid(uid)
        if workspace is None or erasure is None or erasure.workspace_key != workspace.key:
            raise NotFound(f"Erasure {uid} not found in workspace {workspace_id}")
        return receipt(tx, erasure)


def get_of_store(rt: Runtime, principal: Principal, uid: str) -> Receipt:
    """A receipt of any workspace, also of an erased one. Raises NotFound."""
    policy.require_admin(principal, needs=Permission.VIEW_AUDIT_LOG)
    with rt.storage.read() as tx:
        erasure = tx.erasures.by_uid(uid)
        if erasure is None:
            raise NotFound(f"Erasure {uid} not found")
        return receipt(tx, erasure)


def export(
    rt: Runtime, principal: Principal, workspace_id: str | None = None
) -> Iterator[dict[str, Any]]:
    """All receipts as JSON objects, newest first, as `page_of_store` selects them. They are read
    batch by batch."""
    policy.require_admin(principal, needs=Permission.VIEW_AUDIT_LOG)
    return _export(rt, principal, workspace_id)


def _export(
    rt: Runtime, principal: Principal, workspace_id: str | None
) -> Iterator[dict[str, Any]]:
    number = 1
    while True:
        part = page_of_store(rt, principal, Paging(number, BATCH_SIZE), workspace_id)
        yield from map(as_json, part.items)
        if number >= part.pages:
            return
        number += 1


def as_json(receipt: Receipt) -> dict[str, Any]:
    """A receipt with the names of the API."""
    return {
        "id": receipt.uid,
        "kind": receipt.kind,
        "workspace_id": receipt.workspace,
        "session_id": receipt.session,
        "target_id": receipt.target,
        "requested_by": receipt.requested_by,
        "options": dict(receipt.options),
        "state": receipt.state,
        "reason": receipt.reason,
        "counts": dict(receipt.counts),
        "job_id": receipt.task,
        "created_at": wire_seconds(receipt.created_at),
        "finished_at": None if receipt.finished_at is None else wire_seconds(receipt.finished_at),
    }


def _page(tx: Transaction, condition: Condition, paging: Paging) -> Page[Receipt]:
    part = listing(
        tx.erasures, paging, condition, order=paging.order("created_at", newest_first=True)
    )
    return Page(_receipts(tx, part.items), part.total, part.page, part.size)


def _receipts(tx: Transaction, erasures: Sequence[Erasure]) -> list[Receipt]:
    uids = tuple(erasure.task_uid for erasure in erasures if erasure.state != FINISHED)
    tasks = {task.uid: task for task in tx.rows.page(Task, equals(uid=uids))} if uids else {}
    return [_receipt(erasure, tasks.get(erasure.task_uid)) for erasure in erasures]


def _receipt(erasure: Erasure, task: Task | None) -> Receipt:
    ended = erasure.state != FINISHED and (task is None or task.state == FAILED)
    return Receipt(
        uid=erasure.uid,
        kind=erasure.kind,
        workspace=erasure.workspace,
        session=erasure.session,
        target=erasure.target,
        requested_by=erasure.requested_by,
        options=erasure.options,
        state=FAILED if ended else erasure.state,
        reason=_reason(task) if ended else None,
        counts=erasure.counts,
        task=erasure.task_uid,
        created_at=erasure.created_at,
        finished_at=erasure.finished_at,
    )


def _reason(task: Task | None) -> str:
    """Why an erasure failed. Only the message of a search is known to quote no text."""
    if task is None:
        return "its background task was purged before the end: ask for the erasure again"
    name, _, message = (task.last_error or "").partition(": ")
    return message if name == NotErased.__name__ else "its background task failed: see the job"
