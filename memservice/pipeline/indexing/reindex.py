"""Indexes the texts of a workspace again while it is in use, after a release that adds terms to the
index. Until a text has them, it is found by those that it has."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import LIVE, Conclusion, Document, Message, Task
from memservice.domain.text.relatives import IndexTerms
from memservice.pipeline.handler import Handler, Outcome, Prepared, Unfinished
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.indexing import CONCLUSION, DOCUMENT, MESSAGE
from memservice.services.tasks import kinds
from memservice.spi.rows import BY_KEY
from memservice.spi.storage import Transaction

log = logging.getLogger("memservice.maintenance")

Row = Message | Conclusion | Document

BATCH_SIZE = 100
"""Rows of one transaction: other writes of an SQLite store wait for it."""
RECORDS: Mapping[str, type[Any]] = {MESSAGE: Message, CONCLUSION: Conclusion, DOCUMENT: Document}
"""Kinds of rows, in the order in which they are indexed."""


class Reindex(Handler):
    """Handler of `reindex` tasks, of one workspace each. Each step indexes some rows and stores the
    kind and the key that it reached, so interrupted work continues where it stopped. The outcome
    counts the rows."""

    kind = kinds.REINDEX

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        (task,) = tasks
        workspace_key = task.workspace_key or 0
        kind = task.payload.get("kind", MESSAGE)
        after = int(task.payload.get("after", 0))
        with rt.storage.read() as tx:
            rows = _rows(tx, workspace_key, kind, after)
        # The analysis of messages takes longest, so it comes before the transaction.
        terms = {
            row.content: indexing.message_terms(row.content) for row in rows if kind == MESSAGE
        }

        def store(tx: Transaction) -> Outcome | Unfinished:
            indexed = _index(rt, tx, workspace_key, kind, rows, terms)
            counts = {"indexed": task.outcome.get("indexed", 0) + indexed}
            following = _following(kind, rows)
            if following is not None:
                return Unfinished(replace(task, payload=following, outcome=counts))
            log.info("indexed %d texts of workspace %d again", counts["indexed"], workspace_key)
            return counts

        return Prepared(store)


def _rows(tx: Transaction, workspace_key: int, kind: str, after: int) -> list[Any]:
    condition = all_of(equals(workspace_key=workspace_key), Compare("key", "gt", after))
    if kind == CONCLUSION:
        condition = all_of(condition, equals(state=LIVE))
    return tx.rows.page(RECORDS[kind], condition, BY_KEY, BATCH_SIZE)


def _following(kind: str, rows: Sequence[Row]) -> dict[str, Any] | None:
    """The payload of the next step; None after the last one."""
    if len(rows) == BATCH_SIZE:
        return {"kind": kind, "after": rows[-1].key}
    order = list(RECORDS)
    return next(({"kind": other} for other in order[order.index(kind) + 1 :]), None)


def _index(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    kind: str,
    rows: Sequence[Row],
    terms: Mapping[str, IndexTerms],
) -> int:
    """Index those of the rows that still exist, as they are now. Returns their number."""
    # They are locked, so that an erasure cannot overtake the change of its index.
    existing: list[Any] = tx.locked(RECORDS[kind], [row.key for row in rows])
    if kind == CONCLUSION:
        existing = [row for row in existing if row.state == LIVE]
        indexing.add_conclusion_texts(rt, tx, workspace_key, existing)
    elif kind == DOCUMENT:
        indexing.add_document_texts(rt, tx, workspace_key, existing)
    else:
        authors = tx.peers.by_keys(sorted({row.author_key for row in existing}))
        texts = [terms.get(row.content) or indexing.message_terms(row.content) for row in existing]
        indexing.add_message_texts(rt, tx, workspace_key, existing, texts, authors)
    return len(existing)
