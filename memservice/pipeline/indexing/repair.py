"""Repairs the differences between a vector index and the rows (`pipeline.indexing.reconcile`)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from memservice.domain.records import Task
from memservice.pipeline.handler import Handler, Outcome, Prepared, Unfinished
from memservice.pipeline.indexing import embed
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.tasks import kinds
from memservice.spi.storage import Transaction
from memservice.telemetry.events import Event, SyncVectorsCompleted


class Repair(Handler):
    """Handler of `mend` tasks: rows of one kind without a vector (`keys`), and vectors without a
    row (`orphans`). They are in the unit of `embed`, so no other task writes vectors of that kind
    at the same time. A repetition changes nothing.

    Each step embeds some rows and stores the remaining keys, so interrupted work continues where it
    stopped.
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
        batch, later = keys[: embed.MAX_ROWS], keys[embed.MAX_ROWS :]
        with rt.storage.read() as tx:
            space = tx.spaces.active(workspace_key, kind)
            existing = set() if space is None else _existing(rt, tx, kind, orphans)
            present = (
                rt.vectors.fetch(tx, space, batch)
                if space is not None and rt.vectors_transactional
                else {}
            )
        if space is not None and not rt.vectors_transactional:
            present = rt.vectors.fetch(None, space, batch)
        # Rows that were being written during the comparison have their vectors by now.
        without_vector = [key for key in batch if key not in present]
        deleted = [key for key in orphans if key not in existing]
        prepared = (
            self._embed.prepare(rt, [replace(task, payload={"kind": kind, "keys": without_vector})])
            if without_vector
            else None
        )
        if space is not None and deleted and not rt.vectors_transactional:
            indexing.remove_vectors(rt, None, kind, [space], deleted)

        def store(tx: Transaction) -> Outcome | Unfinished:
            embedded = prepared.store(tx) if prepared is not None else {}
            if space is not None and deleted and rt.vectors_transactional:
                indexing.remove_vectors(rt, tx, kind, [space], deleted)
            counts = {
                "synced": task.outcome.get("synced", 0)
                + (embedded.get("embedded", 0) if isinstance(embedded, dict) else 0),
                "cleaned": task.outcome.get("cleaned", 0) + len(deleted),
                "milliseconds": round(
                    task.outcome.get("milliseconds", 0.0) + (time.perf_counter() - began) * 1000, 3
                ),
            }
            return (
                Unfinished(replace(task, payload={"kind": kind, "keys": later}, outcome=counts))
                if later
                else counts
            )

        return Prepared(store, lambda embedded: [_completed(kind, embedded)])

    def failure_events(self, rt: Runtime, task: Task, error: Exception) -> Iterable[Event]:
        yield _completed(
            task.payload["kind"], task.outcome, failed=len(task.payload.get("keys", []))
        )


def _existing(rt: Runtime, tx: Transaction, kind: str, keys: Sequence[int]) -> set[int]:
    """Keys of the rows that should have vectors: a deleted conclusion may have been restored."""
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
