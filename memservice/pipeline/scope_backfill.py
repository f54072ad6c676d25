"""Bringing a scope up to date with a session that it joined: what is held about the session's speakers is copied, nothing is derived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memservice.domain.filters import where
from memservice.domain.ids import new_uid
from memservice.domain.records import DELETED, DELETING, EXPLICIT, LIVE, Conclusion, Peer, ScopeSession, Session, Task
from memservice.pipeline.handler import Outcome, Prepared, nothing
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.conclusions import ensure_collection
from memservice.spi.storage import View

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

COMPLETED = "completed"


class ScopeBackfill:
    """Handler of `scope_backfill` tasks. Doing one twice changes nothing."""

    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        return 1

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        task = tasks[0]
        with rt.storage.read() as view:
            session = view.sessions.by_key(task.session_key or 0)
            scope = view.peers.by_keys([task.observer_key or 0]).get(task.observer_key or 0)
            if session is None or scope is None or session.state == DELETING:
                return nothing(skipped="the session or the scope is gone")
            own = _own_explicit(view, session)
        vectors = indexing.embed_inline(rt, [conclusion.content for conclusion in own]) if own else []

        def store(view: View) -> Outcome:
            copied, held = _copy(rt, view, scope, session, own, vectors)
            view.rows.change(
                ScopeSession,
                where(scope_key=scope.key, session_key=session.key),
                state=COMPLETED,
                docs_copied=held,
                updated_at=rt.clock(),
            )
            return {"copied": copied}

        return Prepared(store)


def _own_explicit(view: View, session: Session) -> list[Conclusion]:
    """What speakers of the session said of themselves in it."""
    condition = where(session_key=session.key, level=EXPLICIT)
    found = view.conclusions.page(session.workspace_key, condition, limit=None)
    return [conclusion for conclusion in found if conclusion.observer_key == conclusion.observed_key]


def _copy(
    rt: Runtime, view: View, scope: Peer, session: Session, own: Sequence[Conclusion], vectors: Sequence[Vector] | None
) -> tuple[int, int]:
    """How many were copied now, and how many copies from the session the scope now holds."""
    there = view.rows.page(Conclusion, where(observer_key=scope.key, session_key=session.key, level=EXPLICIT, state=(LIVE, DELETED)))
    earlier = {row.internal["copied_from"]: row for row in there if "copied_from" in row.internal}
    # What was derived since the scope joined, the scope holds by itself.
    held = {(row.observed_key, row.fingerprint) for row in there if row.state == LIVE}
    live = {conclusion.uid for conclusion in _own_explicit(view, session)}
    speakers = view.peers.by_keys(sorted({conclusion.observed_key for conclusion in own}))
    rows: list[Conclusion] = []
    chosen: list[Vector] = []
    for place, conclusion in enumerate(own):
        same = (conclusion.observed_key, conclusion.fingerprint)
        if same in held or conclusion.uid not in live:
            continue
        held.add(same)
        before = earlier.get(conclusion.uid)
        collection = ensure_collection(rt, view, scope, speakers[conclusion.observed_key])
        copy = replace(
            conclusion,
            key=before.key if before else 0,
            uid=before.uid if before else new_uid(),
            collection_key=collection.key,
            observer_key=scope.key,
            observer=scope.slug,
            internal={**conclusion.internal, "copied_from": conclusion.uid},
        )
        rows.append(copy)
        if vectors is not None:
            chosen.append(vectors[place])
        view.conclusions.count_explicit(collection.key, 1)
    stored = view.conclusions.put(rows)
    view.tasks.add(indexing.index_conclusions(rt, view, session.workspace_key, stored, None if vectors is None else chosen))
    return len(stored), len(stored) + sum(1 for row in there if row.state == LIVE and "copied_from" in row.internal)
