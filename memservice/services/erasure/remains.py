"""What can remain of erased rows after their transaction: row keys in the payloads of tasks and in
idempotency records, and vectors in an index outside the storage. Removal, and the check that
nothing is left."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import (
    Conclusion,
    Delivery,
    IdempotencyKey,
    JsonObject,
    Message,
    Metamessage,
    Peer,
    Session,
    Summary,
    Task,
)
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.tasks import kinds
from memservice.spi.storage import Transaction

BATCH_SIZE = 1_000
"""Tasks or idempotency records per transaction."""

_BY_MESSAGE = (kinds.REPRESENTATION, kinds.SUMMARY)
_BY_KEYS = (kinds.EMBED, kinds.INDEX, kinds.DELETE_VECTORS, kinds.REPAIR)
_LISTS = ("keys", "like", "orphans")


@dataclass(frozen=True, slots=True)
class Erased:
    """Rows of one workspace that were erased."""

    workspace_key: int
    messages: frozenset[int]
    conclusions: frozenset[int]
    uids: frozenset[str]
    """Of these messages and conclusions."""

    @classmethod
    def of(cls, workspace_key: int, payload: Mapping[str, Any]) -> Erased:
        keys = payload["keys"]
        return cls(
            workspace_key,
            frozenset(keys.get(indexing.MESSAGE, ())),
            frozenset(keys.get(indexing.CONCLUSION, ())),
            frozenset(payload["uids"]),
        )

    def keys(self, kind: str) -> frozenset[int]:
        return self.messages if kind == indexing.MESSAGE else self.conclusions


def remove_vectors(rt: Runtime, erased: Erased) -> None:
    """Remove the vectors of erased rows from an index outside the storage. Call it outside any
    transaction; for an index in the storage it does nothing."""
    if rt.vectors_transactional:
        return
    with rt.storage.read() as tx:
        spaces = tx.spaces.of_workspace(erased.workspace_key)
    for kind in (indexing.MESSAGE, indexing.CONCLUSION):
        if keys := sorted(erased.keys(kind)):
            indexing.remove_vectors(rt, None, kind, spaces, keys)


def clean_idempotency_keys(
    tx: Transaction, session: Session, erased: Erased, after: int
) -> int | None:
    """Remove erased messages from the next idempotency records of a session, by key. Returns the
    last key, None at the end. A record stays, so that a repeated request stores nothing."""
    own = all_of(equals(session_key=session.key), Compare("key", "gt", after))
    rows = tx.rows.page(IdempotencyKey, own, limit=BATCH_SIZE)
    changed = [
        replace(row, message_keys=[key for key in row.message_keys if key not in erased.messages])
        for row in rows
        if not erased.messages.isdisjoint(row.message_keys)
    ]
    if changed:
        tx.rows.put(changed)
    return rows[-1].key if len(rows) == BATCH_SIZE else None


def clean_tasks(tx: Transaction, erased: Erased, after: int) -> int | None:
    """Remove erased rows from the next tasks of the workspace, by key. Returns the last key, None
    at the end. A task without other rows is deleted."""
    own = equals(workspace_key=erased.workspace_key, kind=(*_BY_MESSAGE, *_BY_KEYS))
    tasks = tx.rows.page(Task, all_of(own, Compare("key", "gt", after)), limit=BATCH_SIZE)
    _clean(tx, tasks, erased)
    return tasks[-1].key if len(tasks) == BATCH_SIZE else None


def _clean(tx: Transaction, tasks: Sequence[Task], erased: Erased) -> None:
    dropped: list[int] = []
    for task in tasks:
        if not _refers(task, erased):
            continue
        payload = _without(task, erased)
        if task.message_key in erased.messages or not any(payload.get(name) for name in _LISTS):
            dropped.append(task.key)
        else:
            tx.rows.change(Task, equals(key=task.key), payload=payload)
    if dropped:
        tx.rows.delete(Task, equals(key=tuple(dropped)))


def _refers(task: Task, erased: Erased) -> bool:
    if task.kind in _BY_MESSAGE:
        return task.message_key in erased.messages
    keys = _keys_of_rows(task, erased)
    return any(not keys.isdisjoint(task.payload.get(name, ())) for name in _LISTS)


def _keys_of_rows(task: Task, erased: Erased) -> frozenset[int]:
    kind = task.payload.get("kind", indexing.MESSAGE)
    return erased.keys(kind) if kind != indexing.DOCUMENT else frozenset()


def _without(task: Task, erased: Erased) -> JsonObject:
    """The payload of a task without the erased rows."""
    erased_keys = _keys_of_rows(task, erased)
    payload = dict(task.payload)
    keys = payload.get("keys", [])
    if "like" in payload:
        # The row with the same text is erased: the vector is computed.
        payload["like"] = [
            key if like in erased_keys else like
            for key, like in zip(keys, payload["like"], strict=True)
            if key not in erased_keys
        ]
    for name in ("keys", "orphans"):
        if name in payload:
            payload[name] = [key for key in payload[name] if key not in erased_keys]
    return payload


def rows_left(rt: Runtime, tx: Transaction, erased: Erased) -> list[str]:
    """The places in the storage where something is left of erased rows."""
    messages, conclusions = tuple(sorted(erased.messages)), tuple(sorted(erased.conclusions))
    workspace = erased.workspace_key
    left = {
        "messages": bool(tx.messages.positions(messages)),
        "conclusions": bool(
            conclusions and tx.rows.count(Conclusion, equals(key=conclusions), limit=1)
        ),
        "sources of conclusions": bool(
            tx.conclusions.of_messages(workspace, messages)
            or tx.conclusions.based_on(workspace, sorted(erased.uids))
        ),
        "metamessages": bool(
            messages and tx.rows.count(Metamessage, equals(message_key=messages), limit=1)
        ),
        "summaries": bool(
            messages
            and tx.rows.count(
                Summary, equals(workspace_key=workspace, message_key=messages), limit=1
            )
        ),
        "texts of messages": bool(
            rt.storage.text.indexed(tx, indexing.MESSAGE, workspace, messages)
        ),
        "texts of conclusions": bool(
            rt.storage.text.indexed(tx, indexing.CONCLUSION, workspace, conclusions)
        ),
    }
    return [name for name, is_left in left.items() if is_left]


def vectors_left(rt: Runtime, erased: Erased) -> list[str]:
    """The vector spaces in which something is left of erased rows. Call it outside any
    transaction."""
    left = []
    with rt.storage.read() as tx:
        spaces = tx.spaces.of_workspace(erased.workspace_key)
        if rt.vectors_transactional:
            left = [space for space in spaces if _has_vectors(rt, tx, space, erased)]
    if not rt.vectors_transactional:
        left = [space for space in spaces if _has_vectors(rt, None, space, erased)]
    return [f"vectors of kind {space.kind}" for space in left]


def _has_vectors(rt: Runtime, tx: Transaction | None, space: Any, erased: Erased) -> bool:
    keys = sorted(erased.keys(space.kind)) if space.kind != indexing.DOCUMENT else []
    return bool(keys and rt.vectors.fetch(tx, space, keys))


def tasks_left(tx: Transaction, erased: Erased, after: int) -> tuple[list[str], int | None]:
    """Whether one of the next tasks of the workspace refers to erased rows, and the last key; None
    at the end."""
    own = equals(workspace_key=erased.workspace_key)
    tasks = tx.rows.page(Task, all_of(own, Compare("key", "gt", after)), limit=BATCH_SIZE)
    left = sorted({f"tasks of kind {task.kind}" for task in tasks if _mentions(task, erased)})
    return left, tasks[-1].key if len(tasks) == BATCH_SIZE else None


def _mentions(task: Task, erased: Erased) -> bool:
    if task.kind in (*_BY_MESSAGE, *_BY_KEYS) and _refers(task, erased):
        return True
    if task.kind != kinds.DREAM:
        return False
    text = json.dumps(task.payload)
    return any(uid in text for uid in erased.uids)


def idempotency_left(
    tx: Transaction, session: Session, erased: Erased, after: int
) -> tuple[list[str], int | None]:
    """The same for the idempotency records of a session."""
    own = all_of(equals(session_key=session.key), Compare("key", "gt", after))
    rows = tx.rows.page(IdempotencyKey, own, limit=BATCH_SIZE)
    is_left = any(not erased.messages.isdisjoint(row.message_keys) for row in rows)
    return ["idempotency records"] * is_left, rows[-1].key if len(rows) == BATCH_SIZE else None


def clean_tasks_of_peer(tx: Transaction, peer: Peer, after: int) -> int | None:
    """Remove an erased peer, and rows that no longer exist, from the next tasks of its workspace,
    by key. Returns the last key, None at the end."""
    # Not from the tasks that remove the vectors of such rows.
    own = equals(workspace_key=peer.workspace_key, kind=(*_BY_MESSAGE, kinds.EMBED, kinds.INDEX))
    tasks = tx.rows.page(Task, all_of(own, Compare("key", "gt", after)), limit=BATCH_SIZE)
    erased = Erased(
        peer.workspace_key,
        frozenset(_missing(tx, Message, tasks, indexing.MESSAGE)),
        frozenset(_missing(tx, Conclusion, tasks, indexing.CONCLUSION)),
        frozenset(),
    )
    _clean(tx, tasks, erased)
    for task in tasks:
        observers = task.payload.get("observers", [])
        if peer.key in observers:
            payload = {**task.payload, "observers": [key for key in observers if key != peer.key]}
            tx.rows.change(Task, equals(key=task.key), payload=payload)
    return tasks[-1].key if len(tasks) == BATCH_SIZE else None


def _missing(tx: Transaction, record: type[Any], tasks: Sequence[Task], kind: str) -> set[int]:
    """Keys of rows of this kind that tasks name but that do not exist."""
    keys = {
        key
        for task in tasks
        if task.kind in _BY_KEYS and task.payload.get("kind", indexing.MESSAGE) == kind
        for name in _LISTS
        for key in task.payload.get(name, ())
    }
    if kind == indexing.MESSAGE:
        keys |= {task.message_key for task in tasks if task.message_key is not None}
    if not keys:
        return keys
    return keys - {row.key for row in tx.rows.page(record, equals(key=tuple(sorted(keys))))}


def clean_records_of_peer(tx: Transaction, peer: Peer, after: int) -> int | None:
    """Remove messages that no longer exist from the next idempotency records of the workspace of
    an erased peer, by key. Returns the last key, None at the end."""
    own = all_of(equals(workspace_key=peer.workspace_key), Compare("key", "gt", after))
    rows = tx.rows.page(IdempotencyKey, own, limit=BATCH_SIZE)
    keys = sorted({key for row in rows for key in row.message_keys})
    present = {position.key for position in tx.messages.positions(keys)}
    changed = [
        replace(row, message_keys=[key for key in row.message_keys if key in present])
        for row in rows
        if not present.issuperset(row.message_keys)
    ]
    if changed:
        tx.rows.put(changed)
    return rows[-1].key if len(rows) == BATCH_SIZE else None


def clean_webhooks_of_peer(
    tx: Transaction, peer: Peer, slug: str, asked_at: datetime, after: int
) -> int | None:
    """Delete the next records of deliveries, and at first the tasks of deliveries, whose events
    name an erased peer by its id and are not newer than the erasure. Returns the last key of a
    record, None at the end."""
    own = all_of(equals(workspace_key=peer.workspace_key), Compare("created_at", "lte", asked_at))
    if not after:
        tasks = tx.rows.page(Task, all_of(own, equals(kind=kinds.WEBHOOK)))
        quoting = tuple(task.key for task in tasks if _names(task.payload["body"], slug))
        if quoting:
            tx.rows.delete(Task, equals(key=quoting))
    deliveries = tx.rows.page(Delivery, all_of(own, Compare("key", "gt", after)), limit=BATCH_SIZE)
    quoting = tuple(row.key for row in deliveries if _names(row.body, slug))
    if quoting:
        tx.rows.delete(Delivery, equals(key=quoting))
    return deliveries[-1].key if len(deliveries) == BATCH_SIZE else None


def _names(body: str, slug: str) -> bool:
    """Whether a value of an event is the id of a peer. The receipt of an erasure may name it."""
    try:
        event = json.loads(body)
    except ValueError:
        return False
    data = event.get("data", event) if isinstance(event, dict) else {}
    return isinstance(data, dict) and slug in (data.get("observer"), data.get("observed"))
