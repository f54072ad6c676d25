"""Taking a session out of a scope's memory: what the scope knows from it is deleted, and what was
concluded from that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

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
    """Handler of `scope_removal` tasks. Doing one twice changes nothing."""

    kind = kinds.SCOPE_REMOVAL

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        task = tasks[0]
        return Prepared(lambda tx: _step(rt, tx, task))


def _step(rt: Runtime, tx: Transaction, task: Task) -> Outcome | Unfinished:
    session = tx.sessions.by_key(task.session_key or 0)
    scope = tx.peers.by_keys([task.observer_key or 0]).get(task.observer_key or 0)
    if session is None or scope is None:
        return {"skipped": "the session or the scope is gone"}
    member = tx.members.one(session.key, scope.key)
    if member is not None and member.left_at is None:
        return {"skipped": "the session is in the scope again"}
    explicit = tx.rows.page(Conclusion, _known_from(scope, session), limit=BATCH_SIZE)
    gone = [*explicit, *_resting_on(tx, scope, explicit)]
    _delete(rt, tx, session.workspace_key, gone)
    dreams.give_back(rt, tx, gone, session.key)
    counts = Counter(task.outcome)
    counts.update(explicit=len(explicit), derived=len(gone) - len(explicit))
    touched = sorted({*task.payload.get("touched", []), *(row.observed_key for row in gone)})
    if len(explicit) == BATCH_SIZE:
        return Unfinished(
            replace(task, payload={**task.payload, "touched": touched}, outcome=dict(counts))
        )
    for speaker in tx.peers.by_keys(touched).values():
        # What the card says of that session has to go, so it is written anew; then what is left is
        # consolidated.
        dreams.enqueue(
            rt, tx, scope, speaker, dreams.CARD_REFRESH, rebuild=True, trigger=dreams.SCOPE_REMOVAL
        )
        dreams.enqueue(rt, tx, scope, speaker, dreams.OMNI, trigger=dreams.SCOPE_REMOVAL)
    tx.rows.delete(ScopeSession, equals(scope_key=scope.key, session_key=session.key))
    return dict(counts)


def _known_from(scope: Peer, session: Session) -> Condition:
    return equals(
        observer_key=scope.key, session_key=session.key, level=EXPLICIT, state=(LIVE, SUPERSEDED)
    )


def _resting_on(tx: Transaction, scope: Peer, sources: Sequence[Conclusion]) -> list[Conclusion]:
    """What the scope derived from these, from what it derived from them, and so on."""
    found: dict[int, Conclusion] = {}
    mine = equals(observer_key=scope.key, state=(LIVE, SUPERSEDED))
    open_ends = [source.uid for source in sources]
    seen = {source.key for source in sources}
    while open_ends:
        citing = tx.rows.page(Conclusion, all_of(mine, Holds("source_ids", open_ends.pop())))
        for row in citing:
            if row.key not in seen:
                seen.add(row.key)
                found[row.key] = row
                open_ends.append(row.uid)
    return list(found.values())


def _delete(rt: Runtime, tx: Transaction, workspace_key: int, gone: Sequence[Conclusion]) -> None:
    now = rt.clock()
    tx.conclusions.put([replace(row, state=DELETED, deleted_at=now) for row in gone])
    counted = Counter(
        row.collection_key for row in gone if row.level == EXPLICIT and row.state == LIVE
    )
    for key, number in counted.items():
        tx.conclusions.count_explicit(key, -number)
    indexing.forget_conclusions(rt, tx, workspace_key, [row.key for row in gone])
