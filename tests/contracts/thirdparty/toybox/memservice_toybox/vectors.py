"""The vector index: a file of its own, outside the storage, so it is written after the commit, by
tasks."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import asdict, replace

from memservice.domain.errors import IndexUnavailable
from memservice.domain.records import Space
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import IndexFilter, fits
from memservice.spi.vectors import VectorHit, VectorRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memservice.spi.storage import Transaction
    from memservice.spi.vectors import Vector

TABLE = (
    "CREATE TABLE IF NOT EXISTS vectors (space INTEGER, key INTEGER, facts TEXT, vector BLOB, "
    "PRIMARY KEY (space, key)) WITHOUT ROWID"
)
NOTHING = np.zeros(0, np.float32)


class ToyVectors:
    capabilities = frozenset({Capability.SHARED})

    def __init__(self, path: str) -> None:
        self._path = path
        with self._connected() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(TABLE)

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
        checked = [(row, _unit(space, row.vector)) for row in rows]
        with self._connected() as connection:
            connection.executemany(
                "DELETE FROM vectors WHERE space = ? AND key = ?",
                [(space.key, row.key) for row, _ in checked],
            )
            connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)",
                [
                    (space.key, row.key, _facts(row), unit.tobytes())
                    for row, unit in checked
                    if unit is not None
                ],
            )

    def delete(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> None:
        with self._connected() as connection:
            connection.executemany(
                "DELETE FROM vectors WHERE space = ? AND key = ?",
                [(space.key, key) for key in keys],
            )

    def query(
        self,
        tx: Transaction | None,
        space: Space,
        vector: Vector,
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int] | None = None,
    ) -> list[VectorHit]:
        unit_vector = _unit(space, vector)
        if unit_vector is None:
            return []
        allowed = None if ids is None else set(ids)
        hits = []
        for key, facts, blob in self._all(space):
            if (allowed is None or key in allowed) and fits(_row(facts), index_filter):
                # Summed alike for every row, whatever is searched with it: equal vectors have equal
                # scores.
                score = float((np.frombuffer(blob, np.float64) * unit_vector).sum())
                hits.append(VectorHit(key, min(1.0, max(-1.0, score))))
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))[: max(k, 0)]

    def fetch(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> dict[int, Vector]:
        requested = set(keys)
        return {
            key: np.frombuffer(blob, np.float64).astype(np.float32)
            for key, _, blob in self._all(space)
            if key in requested
        }

    def keys(
        self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
    ) -> list[int]:
        return [key for key, _, _ in self._all(space) if key > after][: max(limit, 0)]

    def count(self, tx: Transaction | None, space: Space) -> int:
        return len(self._all(space))

    def drop(self, tx: Transaction | None, space: Space) -> None:
        with self._connected() as connection:
            connection.execute("DELETE FROM vectors WHERE space = ?", (space.key,))

    def _all(self, space: Space) -> list[tuple[int, str, bytes]]:
        with self._connected() as connection:
            return connection.execute(
                "SELECT key, facts, vector FROM vectors WHERE space = ? ORDER BY key", (space.key,)
            ).fetchall()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=5)) as connection, connection:
                yield connection
        except sqlite3.OperationalError as error:
            raise IndexUnavailable(
                f"the vectors in {self._path} cannot be used now: {error}"
            ) from error


def _unit(space: Space, vector: Vector) -> NDArray[np.float64] | None:
    """Of length one, exactly enough that equal directions stay equal; None for zero."""
    checked = np.asarray(vector, np.float32).astype(np.float64)
    if checked.shape != (space.dimension,):
        raise ValueError(
            f"a vector of shape {checked.shape} does not fit space {space.key}, whose "
            f"dimension is {space.dimension}"
        )
    if not np.isfinite(checked).all():
        raise ValueError("a vector has numbers that are not finite")
    length = float(np.sqrt((checked * checked).sum()))
    return checked / length if length else None


def _facts(row: VectorRow) -> str:
    values: dict[str, Any] = asdict(replace(row, vector=NOTHING))
    del values["vector"]
    return json.dumps(values | {"at": row.at.isoformat() if row.at else None})


def _row(facts: str) -> VectorRow:
    values = json.loads(facts)
    return VectorRow(
        **values | {"at": datetime.fromisoformat(values["at"]) if values["at"] else None},
        vector=NOTHING,
    )
