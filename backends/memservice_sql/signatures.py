"""Signatures of vectors: one bit a dimension, which find the candidates of a search among many
large vectors in a tenth of the time that comparing the vectors takes.

A bit tells whether a number is greater than the mean of its dimension, so the number of bits in
which two signatures differ grows with the angle between the vectors. Only the candidates' vectors
are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memservice.spi.vectors import Vector

    Words = NDArray[np.uint64]

MIN_DIMENSION = 1_000
"""Signatures of smaller vectors have too few bits to tell near vectors from others."""
MIN_ROWS = 2_000
"""Fewer vectors are compared as fast as their signatures, and their mean says less."""
CANDIDATES_PER_HIT = 4
MIN_CANDIDATES = 400
MIN_REDUCTION = 4
"""Signatures are compared first if they leave at most one in so many rows to compare."""
_CHUNK = 4_096
"""Signatures compared at a time, so that what is computed stays in the processor's cache."""


def candidates_for(hits: int) -> int:
    """The number of candidates that are compared to find so many hits."""
    return max(MIN_CANDIDATES, CANDIDATES_PER_HIT * hits)


class Signatures(Struct, frozen=True):
    """Of rows in order."""

    centre: Vector
    """About the mean of the vectors."""
    words: Words
    """A signature in each column (words × n)."""

    def candidates(self, query: Vector, count: int, index: NDArray[np.intp]) -> NDArray[np.intp]:
        """Those of the rows at `index`, in ascending order, whose signatures differ least from the
        query's: `count` of them, and all that differ as much as the last one."""
        distances = self._distances(words_of(query[:, None], self.centre))[index]
        within = np.cumsum(np.bincount(distances))
        return index[distances <= np.searchsorted(within, min(count, len(index)))]

    def _distances(self, query: Words) -> NDArray[np.uint16]:
        """The number of bits in which each signature differs from the query's."""
        rows = self.words.shape[1]
        distances = np.empty(rows, np.uint16)
        for start in range(0, rows, _CHUNK):
            end = start + _CHUNK
            different: Any = np.bitwise_count(self.words[:, start:end] ^ query)
            np.add.reduce(different, axis=0, dtype=np.uint16, out=distances[start:end])
        return distances


class GrowingSignatures:
    """Signatures to which those of more vectors are appended. Not locked. Signatures that it
    returned stay valid, because others are only appended after their end."""

    def __init__(self, centre: Vector, capacity: int = 0) -> None:
        self.centre = centre
        self._words: Words = np.empty((-(-len(centre) // 64), capacity), np.uint64)
        self.rows = 0

    @property
    def nbytes(self) -> int:
        return self._words.nbytes + self.centre.nbytes

    def signatures(self) -> Signatures:
        return Signatures(self.centre, self._words[:, : self.rows])

    def append(self, vectors: Vector) -> None:
        """Append the signatures of vectors, which are columns (dimension × n)."""
        for start in range(0, vectors.shape[1], _CHUNK):
            self.append_words(words_of(vectors[:, start : start + _CHUNK], self.centre))

    def append_words(self, words: Words) -> None:
        end = self.rows + words.shape[1]
        if end > self._words.shape[1]:
            larger: Words = np.empty((len(self._words), max(end, self.rows * 5 // 4)), np.uint64)
            larger[:, : self.rows] = self._words[:, : self.rows]
            self._words = larger
        self._words[:, self.rows : end] = words
        self.rows = end


def words_of(vectors: Vector, centre: Vector) -> Words:
    """The signatures of vectors, which are columns, as columns (words × n)."""
    return words_from(np.packbits(np.greater(vectors.T, centre), axis=1))


def words_from(packed: NDArray[np.uint8]) -> Words:
    """Signatures as columns, from rows of bytes (n × bytes), the first bit of each the highest."""
    padding = -packed.shape[1] % 8
    padded = np.pad(packed, ((0, 0), (0, padding))) if padding else packed
    return np.ascontiguousarray(padded.view(np.uint64).T)
