"""Erases a peer batch by batch: its messages in every session, what is held about it or by it, and
everything that belongs to it.

Every step queries the remaining rows, so interrupted work continues where it stopped, and rows that
concurrent writers stored after the request are erased too. After some batches, and after the last
one of a stage, a step first checks that nothing is left of them. The row of the peer is erased
last, while it is locked and no row refers to it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Any_, Compare, Condition
from memservice.domain.records import (
    ERASED,
    Card,
    Collection,
    Conclusion,
    Document,
    Member,
    Message,
    Metamessage,
    NamedCollection,
    Peer,
    PeerName,
    Session,
    Task,
)
from memservice.pipeline.deletion import batches, checking, mentions, outside_vectors
from memservice.pipeline.handler import Outcome, Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.erasure import (
    conclusions,
    message_rows,
    positions,
    receipts,
    redacted_names,
    remains,
    searches,
    summaries,
    work,
)
from memservice.services.erasure.erased import Erased, joined, named
from memservice.spi.rows import Order
from memservice.spi.schema import BY_RECORD
from memservice.spi.storage import Transaction

BATCH_SIZE = 500
"""Maximum number of rows per transaction (`batches`)."""
MAX_SESSIONS = 500
"""Sessions with gaps that one task remembers before their positions are packed."""

MESSAGES, SESSIONS, CONCLUSIONS, MENTIONS, REST = (
    "messages",
    "sessions",
    "conclusions",
    "mentions",
    "rest",
)
VECTORS, TASKS, RECORDS, EVENTS, CHECK, ROW, RECLAIM, END = (
    "vectors",
    "tasks",
    "records",
    "events",
    "check",
    "row",
    "reclaim",
    "end",
)
"""Stages, in this order; sessions are packed whenever there are many. Mentions are replaced only if
the caller chose that."""

OWN: Sequence[tuple[type[Any], str]] = (
    (PeerName, "peer_key"),
    (Member, "peer_key"),
    (Card, "observer_key"),
    (Metamessage, "owner_key"),
    (Document, "owner_key"),
    (NamedCollection, "owner_key"),
)
"""Records that belong to a peer, with the field that names it, in the order of erasure."""


def prepare(rt: Runtime, task: Task) -> Prepared:
    """The next step of an `erase` task with `peer` in its payload."""
    stage = task.payload.get("stage", MESSAGES)
    unchecked = task.payload.get(checking.LAST)
    if unchecked is not None and (stage not in _MANY or checking.is_full(unchecked)):
        last = Erased.of(task, unchecked)
        remains.remove_vectors(rt, last)
        if left := searches.left_of_batch(rt, last):
            return Prepared(lambda tx: _remove(rt, tx, task, last, left))
        unchecked = None
    task = replace(task, payload=_without_last(task, is_checked=unchecked is None))
    if stage == CHECK:
        with rt.storage.read() as tx:
            erased = Erased.target(tx, task, task.payload["workspace"])
        return checking.search(rt, task, erased, before=MESSAGES, then=ROW)
    if stage == RECLAIM:
        return checking.reclaim(rt, task, END)
    if stage == END:
        return checking.finish(rt, task)
    if stage == VECTORS:
        return outside_vectors.prepare(
            rt,
            task,
            task.payload["workspace"],
            lambda next_task: checking.at(next_task, stage=TASKS),
        )
    if stage == MENTIONS and mentions.is_due(task):
        return mentions.prepare(rt, task, _after_mentions)
    if stage == EVENTS and not task.payload.get("after"):
        checking.remove_traces(rt, task)

    def store(tx: Transaction) -> Outcome | Unfinished:
        began = time.perf_counter()
        step = erase(tx)
        return batches.adapted(step, time.perf_counter() - began, BATCH_SIZE)

    def erase(tx: Transaction) -> Unfinished:
        receipts.begin(tx, task)
        peer = tx.peers.by_keys([task.payload["peer"]]).get(task.payload["peer"])
        if peer is None or peer.kind != ERASED:
            # The whole workspace was erased meanwhile; finished tasks are kept.
            step = checking.at(replace(task, payload=redacted_names.without(task)), stage=END)
        else:
            step = _STEPS[stage](rt, tx, task, peer)
        return checking.with_unchecked(step, unchecked)

    return Prepared(store)


def _remove(
    rt: Runtime, tx: Transaction, task: Task, last: Erased, left: Sequence[str]
) -> Unfinished:
    """Remove what was found of the rows that were erased last. They are checked again."""
    receipts.begin(tx, task)
    totals, rows = checking.remove(rt, tx, task, last, task.payload[checking.LAST])
    position = {name: task.payload[name] for name in ("stage", "after") if name in task.payload}
    unchecked = {**rows, checking.DUE: True}
    return checking.again(task, left, checking.ROUNDS, totals, last=unchecked, **position)


def _without_last(task: Task, *, is_checked: bool) -> dict[str, Any]:
    removed = (checking.LAST, checking.ROUNDS) if is_checked else (checking.LAST,)
    return {name: task.payload[name] for name in task.payload if name not in removed}


def _messages(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    order, number = (Order("key"),), batches.size(task, BATCH_SIZE)
    after = task.payload.get("after", 0)
    # From the last key on: PostgreSQL would read the index entries of all erased rows again.
    own = all_of(equals(author_key=peer.key), Compare("key", "gt", after))
    messages = tx.rows.page(Message, own, order, number)
    sessions: dict[str, Any] = dict(task.payload.get("sessions", {}))
    if not messages and after:
        return checking.at(task)  # again from the first key, for rows that were stored meanwhile
    if not messages or len(sessions) >= MAX_SESSIONS:
        return checking.at(task, stage=SESSIONS if sessions else CONCLUSIONS)
    totals = Counter(task.outcome)
    batch: dict[str, Any] = named({}, (), ())
    by_session = sorted(messages, key=lambda message: (message.session_key, message.seq))
    for key, group in groupby(by_session, key=lambda message: message.session_key):
        erased = _erase_of_session(rt, tx, peer.workspace_key, key, list(group))
        totals.update(erased.counts)
        batch = joined(batch, erased.named)
        before = sessions.get(str(key), {"first": erased.first, "covered": {}})
        sessions[str(key)] = {
            "first": min(before["first"], erased.first),
            "covered": before["covered"] | dict(erased.covered),
        }
    return checking.at(task, totals, sessions=sessions, last=batch, after=messages[-1].key)


def _erase_of_session(
    rt: Runtime, tx: Transaction, workspace_key: int, session_key: int, messages: list[Message]
) -> message_rows.ErasedRows:
    unlocked = tx.sessions.by_key(session_key)
    if unlocked is not None:
        work.interrupt_session(tx, unlocked)
    session = tx.sessions.by_key(session_key, lock=True)
    if session is None:
        return message_rows.erase_without_session(rt, tx, workspace_key, messages)
    # Positions as they are under the lock.
    current_positions = tx.messages.positions([message.key for message in messages], times=False)
    seqs = {position.key: position.seq for position in current_positions}
    current = [
        row if row.seq == seqs[row.key] else replace(row, seq=seqs[row.key])
        for row in messages
        if row.key in seqs
    ]
    return message_rows.erase(rt, tx, session, current) if current else message_rows.NOTHING


def _sessions(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    """Pack the positions of some sessions, about `positions.BATCH_SIZE` messages in all."""
    sessions: dict[str, Any] = dict(task.payload.get("sessions", {}))
    moved = 0
    while sessions and moved < positions.BATCH_SIZE:
        key = next(iter(sessions))
        gap = sessions.pop(key)
        session = tx.sessions.by_key(int(key), lock=True)
        if session is not None:
            summaries.make_again(rt, tx, session, gap["covered"])
            positions.repack(rt, tx, session, gap["first"])
            moved += min(session.message_count - gap["first"], positions.BATCH_SIZE) + 10
    return checking.at(task, stage=SESSIONS if sessions else MESSAGES, sessions=sessions)


def _after_mentions(task: Task, changed: Mapping[str, Any]) -> Unfinished:
    """Sum the tokens of changed sessions again whenever there are many, and at last."""
    sessions: dict[str, Any] = dict(task.payload.get("sessions", {}))
    for key, gap in changed.items():
        before = sessions.get(key, gap)
        sessions[key] = {
            "first": min(before["first"], gap["first"]),
            "covered": before["covered"] | gap["covered"],
        }
    is_full = len(sessions) >= MAX_SESSIONS or (sessions and not mentions.in_messages(task))
    return checking.at(task, stage=SESSIONS if is_full else MENTIONS, sessions=sessions)


def _mentions(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    return checking.at(task, stage=REST)


def _conclusions(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    of_peer = Any_((equals(observer_key=peer.key), equals(observed_key=peer.key)))
    collection = tx.rows.get(Collection, _in(peer, of_peer))
    if collection is None:
        return checking.at(task, stage=MENTIONS)
    totals = Counter(task.outcome)
    of_collection = equals(collection_key=collection.key)
    order = (Order("state"), Order("key"))
    rows = tx.rows.page(Conclusion, of_collection, order, batches.size(task, BATCH_SIZE))
    if not rows:
        totals["collections"] += tx.rows.delete(Collection, equals(key=collection.key))
        return checking.at(task, totals)
    erased = conclusions.with_dependents(tx, peer.workspace_key, rows)
    conclusions.erase(rt, tx, peer.workspace_key, erased)
    totals["conclusions"] += len(erased)
    return checking.at(task, totals, last=named({}, (), erased))


def _rest(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    totals = Counter(task.outcome)
    for record, field in OWN:
        rows = tx.rows.page(record, equals(**{field: peer.key}), limit=BATCH_SIZE)
        if not rows:
            continue
        keys = [row.key for row in rows]
        batch = None
        if record is Document:
            indexing.remove_rows(rt, tx, indexing.DOCUMENT, peer.workspace_key, keys)
            batch = named({indexing.DOCUMENT: keys}, (), ())
        totals[BY_RECORD[record].name] += tx.rows.delete(record, equals(key=tuple(keys)))
        return checking.at(task, totals, last=batch)
    # What others said in a session that it owned stays.
    tx.rows.change(Session, equals(owner_key=peer.key), owner_key=None)
    tasks = tx.rows.page(Task, _tasks_of(peer), limit=BATCH_SIZE)
    if tasks:
        task_keys = tuple(other.key for other in tasks)
        totals["tasks"] += tx.rows.delete(Task, equals(key=task_keys))
        return checking.at(task, totals)
    return checking.at(task, stage=VECTORS)


def _tasks(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    last = remains.clean_tasks(tx, _erased(tx, task), task.payload.get("after", 0))
    return checking.at(task, stage=RECORDS if last is None else TASKS, after=last or 0)


def _records(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    last = remains.clean_idempotency_keys(tx, _erased(tx, task), task.payload.get("after", 0))
    return checking.at(task, stage=EVENTS if last is None else RECORDS, after=last or 0)


def _events(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    last = remains.clean_events(tx, _erased(tx, task), task.payload.get("after", 0))
    return checking.at(task, stage=CHECK if last is None else EVENTS, after=last or 0)


def _erased(tx: Transaction, task: Task) -> Erased:
    return Erased.target(tx, task, task.payload["workspace"])


def _row(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    """Erase the row of the peer, if no row that was stored since the check refers to it."""
    tx.rows.get(Peer, equals(key=peer.key), lock=True)
    left = sorted(
        {
            BY_RECORD[record].name
            for record, condition in _references(peer)
            if tx.rows.count(record, condition, limit=1)
        }
    )
    if left:
        return checking.again(task, left, stage=MESSAGES)
    totals = Counter(task.outcome)
    totals["peers"] += tx.rows.delete(Peer, equals(key=peer.key))
    return checking.at(task, totals, stage=RECLAIM)


def _references(peer: Peer) -> Iterable[tuple[type[Any], Condition]]:
    """Everything that must not refer to a peer without a row. Conclusions belong to collections."""
    yield Message, equals(author_key=peer.key)
    for field in ("observer_key", "observed_key"):
        yield Collection, _in(peer, equals(**{field: peer.key}))
    yield Session, _in(peer, equals(owner_key=peer.key))
    for record, field in OWN:
        yield record, equals(**{field: peer.key})
    yield Task, _tasks_of(peer)


_MANY = (MESSAGES, CONCLUSIONS)
"""Stages with many batches: several are checked together."""
_STEPS: dict[str, Callable[[Runtime, Transaction, Task, Peer], Unfinished]] = {
    MESSAGES: _messages,
    SESSIONS: _sessions,
    CONCLUSIONS: _conclusions,
    MENTIONS: _mentions,
    REST: _rest,
    TASKS: _tasks,
    RECORDS: _records,
    EVENTS: _events,
    ROW: _row,
}


def _in(peer: Peer, condition: Condition) -> Condition:
    return all_of(equals(workspace_key=peer.workspace_key), condition)


def _tasks_of(peer: Peer) -> Condition:
    return _in(peer, Any_((equals(observer_key=peer.key), equals(observed_key=peer.key))))
