"""The rows that an export's lines refer to, in the target storage."""

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

    Only of that workspace: a file can name any uid, and its rows must never refer to rows of
    others.
    """

    def __init__(self, tx: Transaction, workspace_key: int) -> None:
        self._tx = tx
        self._workspace_key = workspace_key
        self._keys: dict[tuple[type[Any], str], int] = {}
        self._slugs: dict[tuple[type[Any], int], str | None] = {}
        self._collections: dict[tuple[int, int], int] = {}

    def of(self, record: type[Any], uid: str) -> int:
        return self.several(record, [uid])[0]

    def several(self, record: type[Any], uids: Sequence[str]) -> list[int]:
        """Raises UnreadableExport if one is missing."""
        keys = self.find(record, uids)
        for uid in uids:
            if uid not in keys:
                raise UnreadableExport(
                    f"a row refers to a row of {BY_RECORD[record].name} that is not in the "
                    f"file: {uid}"
                )
        return [keys[uid] for uid in uids]

    def find(self, record: type[Any], uids: Sequence[str]) -> dict[str, int]:
        missing = tuple({uid for uid in uids if (record, uid) not in self._keys})
        for start in range(0, len(missing), BATCH_SIZE):
            for row in self._tx.rows.page(
                record,
                equals(workspace_key=self._workspace_key, uid=missing[start : start + BATCH_SIZE]),
            ):
                self._keys[record, row.uid] = row.key
                self._slugs[record, row.key] = getattr(row, "slug", None)
        return {uid: self._keys[record, uid] for uid in uids if (record, uid) in self._keys}

    def slug(self, record: type[Any], key: int | None) -> str | None:
        """The slug of a row that was read before; None for None."""
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
    """The vectors by uid as rows for the index, without those whose row does not exist, is not in
    the space's workspace or is a conclusion that is superseded here: only live ones are indexed."""
    record = record_formats.SPACED[space.kind]
    values: dict[str, Any] = {"workspace_key": space.workspace_key, "uid": tuple(vectors)}
    if record is r.Conclusion:
        values["state"] = r.LIVE
    rows = tx.rows.page(record, equals(**values))
    existing = [vectors[row.uid] for row in rows]
    return indexing.vector_rows(rows, existing)
