"""Copies the conclusions of a session that joined a scope to the scope. Nothing is derived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare, KeyOneOf
from memservice.domain.ids import new_uid
from memservice.domain.records import (
    DELETED,
    EXPLICIT,
    FAILED,
    LIVE,
    Conclusion,
    Peer,
    ScopeSession,
    Session,
    Task,
)
from memservice.pipeline.handler import Handler, Outcome, Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services import dreams, indexing
from memservice.services.conclusions import ensure_collection
from memservice.services.indexing import CONCLUSION
from memservice.services.tasks import kinds
from memservice.spi.storage import Transaction

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

BATCH_SIZE = 500
COMPLETED = "completed"


class ScopeBackfill(Handler):
    """Handler of `scope_backfill` tasks. A repetition changes nothing."""

    kind = kinds.SCOPE_BACKFILL

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        task = tasks[0]
        return Prepared(lambda tx: _step(rt, tx, task))

    def on_failed(self, rt: Runtime, tx: Transaction, task: Task) -> None:
        condition = equals(scope_key=task.observer_key, session_key=task.session_key)
        tx.rows.change(ScopeSession, condition, state=FAILED, updated_at=rt.clock())


def _step(rt: Runtime, tx: Transaction, task: Task) -> Outcome | Unfinished:
    """Copy the next conclusions. The task's payload has the progress (`through`, a key), its
    outcome the counts."""
    # Locked until commit: concurrent deriving writes to the scope either before or after, so each
    # conclusion is there once.
    session = tx.sessions.by_key(task.session_key or 0, lock=True)
    scope = tx.peers.by_keys([task.observer_key or 0]).get(task.observer_key or 0)
    member = None if session is None or scope is None else tx.members.one(session.key, scope.key)
    if session is None or scope is None or member is None or member.left_at is not None:
        return {"skipped": "the session is no longer in the scope"}
    through: int = task.payload.get("through", 0)
    conclusions = _explicit(tx, session, through)
    copied, already_present = _copy(
        rt, tx, scope, session, [row for row in conclusions if row.observer_key == row.observed_key]
    )
    counts = Counter(task.outcome)
    counts.update(copied=len(copied), held=already_present)
    touched = sorted({*task.payload.get("touched", []), *(row.observed_key for row in copied)})
    if len(conclusions) == BATCH_SIZE:
        payload = {**task.payload, "through": conclusions[-1].key, "touched": touched}
        return Unfinished(replace(task, payload=payload, outcome=dict(counts)))
    for speaker in tx.peers.by_keys(touched).values():
        dreams.enqueue(
            rt, tx, scope, speaker, dreams.OMNI, session=session, trigger=dreams.SCOPE_BACKFILL
        )
    outcome = {"copied": counts["copied"], "held": counts["held"]}
    tx.rows.change(
        ScopeSession,
        equals(scope_key=scope.key, session_key=session.key),
        state=COMPLETED,
        docs_copied=outcome["copied"] + outcome["held"],
        updated_at=rt.clock(),
    )
    return outcome


def _explicit(tx: Transaction, session: Session, after: int) -> list[Conclusion]:
    """The session's next live explicit conclusions of all observers, by key."""
    condition = all_of(
        equals(session_key=session.key, level=EXPLICIT, state=LIVE), Compare("key", "gt", after)
    )
    return tx.rows.page(Conclusion, condition, limit=BATCH_SIZE)


def _copy(
    rt: Runtime, tx: Transaction, scope: Peer, session: Session, own: Sequence[Conclusion]
) -> tuple[list[Conclusion], int]:
    """Copy the conclusions of the session's speakers about themselves. Returns the new copies, and
    how many copies the scope had before."""
    if not own:
        return [], 0
    here = equals(observer_key=scope.key, session_key=session.key, level=EXPLICIT)
    copies = tx.rows.page(
        Conclusion, all_of(here, KeyOneOf("internal", "copied_from", tuple(row.uid for row in own)))
    )
    earlier = {copy.internal["copied_from"]: copy for copy in copies}
    # Conclusions derived since the scope joined are in the scope without a copy.
    same = all_of(here, equals(state=LIVE, fingerprint=tuple({row.fingerprint for row in own})))
    derived_by_scope = {
        (row.observed_key, row.fingerprint) for row in tx.rows.page(Conclusion, same)
    }
    speakers = tx.peers.by_keys(sorted({row.observed_key for row in own}))
    collections = {
        key: ensure_collection(rt, tx, scope, speaker) for key, speaker in speakers.items()
    }
    rows: list[Conclusion] = []
    sources: list[int] = []
    already_present = 0
    for source in own:
        before = earlier.get(source.uid)
        if before is not None and before.state != DELETED:
            already_present += 1
            continue
        if (source.observed_key, source.fingerprint) in derived_by_scope:
            continue
        derived_by_scope.add((source.observed_key, source.fingerprint))
        copy = replace(
            source,
            key=before.key if before else 0,
            uid=before.uid if before else new_uid(),
            collection_key=collections[source.observed_key].key,
            observer_key=scope.key,
            observer=scope.slug,
            internal={**source.internal, "copied_from": source.uid},
        )
        rows.append(copy)
        sources.append(source.key)
    conclusions = tx.conclusions.put(rows)
    for key, number in Counter(row.collection_key for row in conclusions).items():
        tx.conclusions.count_explicit(key, number)
    _index(rt, tx, session.workspace_key, conclusions, sources)
    return conclusions, already_present


def _index(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    conclusions: Sequence[Conclusion],
    sources: Sequence[int],
) -> None:
    """Index the copies. Vectors that this transaction can read are copied in it, the others by a
    task."""
    vectors: dict[int, Vector] = {}
    space = tx.spaces.active(workspace_key, CONCLUSION)
    # Vectors of another embedder are not copied: the space may be replaced before this transaction
    # writes.
    if rt.vectors_transactional and space is not None and space.embedder == rt.embedder.id:
        vectors = rt.vectors.fetch(tx, space, sources)
    with_vector = [
        (row, vectors[source])
        for row, source in zip(conclusions, sources, strict=True)
        if source in vectors
    ]
    without = {
        row.key: source
        for row, source in zip(conclusions, sources, strict=True)
        if source not in vectors
    }
    tasks = indexing.index_conclusions(
        rt,
        tx,
        workspace_key,
        [row for row, _ in with_vector],
        [vector for _, vector in with_vector],
    )
    tasks += indexing.index_conclusions(
        rt, tx, workspace_key, [row for row in conclusions if row.key in without], None, without
    )
    tx.tasks.add(tasks)
