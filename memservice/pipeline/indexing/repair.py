"""Making good what a comparison of a vector index with the rows has found
(`pipeline.indexing.reconcile`)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from memservice.domain.records import Task
from memservice.pipeline.handler import Handler, Outcome, Prepared, Unfinished
from memservice.pipeline.indexing import embed
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.tasks import kinds
from memservice.spi.storage import Transaction
from memservice.telemetry.events import Event, SyncVectorsCompleted


class Repair(Handler):
    """Handler of `mend` tasks: rows of one kind that have no vector (`keys`), and vectors that have
    no row any more (`orphans`). In the unit of `embed`, so nobody else writes vectors of that kind
    meanwhile. Doing one twice changes nothing.

    Each step gives some rows their vectors and is stored with what is left, so work that was
    interrupted goes on where it was.
    """

    kind = kinds.REPAIR

    def __init__(self) -> None:
        self._embed = embed.Embed()

    def retry_after(self, rt: Runtime, attempts: int, error: Exception) -> float | None:
        return self._embed.retry_after(rt, attempts, error)

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        (task,) = tasks
        began = time.perf_counter()
        kind, workspace_key = task.payload["kind"], task.workspace_key or 0
        keys, orphans = list(task.payload.get("keys", [])), list(task.payload.get("orphans", []))
        now, later = keys[: embed.MAX_ROWS], keys[embed.MAX_ROWS :]
        with rt.storage.read() as tx:
            space = tx.spaces.active(workspace_key, kind)
            there = set() if space is None else _there(rt, tx, kind, orphans)
            has = (
                rt.vectors.fetch(tx, space, now)
                if space is not None and rt.vectors_transactional
                else {}
            )
        if space is not None and not rt.vectors_transactional:
            has = rt.vectors.fetch(None, space, now)
        # What was being written while it was looked at has its vector by now.
        wanted = [key for key in now if key not in has]
        gone = [key for key in orphans if key not in there]
        prepared = (
            self._embed.prepare(rt, [replace(task, payload={"kind": kind, "keys": wanted})])
            if wanted
            else None
        )
        if space is not None and gone and not rt.vectors_transactional:
            indexing.forget_vectors(rt, None, kind, [space], gone)

        def store(tx: Transaction) -> Outcome | Unfinished:
            made = prepared.store(tx) if prepared is not None else {}
            if space is not None and gone and rt.vectors_transactional:
                indexing.forget_vectors(rt, tx, kind, [space], gone)
            counts = {
                "synced": task.outcome.get("synced", 0)
                + (made.get("embedded", 0) if isinstance(made, dict) else 0),
                "cleaned": task.outcome.get("cleaned", 0) + len(gone),
                "milliseconds": round(
                    task.outcome.get("milliseconds", 0.0) + (time.perf_counter() - began) * 1000, 3
                ),
            }
            return (
                Unfinished(replace(task, payload={"kind": kind, "keys": later}, outcome=counts))
                if later
                else counts
            )

        return Prepared(store, lambda outcome: [_completed(kind, outcome)])

    def failure_events(self, rt: Runtime, task: Task, error: Exception) -> Iterable[Event]:
        yield _completed(
            task.payload["kind"], task.outcome, failed=len(task.payload.get("keys", []))
        )


def _there(rt: Runtime, tx: Transaction, kind: str, keys: Sequence[int]) -> set[int]:
    """Those of these rows that are to have vectors: a row may have come back to life."""
    return {row.key for row in embed.rows_of(tx, kind, keys)} if keys else set()


def _completed(kind: str, counts: Outcome, failed: int = 0) -> SyncVectorsCompleted:
    of_messages = kind == indexing.MESSAGE
    synced = counts.get("synced", 0)
    return SyncVectorsCompleted(
        documents_synced=0 if of_messages else synced,
        documents_failed=0 if of_messages else failed,
        documents_cleaned=counts.get("cleaned", 0),
        message_embeddings_synced=synced if of_messages else 0,
        message_embeddings_failed=failed if of_messages else 0,
        total_duration_ms=counts.get("milliseconds", 0.0),
    )
