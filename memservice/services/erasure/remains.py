"""What can remain of erased rows after their transaction: row keys in the payloads of tasks and in
idempotency records, events that name an erased peer, vectors in an index outside the storage, and
traces. Removal; `searches` looks for what is left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from memservice.domain.filters import FALSE, all_of, equals
from memservice.domain.filters.ast import Compare, Condition
from memservice.domain.records import (
    Conclusion,
    Delivery,
    IdempotencyKey,
    JsonObject,
    Message,
    Peer,
    Session,
    Task,
    Workspace,
)
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.erasure import cards, conclusions, dream_cards, notes, reasons
from memservice.services.erasure.erased import Erased
from memservice.services.events import trace_file
from memservice.services.tasks import kinds
from memservice.services.transfer.record_formats import SPACED
from memservice.spi.storage import Transaction

BATCH_SIZE = 1_000
"""Tasks, idempotency records or deliveries per transaction."""

_BY_MESSAGE = (kinds.REPRESENTATION, kinds.SUMMARY)
_BY_KEYS = (kinds.EMBED, kinds.INDEX)
_REMOVING = (kinds.DELETE_VECTORS, kinds.REPAIR)
"""Kinds of task that name erased rows to remove their vectors."""
_NAMING = (*_BY_MESSAGE, *_BY_KEYS, *_REMOVING, kinds.DREAM)
"""Kinds of task that name messages or conclusions."""
_LISTS = ("keys", "like", "orphans")
_PEERS = ("observers", "touched")
"""Entries of the payload of a task with keys of peers."""


def remove_vectors(rt: Runtime, erased: Erased) -> None:
    """Remove the vectors of erased rows from an index outside the storage. Call it outside any
    transaction; for an index in the storage it does nothing."""
    if rt.vectors_transactional:
        return
    with rt.storage.read() as tx:
        spaces = tx.spaces.of_workspace(erased.workspace_key)
    for kind in SPACED:
        if keys := sorted(erased.of_kind(kind)):
            indexing.remove_vectors(rt, None, kind, spaces, keys)


def remove_from_store(rt: Runtime, tx: Transaction, erased: Erased) -> list[Conclusion]:
    """Remove what a search found of erased rows: in the indexes of the storage, in conclusions that
    were stored meanwhile, in cards, dreams, reasons of supersession and notes. Returns these
    conclusions."""
    workspace_key = erased.workspace_key
    for kind in SPACED:
        indexing.remove_from_storage(rt, tx, kind, workspace_key, sorted(erased.of_kind(kind)))
    messages = erased.keys.get(Message, frozenset())
    late = conclusions.erase_without(rt, tx, workspace_key, messages, erased.uids)
    before = erased.before or rt.clock()
    cards.remove_unquoted(rt, tx, erased.collections)
    dream_cards.remove_unquoted(tx, erased, before)
    reasons.remove_left(tx, erased, before)
    notes.remove_representations(tx, erased.owners, before)
    return late


def remove_traces(rt: Runtime, workspace: str, asked_at: datetime) -> int:
    """Remove the traces of a workspace that this process can write. Returns their number. Call it
    outside any transaction."""
    path = rt.settings.app.reasoning_traces_file
    return trace_file.remove(Path(path), workspace, asked_at) if path else 0


def traces_left(rt: Runtime, workspace: str, asked_at: datetime) -> bool:
    """Whether the file of traces has any of a workspace, of calls that began before a time."""
    path = rt.settings.app.reasoning_traces_file
    return bool(path) and trace_file.has_any(Path(str(path)), workspace, asked_at)


def clean_idempotency_keys(tx: Transaction, erased: Erased, after: int) -> int | None:
    """Remove erased messages from the next idempotency records of the workspace, by key. Returns
    the last key, None at the end. A record stays, so that a repeated request stores nothing."""
    rows, missing, last = next_idempotency_keys(tx, erased, after)
    for row in rows:
        if not missing.isdisjoint(row.message_keys):
            remaining = [key for key in row.message_keys if key not in missing]
            # No row if its session was erased meanwhile.
            tx.rows.change(IdempotencyKey, equals(key=row.key), message_keys=remaining)
    return last


def next_idempotency_keys(
    tx: Transaction, erased: Erased, after: int
) -> tuple[list[IdempotencyKey], set[int], int | None]:
    """The next idempotency records of the workspace, the erased messages that they name, and the
    last key."""
    if not (erased.by_absence or erased.keys.get(Message)):
        return [], set(), None
    condition = _next(erased, after)
    if erased.session is not None:
        condition = all_of(equals(session_key=erased.session), Compare("key", "gt", after))
    rows = tx.rows.page(IdempotencyKey, condition, limit=BATCH_SIZE)
    missing = erased.among(tx, Message, {key for row in rows for key in row.message_keys})
    return rows, missing, _last(rows)


def _next(erased: Erased, after: int, *conditions: Condition) -> Condition:
    own = equals(workspace_key=erased.workspace_key)
    return all_of(own, Compare("key", "gt", after), *conditions)


def _last(rows: Sequence[Any]) -> int | None:
    return rows[-1].key if len(rows) == BATCH_SIZE else None


def clean_tasks(tx: Transaction, erased: Erased, after: int) -> int | None:
    """Remove erased rows and peers from the next tasks of the workspace, by key. Returns the last
    key, None at the end. A task without other rows, and one of an erased session, is deleted."""
    tasks, missing, last = next_tasks(tx, erased, after)
    naming = [task.key for task in tasks if missing.are_in(task)]
    dropped: list[int] = []
    # A step of such a task may have stored its progress since the tasks were read.
    for task in tx.locked(Task, naming):
        payload = missing.without(task)
        of_missing = missing.of_missing(task)
        is_empty = task.kind in (*_BY_KEYS, *_REMOVING) and not any(
            payload.get(name) for name in _LISTS
        )
        if of_missing or is_empty:
            dropped.append(task.key)
        else:
            tx.rows.change(Task, equals(key=task.key), payload=payload)
    if dropped:
        tx.rows.delete(Task, equals(key=tuple(dropped)))
    return last


def next_tasks(
    tx: Transaction, erased: Erased, after: int
) -> tuple[list[Task], MissingRows, int | None]:
    """The next tasks of the workspace that can name erased rows, these rows, and the last key."""
    condition = _next(erased, after)
    if not erased.by_absence:
        condition = all_of(condition, equals(kind=_NAMING))
    tasks = tx.rows.page(Task, condition, limit=BATCH_SIZE)
    return tasks, MissingRows.of(tx, erased, tasks), _last(tasks)


class MissingRows(Struct, frozen=True):
    """Erased rows that some tasks name, by record."""

    _keys: Mapping[type[Any], set[int]]
    _names_removed: bool
    """Whether tasks that remove vectors may not name them either."""
    _uids: frozenset[str]

    @classmethod
    def of(cls, tx: Transaction, erased: Erased, tasks: Sequence[Task]) -> MissingRows:
        named: dict[type[Any], set[int]] = {record: set() for record in SPACED.values()}
        for task in tasks:
            if task.message_key is not None:
                named[Message].add(task.message_key)
            if task.kind in (*_BY_KEYS, *_REMOVING):
                named[_record(task)].update(*(task.payload.get(name, ()) for name in _LISTS))
        missing = {record: erased.among(tx, record, keys) for record, keys in named.items()}
        for record in (Peer, Session, Workspace):
            missing[record] = set(erased.keys.get(record, ()))
        return cls(missing, not erased.by_absence, erased.uids)

    def of_missing(self, task: Task) -> bool:
        """Whether a task is about an erased row only."""
        return (
            (task.kind in _BY_MESSAGE and task.message_key in self._keys[Message])
            or task.session_key in self._keys[Session]
            or task.workspace_key in self._keys[Workspace]
            or not self._keys[Peer].isdisjoint((task.observer_key, task.observed_key))
        )

    def are_in(self, task: Task) -> bool:
        peers, own = self._keys[Peer], self._own(task)
        return (
            self.of_missing(task)
            or any(not peers.isdisjoint(task.payload.get(name, ())) for name in _PEERS)
            or any(not own.isdisjoint(task.payload.get(name, ())) for name in _LISTS)
        )

    def are_quoted(self, task: Task) -> bool:
        """Whether a dream names an erased conclusion."""
        if task.kind != kinds.DREAM or not self._uids:
            return False
        text = json.dumps(task.payload)
        return any(uid in text for uid in self._uids)

    def _own(self, task: Task) -> set[int]:
        is_naming = task.kind in _BY_KEYS or (task.kind in _REMOVING and self._names_removed)
        return self._keys[_record(task)] if is_naming else set()

    def without(self, task: Task) -> JsonObject:
        """The payload of a task without the erased rows."""
        own = self._own(task)
        payload = dict(task.payload)
        if own and "like" in payload:
            # The row with the same text is erased: the vector is computed.
            payload["like"] = [
                key if like in own else like
                for key, like in zip(payload.get("keys", []), payload["like"], strict=True)
                if key not in own
            ]
        for names, keys in ((("keys", "orphans"), own), (_PEERS, self._keys[Peer])):
            for name in names:
                if keys and name in payload:
                    payload[name] = [key for key in payload[name] if key not in keys]
        return payload


def _record(task: Task) -> type[Any]:
    return SPACED[task.payload.get("kind", indexing.MESSAGE)]


def missing_rows(tx: Transaction, tasks: Sequence[Task]) -> dict[str, list[int]]:
    """Keys of rows that tasks would embed but that do not exist, by kind."""
    keys: dict[str, set[int]] = {kind: set() for kind in SPACED}
    for task in tasks:
        keys[task.payload["kind"]].update(*(task.payload.get(name, ()) for name in _LISTS))
    return {
        kind: sorted(keys[kind] - {row.key for row in _existing(tx, record, keys[kind])})
        for kind, record in SPACED.items()
    }


def _existing(tx: Transaction, record: type[Any], keys: set[int]) -> list[Any]:
    return tx.rows.page(record, equals(key=tuple(sorted(keys)))) if keys else []


def clean_events(tx: Transaction, erased: Erased, after: int) -> int | None:
    """Delete the next records of deliveries, and at first the tasks of deliveries, whose events
    name an erased peer by its id and are not newer than the erasure. Returns the last key of a
    record, None at the end."""
    if not after and (quoting := tuple(task.key for task in naming_tasks(tx, erased))):
        tx.rows.delete(Task, equals(key=quoting))
    quoting, last = naming_deliveries(tx, erased, after)
    if quoting:
        tx.rows.delete(Delivery, equals(key=quoting))
    return last


def naming_tasks(tx: Transaction, erased: Erased) -> Iterable[Task]:
    """The tasks of deliveries that `clean_events` deletes."""
    if _peer_of(erased) is None:
        return []
    tasks = tx.rows.page(Task, _next(erased, 0, _older(erased), equals(kind=kinds.WEBHOOK)))
    return [task for task in tasks if _names(task.payload["body"], _peer_of(erased))]


def naming_deliveries(
    tx: Transaction, erased: Erased, after: int
) -> tuple[tuple[int, ...], int | None]:
    """Keys of those of the next deliveries that `clean_events` deletes, and the last key."""
    if _peer_of(erased) is None:
        return (), None
    rows = tx.rows.page(Delivery, _next(erased, after, _older(erased)), limit=BATCH_SIZE)
    return tuple(row.key for row in rows if _names(row.body, _peer_of(erased))), _last(rows)


def _peer_of(erased: Erased) -> str | None:
    """The id of the erased peer, if it is one."""
    return erased.receipt.target if Peer in erased.keys and erased.receipt is not None else None


def _older(erased: Erased) -> Condition:
    return FALSE if erased.before is None else Compare("created_at", "lte", erased.before)


def _names(body: str, slug: str | None) -> bool:
    """Whether a value of an event is the id of a peer. The receipt of an erasure may name it."""
    try:
        event = json.loads(body)
    except ValueError:
        return False
    data = event.get("data", event) if isinstance(event, dict) else {}
    return isinstance(data, dict) and slug in (data.get("observer"), data.get("observed"))
