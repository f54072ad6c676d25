"""What a process caches of the vectors that fit a filter: the vectors, or only their signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from memservice.spi.unit_vectors import unit
from memservice_postgres.connections import Driver
from memservice_postgres.reals import FloatArray, vector_of
from memservice_sql.signatures import (
    MIN_ROWS,
    GrowingSignatures,
    Signatures,
    compared_for,
    estimates_for,
    words_from,
)
from memservice_sql.vector_blocks import KEY, OVERHEAD, ROW, Block, GrowingBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memservice.spi.vectors import Vector
    from memservice_sql.vector_blocks import Integers, Mask

FETCH_SIZE = 2_000
"""Vectors fetched from the database at a time."""
MAX_SIGNATURES_READ = 20_000
"""Signatures read in one search, so that no search waits for all of them."""

VERSION = "coalesce(r.version, -r.row_key)"
"""Negative for rows of older releases."""
# The array is computed first, from the index alone, so that the rows are read by their keys.
_ROWS = f"""
    SELECT {VERSION}, r.row_key, {{content}} FROM vectors r
    WHERE r.space_key = %(space)s AND r.row_key = ANY(ARRAY(
        SELECT r.row_key FROM vectors r WHERE r.space_key = %(space)s {{fits}}
        AND {VERSION} = ANY(%(versions)s)
    ))
"""  # noqa: S608 - constants
_VECTOR = "vector_send(r.vector)"
_SIGNATURE = """
    binary_quantize(r.vector - (SELECT %(centre)s::real[]::vector)),
    -(r.vector <#> (SELECT %(centre)s::real[]::vector))
"""
_SIGNATURE_OFFSET = 4
"""PostgreSQL's binary format of bits: their number, then the bits."""
# Of the first vectors in the table, since the mean of all takes longer.
_CENTRE = f"""
    SELECT vector_send(avg(part.vector)) FROM (
        SELECT r.vector FROM vectors r WHERE r.space_key = %(space)s {{fits}} LIMIT {MIN_ROWS}
    ) AS part
"""  # noqa: S608 - constants


class Matching(Struct, frozen=True):
    """The vectors that fit a filter, in a transaction. `fits` and `arguments`: the filter as
    SQL."""

    driver: Driver
    fits: str
    arguments: dict[str, Any]

    def rows(self, content: str, versions: Integers, **values: Any) -> list[tuple[Any, ...]]:
        """Those with these versions: version, row key, and the columns of `content`."""
        sql = _ROWS.format(content=content, fits=self.fits).encode()
        arguments = {**self.arguments, **values, "versions": versions.tolist()}
        return self.driver.execute(sql, arguments, binary=True).fetchall()

    def mean(self) -> Vector:
        sql = _CENTRE.format(fits=self.fits).encode()
        return vector_of(self.driver.execute(sql, self.arguments, binary=True).fetchall()[0][0])


class CachedVectors:
    """The vectors. Not locked: the lock of the cache protects them."""

    def __init__(self, dimension: int, capacity: int) -> None:
        self._block = GrowingBlock(dimension, ROW + 1, capacity)

    @property
    def nbytes(self) -> int:
        return self._block.nbytes

    @property
    def dimension(self) -> int:
        return len(self._block.block().matrix)

    def snapshot(self) -> Block:
        return self._block.block()

    def update(self, matching: Matching, versions: Integers) -> bool:
        """Read what is missing, and remove all but these versions. Returns whether all of them are
        there now."""
        block = self._block.block()
        is_current = np.isin(block.facts[:, KEY], versions)
        if not is_current.all():
            # A copy, so that nothing of the others stays in memory.
            self._block = GrowingBlock(self.dimension, ROW + 1)
            self._block.append(Block(block.facts[is_current], block.matrix[:, is_current]))
        missing = versions[~np.isin(versions, self._block.block().facts[:, KEY])]
        for start in range(0, len(missing), FETCH_SIZE):
            rows = matching.rows(_VECTOR, missing[start : start + FETCH_SIZE])
            if rows:
                self._block.append(_block_of(rows))
        return self._block.rows == len(versions)


class SignedRows(Struct, frozen=True):
    """Vectors of which only the signatures are cached. `facts` as in a `Block`."""

    facts: Integers
    signatures: Signatures
    centre_products: Vector
    """The product of each vector with the centre of the signatures."""

    def candidates(self, vector: Vector, hits: int) -> list[int]:
        """The row keys of the vectors that are to be compared to find the nearest ones."""
        query = unit(np.asarray(vector, np.float32)[None, :])[0]
        everything = np.arange(len(self.facts))
        index = self.signatures.candidates(query, estimates_for(hits), everything)
        count = compared_for(hits)
        if len(index) > count:
            estimates = self.signatures.estimates(query, self.centre_products, index)
            index = index[np.argpartition(-estimates, count)[:count]]
        keys: list[int] = self.facts[index, ROW].tolist()
        return keys


class CachedSignatures:
    """The signatures of large vectors. Not locked: the lock of the cache protects them."""

    def __init__(self, centre: Vector) -> None:
        self._facts: Integers = np.empty((0, ROW + 1), np.int64)
        self._signatures = GrowingSignatures(centre)
        self._centre_products: Vector = np.empty(0, np.float32)

    @property
    def nbytes(self) -> int:
        parts = (self._facts, self._signatures, self._centre_products)
        return sum(part.nbytes for part in parts) + OVERHEAD

    def snapshot(self) -> SignedRows:
        return SignedRows(self._facts, self._signatures.signatures(), self._centre_products)

    def update(self, matching: Matching, versions: Integers) -> bool:
        """As `CachedVectors.update`, but reads at most `MAX_SIGNATURES_READ`."""
        is_current = np.isin(self._facts[:, KEY], versions)
        if not is_current.all():
            self._retain(is_current)
        missing = versions[~np.isin(versions, self._facts[:, KEY])][:MAX_SIGNATURES_READ]
        if len(missing):
            centre = FloatArray(self._signatures.centre)
            rows = matching.rows(_SIGNATURE, missing, centre=centre)
            if rows:
                self._append(rows)
        return len(self._facts) == len(versions)

    def _append(self, rows: Sequence[tuple[Any, ...]]) -> None:
        bits = np.frombuffer(b"".join(row[2][_SIGNATURE_OFFSET:] for row in rows), np.uint8)
        self._signatures.append_words(words_from(bits.reshape(len(rows), -1)))
        self._facts = np.concatenate([self._facts, _facts_of(rows)])
        products = np.array([row[3] for row in rows], np.float32)
        self._centre_products = np.concatenate([self._centre_products, products])

    def _retain(self, retained: Mask) -> None:
        words = self._signatures.signatures().words[:, retained]
        self._signatures = GrowingSignatures(self._signatures.centre)
        self._signatures.append_words(words)
        self._facts = self._facts[retained]
        self._centre_products = self._centre_products[retained]


def _facts_of(rows: Sequence[tuple[Any, ...]]) -> Integers:
    return np.array([row[:2] for row in rows], np.int64)


def _block_of(rows: Sequence[tuple[Any, ...]]) -> Block:
    return Block(_facts_of(rows), np.stack([vector_of(row[2]) for row in rows], axis=1))
