"""Signatures of vectors: one bit a dimension, which find the candidates of a search among many
large vectors in a tenth of the time that comparing the vectors takes.

A bit tells whether a number is greater than the mean of its dimension, so the number of bits in
which two signatures differ grows with the angle between the vectors. Only the candidates' vectors
are compared.
"""

from __future__ import annotations

from math import pi, sqrt
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
ESTIMATES_PER_HIT = 5
MIN_ESTIMATES = 500
COMPARED_PER_HIT = 2.5
MIN_COMPARED = 150
"""Where a vector that is compared has to be read from a database, more candidates are taken, and
their similarities estimated to choose those that are read: 250 of 500 contain as many of the
nearest 100 as 400 that are chosen by their signatures alone."""
MIN_REDUCTION = 4
"""Signatures are compared first if they leave at most one in so many rows to compare."""
QUERY_BITS = 4
"""Bits of each number of a query, for an estimate: a signature's one bit is by far less exact."""
_CHUNK = 4_096
"""Signatures compared at a time, so that what is computed stays in the processor's cache."""


def candidates_for(hits: int) -> int:
    """The number of candidates that are compared to find so many hits."""
    return max(MIN_CANDIDATES, CANDIDATES_PER_HIT * hits)


def compared_for(hits: int) -> int:
    """The number of vectors that are read from a database to find so many hits."""
    return max(MIN_COMPARED, round(COMPARED_PER_HIT * hits))


def estimates_for(hits: int) -> int:
    """The number of candidates whose similarity is estimated to choose `compared_for(hits)`."""
    return max(MIN_ESTIMATES, ESTIMATES_PER_HIT * hits)


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

    def estimates(self, query: Vector, centre_products: Vector, index: NDArray[np.intp]) -> Vector:
        """Estimates of the product of the query with each row at `index`, all of them unit vectors,
        less a number that is the same for all. `centre_products`: the product of each row with the
        centre.

        They tell more than the number of bits that differ, since they use the numbers of the query
        and the length of the row's difference from the centre. The numbers of that difference are
        taken to be as large as those of a random vector on average."""
        centre = self.centre.astype(np.float64)
        products = centre_products[index].astype(np.float64)
        lengths = np.sqrt(np.maximum(0.0, 1.0 - 2.0 * products + centre @ centre))
        difference = query - self.centre
        signed_sums = 2.0 * self._sums(difference, index) - difference.sum(dtype=np.float64)
        estimates: Vector = products + lengths / sqrt(2.0 / pi * len(centre)) * signed_sums
        return estimates

    def _sums(self, numbers: Vector, index: NDArray[np.intp]) -> NDArray[np.float64]:
        """For each of these signatures, the sum of the numbers whose bits are set. The numbers are
        rounded to `QUERY_BITS` bits each, which are counted where the signature's are set."""
        least, step = float(numbers.min()), float(np.ptp(numbers)) / (2**QUERY_BITS - 1)
        levels = np.rint((numbers - least) / (step or 1.0)).astype(np.uint8)
        bits = levels >> np.arange(QUERY_BITS, dtype=np.uint8)[:, None] & 1
        words = self.words[:, index]
        common: Any = np.bitwise_count(
            words[:, None] & words_from(np.packbits(bits, axis=1))[..., None]
        )
        set_bits: Any = np.bitwise_count(words)
        level_sums = 2.0 ** np.arange(QUERY_BITS) @ common.sum(axis=0, dtype=np.uint16)
        sums: NDArray[np.float64] = (
            least * set_bits.sum(axis=0, dtype=np.uint16) + step * level_sums
        )
        return sums

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
