"""Erases a peer batch by batch: its messages in every session, what is held about it or by it, and
everything that belongs to it.

Every step queries the remaining rows, so interrupted work continues where it stopped, and rows that
concurrent writers stored after the request are erased too. Each step first checks that nothing is
left of the batch before it. The row of the peer is erased last, while it is locked and no row
refers to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Any_, Condition
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
from memservice.pipeline.deletion import mentions, reclaiming
from memservice.pipeline.deletion.messages import NotErased, finishing
from memservice.pipeline.handler import Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.erasure import (
    conclusions,
    message_rows,
    positions,
    receipts,
    remains,
    summaries,
    work,
)
from memservice.services.erasure.remains import Erased
from memservice.spi.rows import Order
from memservice.spi.schema import BY_RECORD
from memservice.spi.storage import Transaction

BATCH_SIZE = 100
"""Rows per transaction. Other writers wait about as long as one takes."""
MAX_SESSIONS = 500
"""Sessions with gaps that one task remembers before their positions are packed."""
MAX_ROUNDS = 3
"""How often the check is repeated before the task fails."""

MESSAGES, SESSIONS, CONCLUSIONS, MENTIONS, REST, TASKS, RECORDS, WEBHOOKS, CHECK, RECLAIM, END = (
    "messages",
    "sessions",
    "conclusions",
    "mentions",
    "rest",
    "tasks",
    "records",
    "webhooks",
    "check",
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
    last = _last(task)
    left: list[str] = []
    if last is not None:
        remains.remove_vectors(rt, last)
        left = remains.vectors_left(rt, last)
    stage = task.payload.get("stage", MESSAGES)
    if stage == RECLAIM and reclaiming.step(rt):
        return Prepared(lambda tx: Unfinished(task))
    if stage == END:
        return finishing(rt, task)
    if stage == MENTIONS and mentions.is_due(task):
        return mentions.prepare(rt, task, _after_mentions)

    def store(tx: Transaction) -> Unfinished:
        receipts.begin(tx, task)
        if last is not None and (remaining := left + remains.rows_left(rt, tx, last)):
            return _again(rt, tx, task, last, remaining)
        peer = tx.peers.by_keys([task.payload["peer"]]).get(task.payload["peer"])
        if peer is None or peer.kind != ERASED:
            return _at(task, stage=END, last=None)
        return _STEPS[stage](rt, tx, replace(task, payload=_without_last(task)), peer)

    return Prepared(store)


def _last(task: Task) -> Erased | None:
    last = task.payload.get("last")
    return None if last is None else Erased.of(task.payload["workspace"], last)


def _without_last(task: Task) -> dict[str, Any]:
    return {name: task.payload[name] for name in task.payload if name not in ("last", "rounds")}


def _again(rt: Runtime, tx: Transaction, task: Task, last: Erased, left: list[str]) -> Unfinished:
    """The same step, after what is left of the last batch was removed from the indexes."""
    rounds = task.payload.get("rounds", 0) + 1
    if rounds > MAX_ROUNDS:
        raise NotErased(f"still left of erased rows: {', '.join(sorted(set(left)))}")
    for kind in (indexing.MESSAGE, indexing.CONCLUSION):
        indexing.remove_from_storage(rt, tx, kind, last.workspace_key, sorted(last.keys(kind)))
    return _at(task, rounds=rounds)


def _messages(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    order = (Order("key"),)
    messages = tx.rows.page(Message, equals(author_key=peer.key), order, BATCH_SIZE)
    sessions: dict[str, Any] = dict(task.payload.get("sessions", {}))
    if not messages or len(sessions) >= MAX_SESSIONS:
        return _at(task, stage=SESSIONS if sessions else CONCLUSIONS)
    totals = Counter(task.outcome)
    keys: dict[str, list[int]] = {indexing.MESSAGE: [], indexing.CONCLUSION: []}
    uids: list[str] = []
    by_session = sorted(messages, key=lambda message: (message.session_key, message.seq))
    for key, group in groupby(by_session, key=lambda message: message.session_key):
        erased = _erase_of_session(rt, tx, key, list(group))
        totals.update(erased.counts)
        uids += erased.uids
        for kind, of_kind in erased.keys.items():
            keys[kind] += of_kind
        before = sessions.get(str(key), {"first": erased.first, "covered": {}})
        sessions[str(key)] = {
            "first": min(before["first"], erased.first),
            "covered": before["covered"] | dict(erased.covered),
        }
    return _at(task, totals, sessions=sessions, last={"keys": keys, "uids": uids})


def _erase_of_session(
    rt: Runtime, tx: Transaction, session_key: int, messages: list[Message]
) -> message_rows.ErasedRows:
    unlocked = tx.sessions.by_key(session_key)
    if unlocked is not None:
        work.interrupt_session(tx, unlocked)
    session = tx.sessions.by_key(session_key, lock=True)
    if session is None:
        return message_rows.NOTHING
    return message_rows.erase(rt, tx, session, messages)


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
    return _at(task, stage=SESSIONS if sessions else MESSAGES, sessions=sessions)


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
    return _at(task, stage=SESSIONS if is_full else MENTIONS, sessions=sessions)


def _mentions(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    return _at(task, stage=REST)


def _conclusions(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    of_peer = Any_((equals(observer_key=peer.key), equals(observed_key=peer.key)))
    collection = tx.rows.get(Collection, _in(peer, of_peer))
    if collection is None:
        return _at(task, stage=MENTIONS)
    totals = Counter(task.outcome)
    of_collection = equals(collection_key=collection.key)
    order = (Order("state"), Order("key"))
    rows = tx.rows.page(Conclusion, of_collection, order, BATCH_SIZE)
    if not rows:
        totals["collections"] += tx.rows.delete(Collection, equals(key=collection.key))
        return _at(task, totals)
    erased = conclusions.with_dependents(tx, peer.workspace_key, rows)
    conclusions.erase(rt, tx, peer.workspace_key, erased)
    totals["conclusions"] += len(erased)
    last = {
        "keys": {indexing.CONCLUSION: [row.key for row in erased]},
        "uids": [row.uid for row in erased],
    }
    return _at(task, totals, last=last)


def _rest(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    totals = Counter(task.outcome)
    for record, field in OWN:
        rows = tx.rows.page(record, equals(**{field: peer.key}), limit=BATCH_SIZE)
        if not rows:
            continue
        keys = tuple(row.key for row in rows)
        if record is Document:
            indexing.remove_rows(rt, tx, indexing.DOCUMENT, peer.workspace_key, keys)
        totals[BY_RECORD[record].name] += tx.rows.delete(record, equals(key=keys))
        return _at(task, totals)
    # What others said in a session that it owned stays.
    tx.rows.change(Session, equals(owner_key=peer.key), owner_key=None)
    tasks = tx.rows.page(Task, _tasks_of(peer), limit=BATCH_SIZE)
    if tasks:
        keys = tuple(other.key for other in tasks)
        totals["tasks"] += tx.rows.delete(Task, equals(key=keys))
        return _at(task, totals)
    return _at(task, stage=TASKS, after=0)


def _tasks(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    last = remains.clean_tasks_of_peer(tx, peer, task.payload.get("after", 0))
    return _at(task, stage=RECORDS if last is None else TASKS, after=last or 0)


def _records(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    last = remains.clean_records_of_peer(tx, peer, task.payload.get("after", 0))
    return _at(task, stage=WEBHOOKS if last is None else RECORDS, after=last or 0)


def _webhooks(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    erasure, after = tx.erasures.of_task(task.uid), task.payload.get("after", 0)
    last = None
    if erasure is not None:
        last = remains.clean_webhooks_of_peer(tx, peer, erasure.target, task.created_at, after)
    return _at(task, stage=CHECK if last is None else WEBHOOKS, after=last or 0)


def _check(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    """Erase the row of the peer if no row refers to it."""
    tx.rows.get(Peer, equals(key=peer.key), lock=True)
    left = [
        BY_RECORD[record].name
        for record, condition in _references(peer)
        if tx.rows.count(record, condition, limit=1)
    ]
    if left:
        rounds = task.payload.get("checks", 0) + 1
        if rounds > MAX_ROUNDS:
            raise NotErased(f"still left of the peer: {', '.join(sorted(set(left)))}")
        return _at(task, stage=MESSAGES, after=0, checks=rounds)
    totals = Counter(task.outcome)
    totals["peers"] += tx.rows.delete(Peer, equals(key=peer.key))
    return _at(task, totals, stage=RECLAIM)


def _references(peer: Peer) -> Iterable[tuple[type[Any], Condition]]:
    """Everything that can refer to a peer."""
    yield Message, equals(author_key=peer.key)
    for field in ("observer_key", "observed_key"):
        of_peer = _in(peer, equals(**{field: peer.key}))
        for record in (Collection, Conclusion):
            yield record, of_peer
    yield Session, _in(peer, equals(owner_key=peer.key))
    for record, field in OWN:
        yield record, equals(**{field: peer.key})
    yield Task, _tasks_of(peer)


def _reclaim(rt: Runtime, tx: Transaction, task: Task, peer: Peer) -> Unfinished:
    return _at(task, stage=END)


_STEPS: dict[str, Callable[[Runtime, Transaction, Task, Peer], Unfinished]] = {
    MESSAGES: _messages,
    SESSIONS: _sessions,
    CONCLUSIONS: _conclusions,
    MENTIONS: _mentions,
    REST: _rest,
    TASKS: _tasks,
    RECORDS: _records,
    WEBHOOKS: _webhooks,
    CHECK: _check,
    RECLAIM: _reclaim,
}


def _in(peer: Peer, condition: Condition) -> Condition:
    return all_of(equals(workspace_key=peer.workspace_key), condition)


def _tasks_of(peer: Peer) -> Condition:
    return _in(peer, Any_((equals(observer_key=peer.key), equals(observed_key=peer.key))))


def _at(task: Task, totals: Counter[str] | None = None, **progress: Any) -> Unfinished:
    payload = {**task.payload, **progress}
    outcome = task.outcome if totals is None else dict(+totals)
    return Unfinished(replace(task, payload=payload, outcome=outcome))
