"""Bringing a scope up to date with a session that it joined: what is held about the session's speakers is copied, nothing is derived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memservice.domain.filters import all_of, where
from memservice.domain.filters.ast import Compare, KeyOneOf
from memservice.domain.ids import new_uid
from memservice.domain.records import DELETED, EXPLICIT, FAILED, LIVE, Conclusion, Peer, ScopeSession, Session, Task
from memservice.pipeline.handler import Outcome, Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services import dreams, indexing
from memservice.services.conclusions import ensure_collection
from memservice.services.indexing import CONCLUSION
from memservice.spi.storage import View

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

ROWS_AT_ONCE = 500
COMPLETED = "completed"


class ScopeBackfill:
    """Handler of `scope_backfill` tasks. Doing one twice changes nothing."""

    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        return 1

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        task = tasks[0]
        return Prepared(lambda view: _step(rt, view, task))

    def rested(self, rt: Runtime, view: View, task: Task) -> None:
        condition = where(scope_key=task.observer_key, session_key=task.session_key)
        view.rows.change(ScopeSession, condition, state=FAILED, updated_at=rt.clock())


def _step(rt: Runtime, view: View, task: Task) -> Outcome | Unfinished:
    """Copy the next conclusions. How far it came (`through`, a key) lies in the task's payload, the counts in its outcome."""
    # Held until commit: what is derived at the same time goes to the scope either before or after, and then once.
    session = view.sessions.by_key(task.session_key or 0, lock=True)
    scope = view.peers.by_keys([task.observer_key or 0]).get(task.observer_key or 0)
    member = None if session is None or scope is None else view.members.one(session.key, scope.key)
    if session is None or scope is None or member is None or member.left_at is not None:
        return {"skipped": "the session is not in the scope any more"}
    through: int = task.payload.get("through", 0)
    found = _explicit(view, session, through)
    copied, already = _copy(rt, view, scope, session, [row for row in found if row.observer_key == row.observed_key])
    counts = Counter(task.outcome)
    counts.update(copied=len(copied), held=already)
    touched = sorted({*task.payload.get("touched", []), *(row.observed_key for row in copied)})
    if len(found) == ROWS_AT_ONCE:
        payload = {**task.payload, "through": found[-1].key, "touched": touched}
        return Unfinished(replace(task, payload=payload, outcome=dict(counts)))
    for speaker in view.peers.by_keys(touched).values():
        dreams.enqueue(rt, view, scope, speaker, dreams.OMNI, session=session, trigger=dreams.SCOPE_BACKFILL)
    outcome = {"copied": counts["copied"], "held": counts["held"]}
    view.rows.change(
        ScopeSession,
        where(scope_key=scope.key, session_key=session.key),
        state=COMPLETED,
        docs_copied=outcome["copied"] + outcome["held"],
        updated_at=rt.clock(),
    )
    return outcome


def _explicit(view: View, session: Session, after: int) -> list[Conclusion]:
    """The session's next live explicit conclusions, whoever observed whom, by rising key."""
    condition = all_of(where(session_key=session.key, level=EXPLICIT, state=LIVE), Compare("key", "gt", after))
    return view.rows.page(Conclusion, condition, limit=ROWS_AT_ONCE)


def _copy(rt: Runtime, view: View, scope: Peer, session: Session, own: Sequence[Conclusion]) -> tuple[list[Conclusion], int]:
    """Copy what speakers of the session hold of themselves. Returns the new copies, and how many copies the scope had already."""
    if not own:
        return [], 0
    here = where(observer_key=scope.key, session_key=session.key, level=EXPLICIT)
    copies = view.rows.page(Conclusion, all_of(here, KeyOneOf("internal", "copied_from", tuple(row.uid for row in own))))
    earlier = {copy.internal["copied_from"]: copy for copy in copies}
    # What was derived since the scope joined, the scope holds by itself.
    same = all_of(here, where(state=LIVE, fingerprint=tuple({row.fingerprint for row in own})))
    held = {(row.observed_key, row.fingerprint) for row in view.rows.page(Conclusion, same)}
    speakers = view.peers.by_keys(sorted({row.observed_key for row in own}))
    collections = {key: ensure_collection(rt, view, scope, speaker) for key, speaker in speakers.items()}
    rows: list[Conclusion] = []
    sources: list[int] = []
    already = 0
    for source in own:
        before = earlier.get(source.uid)
        if before is not None and before.state != DELETED:
            already += 1
            continue
        if (source.observed_key, source.fingerprint) in held:
            continue
        held.add((source.observed_key, source.fingerprint))
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
    stored = view.conclusions.put(rows)
    for key, number in Counter(row.collection_key for row in stored).items():
        view.conclusions.count_explicit(key, number)
    _index(rt, view, session.workspace_key, stored, sources)
    return stored, already


def _index(rt: Runtime, view: View, workspace: int, stored: Sequence[Conclusion], sources: Sequence[int]) -> None:
    """Index the copies. Vectors that can be read in this transaction are copied in it, the others by a task."""
    known: dict[int, Vector] = {}
    space = view.spaces.active(workspace, CONCLUSION)
    # Vectors of another embedder are not passed on: the space may be replaced before this transaction writes.
    if rt.vectors_transactional and space is not None and space.embedder == rt.embedder.id:
        known = rt.vectors.fetch(view, space, sources)
    with_vector = [(row, known[source]) for row, source in zip(stored, sources, strict=True) if source in known]
    without = {row.key: source for row, source in zip(stored, sources, strict=True) if source not in known}
    tasks = indexing.index_conclusions(rt, view, workspace, [row for row, _ in with_vector], [vector for _, vector in with_vector])
    tasks += indexing.index_conclusions(rt, view, workspace, [row for row in stored if row.key in without], None, without)
    view.tasks.add(tasks)
