"""Vectors in memory: rows of one (observer, observed) pair as numpy arrays, and the exact search
over several of them."""

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

NOTHING = int(np.iinfo(np.int64).min)
"""In place of a null; no key, code or time is so low."""
ALIVE = int(np.iinfo(np.int64).max)

OVERHEAD = 1_000
"""Bytes of a partition without rows."""

ROUNDING = 1e-5
"""More than float32 scores can err by: rows this near to the last one kept are scored again, in
float64."""

KEY, ROW, SESSION, AUTHOR, LEVEL, AT, DIED = range(7)
"""Columns of a block's `facts`: the vector's key, its row's key, the row's session, author, level
code and time, the tombstone's key."""


class Levels:
    """Codes for the names of levels, within this process."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, level: str | None) -> int:
        return NOTHING if level is None else self._codes.setdefault(level, len(self._codes))

    def known(self, levels: Iterable[str]) -> list[int]:
        return [self._codes[level] for level in levels if level in self._codes]


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of one pair as they were at one moment: n facts (n × 7, int64) and n unit vectors
    (n × dimension, float32)."""

    facts: Integers
    matrix: Vector


class Partition:
    """All rows of one pair, growing at the end. Not locked: the index's lock guards it.

    A block that was given out stays right while the partition changes: rows are only added behind
    its end, and a death is a key in a column that the reader compares with its own view's
    tombstones.
    """

    def __init__(self, dimension: int, since: int, capacity: int = 0) -> None:
        self._facts: Integers = np.empty((capacity, 7), np.int64)
        self._matrix: Vector = np.empty((capacity, dimension), np.float32)
        self.since = since
        """A tombstone's key. Rows that died up to it may be missing here: views that do not see so
        far must not use it."""
        self.rows = 0
        self.dead = 0
        self.counted = 0
        """The bytes that its holder has counted for it."""

    @property
    def nbytes(self) -> int:
        return self._facts.nbytes + self._matrix.nbytes + OVERHEAD

    def block(self) -> Block:
        return Block(self._facts[: self.rows], self._matrix[: self.rows])

    def append(self, block: Block) -> None:
        """Add rows, whose keys are greater than all that are here."""
        end = self.rows + len(block.facts)
        if end > len(self._facts):
            capacity = max(end, self.rows * 5 // 4, 8)
            self._facts = _enlarged(self._facts, self.rows, capacity)
            self._matrix = _enlarged(self._matrix, self.rows, capacity)
        self._facts[self.rows : end] = block.facts
        self._matrix[self.rows : end] = block.matrix
        self.rows = end

    def bury(self, keys: Integers, tombstones: Integers) -> None:
        """Note deaths: sorted vector keys, and beside each its tombstone's key. Vectors may have
        come and gone unseen."""
        held = self._facts[: self.rows, KEY]
        at = np.searchsorted(held, keys)
        found = np.flatnonzero(held[np.minimum(at, self.rows - 1)] == keys) if self.rows else at[:0]
        self._facts[at[found], DIED] = tombstones[found]
        self.dead += len(found)
        if len(found) < len(keys):
            self.since = max(self.since, int(tombstones.max()))

    def without_dead(self, since: int) -> Partition:
        """A smaller copy of what was alive at tombstone `since`, the newest that is known."""
        alive = self._facts[: self.rows, DIED] == ALIVE
        copy = Partition(self._matrix.shape[1], since)
        copy.append(Block(self._facts[: self.rows][alive], self._matrix[: self.rows][alive]))
        return copy


def block_of(rows: Sequence[Sequence[Any]], dimension: int, levels: Levels) -> Block:
    """Rows as selected (key, row, session, author, level, at, vector, …; `NOTHING` for a null key
    or time): in the order given."""
    columns = list(zip(*rows, strict=True))
    facts = np.empty((len(rows), 7), np.int64)
    for column in (KEY, ROW, SESSION, AUTHOR, AT):
        facts[:, column] = columns[column]
    facts[:, LEVEL] = [levels.code(level) for level in columns[LEVEL]]
    facts[:, DIED] = ALIVE
    return Block(
        facts, unit(np.frombuffer(b"".join(columns[AT + 1]), "<f4").reshape(-1, dimension))
    )


def mask_of(
    facts: Integers, index_filter: IndexFilter, levels: Levels, newest: int, buried: int
) -> Mask:
    """Which rows exist in a view that saw vectors up to key `newest` and tombstones up to `buried`,
    and fit `index_filter`.

    Observers and observed are not looked at: they are a block's own.
    """
    mask: Mask = (facts[:, KEY] <= newest) & (facts[:, DIED] > buried)
    if index_filter.sessions is not None:
        mask &= _any_of(facts[:, SESSION], index_filter.sessions)
    if index_filter.authors is not None:
        mask &= _any_of(facts[:, AUTHOR], index_filter.authors)
    if index_filter.levels is not None:
        mask &= _any_of(facts[:, LEVEL], levels.known(index_filter.levels))
    since, until = micros(index_filter.since), micros(index_filter.until)
    if since is not None:
        mask &= facts[:, AT] >= since
    if until is not None:
        mask &= (facts[:, AT] <= until) & (facts[:, AT] != NOTHING)
    return mask


class Nearest:
    """The `k` rows nearest to a vector, collected block by block. Ties go to the lower row key."""

    def __init__(self, vector: Vector, k: int) -> None:
        self._query = unit(np.asarray(vector, np.float32)[None, :])[0]
        self._k = k
        self._best: list[VectorHit] = []

    def offer(self, block: Block, mask: Mask) -> None:
        at = np.flatnonzero(mask)
        if not len(at) or self._k <= 0:
            return
        # A few rows are copied together; of many, all are multiplied where they lie.
        few = len(at) * 4 < len(block.matrix)
        scores = block.matrix[at] @ self._query if few else (block.matrix @ self._query)[at]
        if len(self._best) == self._k and scores.max() < self._best[-1].score - ROUNDING:
            return
        floor = (
            -2.0
            if len(at) <= self._k
            else np.partition(scores, len(at) - self._k)[len(at) - self._k]
        )
        if len(self._best) == self._k:
            floor = max(floor, self._best[-1].score)
        near = at[scores >= floor - ROUNDING]
        # The product of a matrix may round equal rows differently, by their place in it; a sum per
        # row does not.
        exact = np.clip(
            (block.matrix[near].astype(np.float64) * self._query).sum(axis=1), -1.0, 1.0
        )
        hits = [
            VectorHit(int(key), float(score))
            for key, score in zip(block.facts[near, ROW], exact, strict=True)
        ]
        self._best = sorted([*self._best, *hits], key=lambda hit: (-hit.score, hit.key))[: self._k]

    def hits(self) -> list[VectorHit]:
        return self._best


def _any_of(column: Integers, values: Sequence[int]) -> Mask:
    if len(values) == 1:
        return np.asarray(column == values[0])
    return np.isin(column, np.array(values, np.int64))


def _enlarged(array: NDArray[Any], rows: int, capacity: int) -> NDArray[Any]:
    larger = np.empty((capacity, array.shape[1]), array.dtype)
    larger[:rows] = array[:rows]
    return larger
