"""Vectors in memory: blocks of rows as numpy arrays that grow, and an exact search over several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct

from memservice.spi.unit_vectors import unit
from memservice.spi.vectors import VectorHit
from memservice_sql.signatures import (
    MIN_DIMENSION,
    MIN_REDUCTION,
    MIN_ROWS,
    GrowingSignatures,
    Signatures,
    candidates_for,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memservice.spi.vectors import Vector

    Integers = NDArray[np.int64]
    Mask = NDArray[np.bool_]

KEY, ROW = range(2)
"""The first columns of a block's `facts`: a number that only this vector has ever had, and the key
of its row. A storage may have more columns."""

OVERHEAD = 1_000
"""Bytes of a block without rows."""

ROUNDING = 1e-5
"""An upper bound of the error of float32 scores: rows this close to the worst retained score are
scored again in float64."""

FEW = 32
"""If fewer than one in so many rows of a block match a filter, only these are multiplied."""


class Block(Struct, frozen=True):
    """Rows at one version: facts (n × columns, int64) and unit vectors as columns (dimension × n,
    float32), so that a query that is zero in most dimensions reads few of them. Of dense vectors,
    each is in one piece."""

    facts: Integers
    matrix: Vector
    signatures: Signatures | None = None
    """Of many large dense vectors."""


class GrowingBlock:
    """A block to which rows are appended. Not locked: the lock of the cache protects it.

    A block that it returned stays valid, because rows are only appended after its end.
    """

    def __init__(self, dimension: int, columns: int, capacity: int = 0) -> None:
        self._facts: Integers = np.empty((capacity, columns), np.int64)
        self._matrix: Vector = np.empty((dimension, capacity), np.float32)
        self._order: Literal["C", "F"] = "C"
        """The layout of the matrix: C for dimensions in one piece, F for vectors."""
        self._signatures: GrowingSignatures | None = None
        self._centred_rows = 0
        """The number of vectors whose mean is the centre of the signatures."""
        self.rows = 0

    @property
    def nbytes(self) -> int:
        signatures = 0 if self._signatures is None else self._signatures.nbytes
        return self._facts.nbytes + self._matrix.nbytes + signatures + OVERHEAD

    def block(self) -> Block:
        facts, matrix = self._facts[: self.rows], self._matrix[:, : self.rows]
        signatures = None if self._signatures is None else self._signatures.signatures()
        return Block(facts, matrix, signatures)

    def append(self, block: Block) -> None:
        end = self.rows + len(block.facts)
        if not self.rows and block.matrix.size and _is_dense(block.matrix):
            # Chosen vectors are read, not chosen dimensions: each is kept in one piece.
            self._order = "F"
            self._matrix = np.empty(self._matrix.shape, np.float32, "F")
        if end > len(self._facts):
            capacity = max(end, self.rows * 5 // 4, 8)
            facts: Integers = np.empty((capacity, self._facts.shape[1]), np.int64)
            matrix: Vector = np.empty((len(self._matrix), capacity), np.float32, self._order)
            facts[: self.rows] = self._facts[: self.rows]
            matrix[:, : self.rows] = self._matrix[:, : self.rows]
            self._facts, self._matrix = facts, matrix
        self._facts[self.rows : end] = block.facts
        self._matrix[:, self.rows : end] = block.matrix
        start, self.rows = self.rows, end
        if self._order == "F" and len(self._matrix) >= MIN_DIMENSION and end >= MIN_ROWS:
            self._sign(start)

    def _sign(self, start: int) -> None:
        """Add the signatures of the rows from `start` on; of all rows again, once they are twice as
        many as those whose mean is the centre."""
        if self._signatures is None or self.rows > 2 * self._centred_rows:
            start, self._centred_rows = 0, self.rows
            centre = self._matrix[:, : self.rows].mean(axis=1)
            self._signatures = GrowingSignatures(centre, len(self._facts))
        self._signatures.append(self._matrix[:, start : self.rows])


def _is_dense(vectors: Vector) -> bool:
    """Whether at least half of the numbers are not zero, as in the vectors of a model."""
    return bool(np.count_nonzero(vectors) * 2 >= vectors.size)


class Nearest:
    """The `k` rows nearest to a vector, collected block by block. Ties go to the lower row key."""

    def __init__(self, vector: Vector, k: int) -> None:
        query = unit(np.asarray(vector, np.float32)[None, :])[0]
        self._dimensions = np.flatnonzero(query)
        """Those in which the query is not zero: the hashed embedder sets about one in ten."""
        self._query = query
        self._k = k
        self._best: list[VectorHit] = []

    def add(self, block: Block, mask: Mask) -> None:
        index = np.flatnonzero(mask)
        if not len(index) or self._k <= 0:
            return
        count = candidates_for(self._k)
        is_sparse = len(index) * FEW < len(block.facts)
        if block.signatures is not None and count * MIN_REDUCTION <= len(index):
            index, is_sparse = block.signatures.candidates(self._query, count, index), True
        # Few rows are copied to one matrix; for many, the whole block is multiplied.
        query, matrix = self._used(block, index if is_sparse else None)
        scores = query @ matrix if is_sparse else (query @ matrix)[index]
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
        # A matrix product may round equal rows differently, depending on their position; a product
        # of each row in one piece does not.
        query, matrix = self._used(block, candidates)
        rows_in_one_piece = np.ascontiguousarray(matrix.T, np.float64)
        exact = np.clip(np.vecdot(rows_in_one_piece, query.astype(np.float64)), -1.0, 1.0)
        rows = block.facts[candidates, ROW]
        hits = list(map(VectorHit, rows.tolist(), exact.tolist()))
        self._best = sorted([*self._best, *hits], key=lambda hit: (-hit.score, hit.key))[: self._k]

    def hits(self) -> list[VectorHit]:
        return self._best

    def _used(self, block: Block, index: Integers | None) -> tuple[Vector, Vector]:
        """The query, and these rows of the block or all. Without the dimensions in which the query
        is zero, if each dimension is in one piece; else they take longer to select than to
        multiply."""
        matrix = block.matrix
        if matrix.strides[0] == matrix.itemsize:  # a vector is in one piece
            return self._query, matrix if index is None else matrix.T[index].T
        chosen = self._dimensions if index is None else np.ix_(self._dimensions, index)
        return self._query[self._dimensions], matrix[chosen]
