"""Replaces the mentions of an erased peer in what others said, table by table. It searches again
until a whole pass finds none; only then are the names removed from the task. After a pass that
found some, work that may have read them starts again: what it stored before is found by the next
pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from memservice.domain.records import Peer, Task
from memservice.domain.text.mentions import Mentions
from memservice.pipeline.handler import Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.erasure import mentions, redaction, remains, searches, work
from memservice.services.erasure.erased import Erased, NotErased
from memservice.services.erasure.mentions import Found
from memservice.services.erasure.redaction import Redacted
from memservice.services.tasks.outbox import REDACTION
from memservice.spi.storage import Transaction

REDACTED = "redacted"
"""Entry of the payload: rows whose old vectors may be in an index outside the storage."""
MAX_PASSES = 5
"""How often all tables are searched before the task fails."""


def is_due(task: Task) -> bool:
    """Whether the mentions of a peer are still to be replaced."""
    return REDACTION in task.payload


def in_messages(task: Task) -> bool:
    """Whether the search goes on in messages."""
    table: str | None = task.payload.get(REDACTION, {}).get("table")
    return table == next(iter(mentions.RECORDS))


def prepare(
    rt: Runtime, task: Task, then: Callable[[Task, Mapping[str, Any]], Unfinished]
) -> Prepared:
    """The next search, and the replacement of what it found. `then` continues with the sessions
    whose sums of tokens changed, by key."""
    plan, old = task.payload[REDACTION], _old_vectors(task)
    remains.remove_vectors(rt, old)
    names = Mentions(plan["names"])
    table = plan.get("table", next(iter(mentions.RECORDS)))
    with rt.storage.read() as tx:
        peer = tx.peers.by_keys([task.payload["peer"]]).get(task.payload["peer"])
        hits = _search(tx, peer, table, names, plan)
    contents = redaction.contents(hits.rows, names)
    vectors = (indexing.embed_inline(rt, contents) if contents else None) or []
    by_content = dict(zip(contents, vectors, strict=False))
    is_left = searches.vectors_left_outside(rt, old)

    def store(tx: Transaction) -> Unfinished:
        if is_left or (hits.rows and _passes(task, plan) >= MAX_PASSES):
            raise NotErased(f"still left of the peer: mentions in {table}")
        if "passes" in plan and "table" not in plan:
            work.interrupt_readers(tx, old.workspace_key)
        redaction.embed_again(rt, tx, old.workspace_key, task.payload.get(REDACTED, {}))
        keys = [row.key for row in hits.rows]
        redacted = redaction.redact(rt, tx, old.workspace_key, table, keys, names, by_content)
        return then(_after(rt, task, plan, table, hits, redacted), redacted.sessions)

    return Prepared(store)


def _passes(task: Task, plan: Mapping[str, Any]) -> int:
    """How often all tables were searched since the task last failed."""
    passes: int = plan.get("passes", 0)
    return passes if plan.get("attempts", 0) == task.attempts else 0


def _old_vectors(task: Task) -> Erased:
    return Erased.of(task, {"keys": task.payload.get(REDACTED, {}), "uids": ()})


def _search(
    tx: Transaction, peer: Peer | None, table: str, names: Mentions, plan: Mapping[str, Any]
) -> Found:
    if peer is None:
        return Found((), None)
    return mentions.search(tx, peer, table, names, plan["through"], plan.get("after", 0))


def _after(
    rt: Runtime,
    task: Task,
    plan: Mapping[str, Any],
    table: str,
    hits: Found,
    redacted: Redacted,
) -> Task:
    """The task after a step: with the names while the search is not finished."""
    payload = {name: task.payload[name] for name in task.payload if name != REDACTED}
    if not rt.vectors_transactional and any(redacted.keys.values()):
        payload[REDACTED] = redacted.keys
    changed = bool(plan.get("changed")) or bool(hits.rows)
    following = _following(table, hits)
    if following is not None:
        payload[REDACTION] = {**plan, "changed": changed, **following}
    elif changed or REDACTED in payload:
        first = {name: plan[name] for name in ("names", "through")}
        passes = {"passes": _passes(task, plan) + 1, "attempts": task.attempts}
        payload[REDACTION] = {**first, **passes}
    else:
        del payload[REDACTION]
    totals = Counter(task.outcome)
    totals["mentions"] += redacted.number
    return replace(task, payload=payload, outcome=dict(+totals))


def _following(table: str, hits: Found) -> dict[str, Any] | None:
    """Where the search continues; None after the last table."""
    if hits.after is not None:
        return {"table": table, "after": hits.after}
    tables = list(mentions.RECORDS)
    number = tables.index(table) + 1
    return {"table": tables[number], "after": 0} if number < len(tables) else None
