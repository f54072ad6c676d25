"""Full text: the terms of each row as a document in the storage's own transaction, and a look at
all of a workspace's."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from msgspec.structs import asdict

from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import IndexFilter, fits
from memservice.spi.storage import Transaction
from memservice.spi.text import TextHit, TextMatches, TextRow

from .documents import ToyRows

KINDS = ("message", "conclusion", "document")


class ToyText:
    capabilities = frozenset({Capability.TRANSACTIONAL})

    def add(
        self, tx: Transaction | None, kind: str, workspace_key: int, rows: Sequence[TextRow]
    ) -> None:
        _connection(tx, kind).executemany(
            "INSERT OR REPLACE INTO texts VALUES (?, ?, ?, ?)",
            [(workspace_key, kind, row.key, _written(row)) for row in rows],
        )

    def remove(
        self, tx: Transaction | None, kind: str, workspace_key: int, keys: Sequence[int]
    ) -> None:
        _connection(tx, kind).executemany(
            "DELETE FROM texts WHERE workspace = ? AND kind = ? AND key = ?",
            [(workspace_key, kind, key) for key in keys],
        )

    def sizes(
        self, tx: Transaction | None, kind: str, workspace_keys: Sequence[int]
    ) -> Mapping[int, int]:
        connection = _connection(tx, kind)
        count = "SELECT count(*) FROM texts WHERE workspace = ? AND kind = ?"
        return {key: connection.execute(count, (key, kind)).fetchone()[0] for key in workspace_keys}

    def indexed(
        self, tx: Transaction | None, kind: str, workspace_key: int, keys: Sequence[int]
    ) -> list[int]:
        connection = _connection(tx, kind)
        stored = "SELECT 1 FROM texts WHERE workspace = ? AND kind = ? AND key = ?"
        return [
            key for key in keys if connection.execute(stored, (workspace_key, kind, key)).fetchone()
        ]

    def search(
        self,
        tx: Transaction | None,
        kind: str,
        workspace_key: int,
        terms: Sequence[str],
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int] | None = None,
    ) -> TextMatches:
        bodies = _connection(tx, kind).execute(
            "SELECT body FROM texts WHERE workspace = ? AND kind = ?", (workspace_key, kind)
        )
        rows = [_read(body) for (body,) in bodies]
        matching_terms = {
            row.key: {
                term: number
                for term, number in Counter([*row.terms, *row.related]).items()
                if term in terms
            }
            for row in rows
        }
        frequencies = {
            term: sum(term in counts for counts in matching_terms.values()) for term in terms
        }
        candidates = [
            row for row in rows if fits(row, index_filter) and (ids is None or row.key in ids)
        ]
        hits = [
            TextHit(row.key, matching_terms[row.key], len(row.terms))
            for row in candidates
            if matching_terms[row.key]
        ]
        # Those with the rarest terms first, of equals the newest.
        hits.sort(key=lambda hit: (sorted(frequencies[term] for term in hit.terms), -hit.key))
        length = sum(len(row.terms) for row in rows) / len(rows) if rows else 0.0
        return TextMatches(len(rows), length, frequencies, hits[: max(k, 0)])

    def drop(self, tx: Transaction | None, workspace_key: int, limit: int) -> int:
        connection = _connection(tx, KINDS[0])
        entries = connection.execute(
            "SELECT kind, key FROM texts WHERE workspace = ? LIMIT ?", (workspace_key, limit)
        ).fetchall()
        connection.executemany(
            "DELETE FROM texts WHERE workspace = ? AND kind = ? AND key = ?",
            [(workspace_key, *row) for row in entries],
        )
        return len(entries)


def _connection(tx: Transaction | None, kind: str) -> sqlite3.Connection:
    if kind not in KINDS:
        raise ValueError(f"unknown kind of text {kind!r}; known: {', '.join(KINDS)}")
    if tx is None:
        raise TypeError("this index needs a transaction of the toybox")
    return cast(ToyRows, tx.rows).connection


def _written(row: TextRow) -> str:
    values: dict[str, Any] = asdict(row)
    return json.dumps(
        values
        | {
            "terms": list(row.terms),
            "related": list(row.related),
            "at": row.at.isoformat() if row.at else None,
        }
    )


def _read(body: str) -> TextRow:
    values = json.loads(body)
    return TextRow(
        **values | {"at": datetime.fromisoformat(values["at"]) if values["at"] else None}
    )
