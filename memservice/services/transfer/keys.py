"""What the rows of an export refer to, in the storage that they go to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memservice.domain import records as r
from memservice.domain.filters import equals
from memservice.services import indexing
from memservice.services.transfer import record_formats
from memservice.services.transfer.lines import UnreadableExport
from memservice.spi.schema import BY_RECORD
from memservice.spi.storage import Transaction
from memservice.spi.vectors import VectorRow

BATCH_SIZE = 500


class Keys:
    """Keys of rows of one workspace by their uids, in one transaction.

    Of that workspace only: a file may name any uid, and what it stores must never be tied to what
    belongs to others.
    """

    def __init__(self, tx: Transaction, index: int) -> None:
        self._tx = tx
        self._workspace_key = index
        self._known: dict[tuple[type[Any], str], int] = {}
        self._slugs: dict[tuple[type[Any], int], str | None] = {}
        self._collections: dict[tuple[int, int], int] = {}

    def of(self, record: type[Any], uid: str) -> int:
        return self.several(record, [uid])[0]

    def several(self, record: type[Any], uids: Sequence[str]) -> list[int]:
        """Raises UnreadableExport if one is missing."""
        found = self.found(record, uids)
        for uid in uids:
            if uid not in found:
                raise UnreadableExport(
                    f"a row names one of {BY_RECORD[record].name} that is not in the file: {uid}"
                )
        return [found[uid] for uid in uids]

    def found(self, record: type[Any], uids: Sequence[str]) -> dict[str, int]:
        missing = tuple({uid for uid in uids if (record, uid) not in self._known})
        for start in range(0, len(missing), BATCH_SIZE):
            for row in self._tx.rows.page(
                record,
                equals(workspace_key=self._workspace_key, uid=missing[start : start + BATCH_SIZE]),
            ):
                self._known[record, row.uid] = row.key
                self._slugs[record, row.key] = getattr(row, "slug", None)
        return {uid: self._known[record, uid] for uid in uids if (record, uid) in self._known}

    def slug(self, record: type[Any], key: int | None) -> str | None:
        """Of a row that was found before; None stays None."""
        return None if key is None else self._slugs[record, key]

    def collection(self, observer_key: int, observed_key: int) -> int:
        if (observer_key, observed_key) not in self._collections:
            collection = self._tx.conclusions.collection(observer_key, observed_key)
            if collection is None:
                raise UnreadableExport(
                    "a conclusion belongs to a collection that is not in the file"
                )
            self._collections[observer_key, observed_key] = collection.key
        return self._collections[observer_key, observed_key]


def vector_rows(tx: Transaction, space: r.Space, vectors: Mapping[str, Any]) -> list[VectorRow]:
    """Vectors by uid as rows for the index; those of rows that are not there, or not in the space's
    workspace, are left out."""
    record = record_formats.SPACED[space.kind]
    rows = tx.rows.page(record, equals(workspace_key=space.workspace_key, uid=tuple(vectors)))
    found = [vectors[row.uid] for row in rows]
    if record is r.Message:
        return indexing.message_vectors(rows, found)
    if record is r.Conclusion:
        return indexing.conclusion_vectors(rows, found)
    return [
        VectorRow(row.key, row.uid, vector, at=row.created_at)
        for row, vector in zip(rows, found, strict=True)
    ]
