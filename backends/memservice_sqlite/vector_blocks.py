"""Vectors in memory: the rows of one (observer, observed) pair as numpy arrays, and an exact search
over several pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from memservice.spi.index_filter import IndexFilter
from memservice.spi.unit_vectors import unit
from memservice.spi.vectors import VectorHit
from memservice_sqlite.narrowing import micros

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memservice.spi.vectors import Vector

    Integers = NDArray[np.int64]
    Mask = NDArray[np.bool_]

NULL = int(np.iinfo(np.int64).min)
"""Stands for null; less than every key, code and time."""
NEVER_DELETED = int(np.iinfo(np.int64).max)

OVERHEAD = 1_000
"""Bytes of a partition without rows."""

ROUNDING = 1e-5
"""An upper bound of the error of float32 scores: rows this close to the worst retained score are
scored again in float64."""

FEW = 32
"""If fewer than one in so many rows of a block match a filter, only these are multiplied."""

KEY, ROW, SESSION, AUTHOR, LEVEL, AT, DELETED_AT = range(7)
"""Columns of a block's `facts`: the vector's key, its row's key, the row's session, author, level
code and time, and the key of its tombstone."""


class Levels:
    """Codes for the names of levels, within this process."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, level: str | None) -> int:
        return NULL if level is None else self._codes.setdefault(level, len(self._codes))

    def codes(self, levels: Iterable[str]) -> list[int]:
        return [self._codes[level] for level in levels if level in self._codes]


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one pair at one version: facts (n × 7, int64) and unit vectors as columns (dimension
    × n, float32), so that a query that is zero in most dimensions reads few of them."""

    facts: Integers
    matrix: Vector


class Partition:
    """All rows of one pair. New rows are appended. Not locked: the lock of the cache protects it.

    A block stays valid while its partition changes: rows are only appended after its end, and a
    deletion is a tombstone's key in a column, which the reader compares with the version that its
    own transaction sees.
    """

    def __init__(self, dimension: int, since: int, capacity: int = 0) -> None:
        self._facts: Integers = np.empty((capacity, 7), np.int64)
        self._matrix: Vector = np.empty((dimension, capacity), np.float32)
        self.since = since
        """A tombstone's key. Rows deleted up to it may be missing here, so a transaction that sees
        an earlier version must not use this partition."""
        self.rows = 0
        self.deleted_rows = 0
        self.counted = 0
        """The bytes that the cache has counted for it."""

    @property
    def nbytes(self) -> int:
        return self._facts.nbytes + self._matrix.nbytes + OVERHEAD

    def block(self) -> Block:
        return Block(self._facts[: self.rows], self._matrix[:, : self.rows])

    def append(self, block: Block) -> None:
        """Append rows. Their keys must be greater than all existing ones."""
        end = self.rows + len(block.facts)
        if end > len(self._facts):
            capacity = max(end, self.rows * 5 // 4, 8)
            facts: Integers = np.empty((capacity, 7), np.int64)
            matrix: Vector = np.empty((len(self._matrix), capacity), np.float32)
            facts[: self.rows] = self._facts[: self.rows]
            matrix[:, : self.rows] = self._matrix[:, : self.rows]
            self._facts, self._matrix = facts, matrix
        self._facts[self.rows : end] = block.facts
        self._matrix[:, self.rows : end] = block.matrix
        self.rows = end

    def mark_deleted(self, keys: Integers, tombstones: Integers) -> None:
        """Record deletions: sorted vector keys, and the tombstone's key for each. Keys that are not
        here belong to vectors that were stored and deleted since the last refresh."""
        keys_column = self._facts[: self.rows, KEY]
        index = np.searchsorted(keys_column, keys)
        matches = (
            np.flatnonzero(keys_column[np.minimum(index, self.rows - 1)] == keys)
            if self.rows
            else index[:0]
        )
        self._facts[index[matches], DELETED_AT] = tombstones[matches]
        self.deleted_rows += len(matches)
        if len(matches) < len(keys):
            self.since = max(self.since, int(tombstones.max()))

    def without_deleted(self, since: int) -> Partition:
        """A smaller copy, without rows deleted up to tombstone `since`, the newest one."""
        existing = self._facts[: self.rows, DELETED_AT] == NEVER_DELETED
        copy = Partition(len(self._matrix), since)
        matrix = self._matrix[:, : self.rows]
        copy.append(Block(self._facts[: self.rows][existing], matrix[:, existing]))
        return copy


def block_of(rows: Sequence[Sequence[Any]], dimension: int, levels: Levels) -> Block:
    """Selected rows (key, row, session, author, level, at, vector, …; `NULL` for a null key or
    time), in the same order."""
    columns = list(zip(*rows, strict=True))
    facts = np.empty((len(rows), 7), np.int64)
    for column in (KEY, ROW, SESSION, AUTHOR, AT):
        facts[:, column] = columns[column]
    facts[:, LEVEL] = [levels.code(level) for level in columns[LEVEL]]
    facts[:, DELETED_AT] = NEVER_DELETED
    vectors = np.frombuffer(b"".join(columns[AT + 1]), "<f4").reshape(-1, dimension)
    return Block(facts, unit(vectors).T)


def mask_of(
    facts: Integers, index_filter: IndexFilter, levels: Levels, newest: int, deleted: int
) -> Mask:
    """A mask of the rows that match `index_filter` and exist in a version with vectors up to key
    `newest` and tombstones up to `deleted`.

    Observers and observed peers are not checked: they are the same for all rows of a block.
    """
    mask: Mask = (facts[:, KEY] <= newest) & (facts[:, DELETED_AT] > deleted)
    if index_filter.sessions is not None:
        mask &= _any_of(facts[:, SESSION], index_filter.sessions)
    if index_filter.authors is not None:
        mask &= _any_of(facts[:, AUTHOR], index_filter.authors)
    if index_filter.levels is not None:
        mask &= _any_of(facts[:, LEVEL], levels.codes(index_filter.levels))
    since, until = micros(index_filter.since), micros(index_filter.until)
    if since is not None:
        mask &= facts[:, AT] >= since
    if until is not None:
        mask &= (facts[:, AT] <= until) & (facts[:, AT] != NULL)
    return mask


class Nearest:
    """The `k` rows nearest to a vector, collected block by block. Ties go to the lower row key."""

    def __init__(self, vector: Vector, k: int) -> None:
        query = unit(np.asarray(vector, np.float32)[None, :])[0]
        self._dimensions = np.flatnonzero(query)
        """Those in which the query is not zero: the hashed embedder sets about one in ten."""
        self._query = query[self._dimensions]
        self._k = k
        self._best: list[VectorHit] = []

    def add(self, block: Block, mask: Mask) -> None:
        index = np.flatnonzero(mask)
        if not len(index) or self._k <= 0:
            return
        # Few rows are copied to one matrix; for many, the whole block is multiplied.
        is_sparse = len(index) * FEW < len(block.facts)
        scores = (
            self._query @ block.matrix[np.ix_(self._dimensions, index)]
            if is_sparse
            else (self._query @ block.matrix[self._dimensions])[index]
        )
        if len(self._best) == self._k and scores.max() < self._best[-1].score - ROUNDING:
            return
        floor = (
            -2.0
            if len(index) <= self._k
            else np.partition(scores, len(index) - self._k)[len(index) - self._k]
        )
        if len(self._best) == self._k:
            floor = max(floor, self._best[-1].score)
        candidates = index[scores >= floor - ROUNDING]
        # A matrix product may round equal rows differently, depending on their position; a sum per
        # row does not.
        chosen = block.matrix[np.ix_(self._dimensions, candidates)].astype(np.float64)
        exact = np.clip((chosen * self._query[:, None]).sum(axis=0), -1.0, 1.0)
        rows = block.facts[candidates, ROW]
        hits = list(map(VectorHit, rows.tolist(), exact.tolist()))
        self._best = sorted([*self._best, *hits], key=lambda hit: (-hit.score, hit.key))[: self._k]

    def hits(self) -> list[VectorHit]:
        return self._best


def _any_of(column: Integers, values: Sequence[int]) -> Mask:
    if len(values) == 1:
        return np.asarray(column == values[0])
    return np.isin(column, np.array(values, np.int64))
