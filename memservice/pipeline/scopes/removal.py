"""Removes a session from a scope: the scope's conclusions from that session are deleted, and those
inferred from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Condition, Holds
from memservice.domain.records import (
    DELETED,
    EXPLICIT,
    LIVE,
    SUPERSEDED,
    Conclusion,
    Peer,
    ScopeSession,
    Session,
    Task,
)
from memservice.pipeline.handler import Handler, Outcome, Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services import dreams, indexing
from memservice.services.tasks import kinds
from memservice.spi.storage import Transaction

BATCH_SIZE = 500


class ScopeRemoval(Handler):
    """Handler of `scope_removal` tasks. A repetition changes nothing."""

    kind = kinds.SCOPE_REMOVAL

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        task = tasks[0]
        return Prepared(lambda tx: _step(rt, tx, task))


def _step(rt: Runtime, tx: Transaction, task: Task) -> Outcome | Unfinished:
    session = tx.sessions.by_key(task.session_key or 0)
    scope = tx.peers.by_keys([task.observer_key or 0]).get(task.observer_key or 0)
    if session is None or scope is None:
        return {"skipped": "the session or the scope no longer exists"}
    member = tx.members.one(session.key, scope.key)
    if member is not None and member.left_at is None:
        return {"skipped": "the session is in the scope again"}
    explicit = tx.rows.page(Conclusion, _derived_from(scope, session), limit=BATCH_SIZE)
    removed = [*explicit, *_dependents(tx, scope, explicit)]
    _delete(rt, tx, session.workspace_key, removed)
    dreams.restore_superseded(rt, tx, removed, session.key)
    counts = Counter(task.outcome)
    counts.update(explicit=len(explicit), derived=len(removed) - len(explicit))
    touched = sorted({*task.payload.get("touched", []), *(row.observed_key for row in removed)})
    if len(explicit) == BATCH_SIZE:
        return Unfinished(
            replace(task, payload={**task.payload, "touched": touched}, outcome=dict(counts))
        )
    for speaker in tx.peers.by_keys(touched).values():
        # The card may contain facts of that session, so it is rebuilt; then the remaining
        # conclusions are consolidated.
        dreams.enqueue(
            rt, tx, scope, speaker, dreams.CARD_REFRESH, rebuild=True, trigger=dreams.SCOPE_REMOVAL
        )
        dreams.enqueue(rt, tx, scope, speaker, dreams.OMNI, trigger=dreams.SCOPE_REMOVAL)
    tx.rows.delete(ScopeSession, equals(scope_key=scope.key, session_key=session.key))
    return dict(counts)


def _derived_from(scope: Peer, session: Session) -> Condition:
    return equals(
        observer_key=scope.key, session_key=session.key, level=EXPLICIT, state=(LIVE, SUPERSEDED)
    )


def _dependents(tx: Transaction, scope: Peer, sources: Sequence[Conclusion]) -> list[Conclusion]:
    """The scope's conclusions that are based on these, directly or indirectly."""
    dependents: dict[int, Conclusion] = {}
    of_scope = equals(observer_key=scope.key, state=(LIVE, SUPERSEDED))
    unvisited = [source.uid for source in sources]
    visited = {source.key for source in sources}
    while unvisited:
        citing = tx.rows.page(Conclusion, all_of(of_scope, Holds("source_ids", unvisited.pop())))
        for row in citing:
            if row.key not in visited:
                visited.add(row.key)
                dependents[row.key] = row
                unvisited.append(row.uid)
    return list(dependents.values())


def _delete(
    rt: Runtime, tx: Transaction, workspace_key: int, conclusions: Sequence[Conclusion]
) -> None:
    now = rt.clock()
    tx.conclusions.put([replace(row, state=DELETED, deleted_at=now) for row in conclusions])
    explicit_counts = Counter(
        row.collection_key for row in conclusions if row.level == EXPLICIT and row.state == LIVE
    )
    for key, number in explicit_counts.items():
        tx.conclusions.count_explicit(key, -number)
    indexing.remove_conclusions(rt, tx, workspace_key, [row.key for row in conclusions])
