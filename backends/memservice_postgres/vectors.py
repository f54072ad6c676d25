"""Vectors in pgvector, in the rows' own transaction: exact where few are in question, by HNSW where
a space is large.

They are stored with length one, so that their inner product is the cosine similarity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memservice.domain.records import Space
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.unit_vectors import checked, unit
from memservice.spi.vectors import VectorHit, VectorRow
from memservice_postgres.connections import Driver, execute_pipelined
from memservice_postgres.narrowing import driver_behind, fitting
from memservice_postgres.reals import Reals, vector_of
from memservice_postgres.vector_indexes import SpaceIndex, SpaceIndexes

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction
    from memservice.spi.vectors import Vector

EXACT = 10_000
"""So many vectors that fit a filter are compared one by one, also in a space that has an index."""
MIN_EF_SEARCH = 200
"""Neighbours that a search in an index keeps in mind, also where few are wanted: recall for a few
milliseconds (benchmarks/vectors.py)."""
MAX_SCANNED = 40_000
"""How many neighbours the index offers to a filter before the filter's own rows are compared
instead."""

_PUT = """
    INSERT INTO vectors (space_key, row_key, session_key, author_key, observer_key, observed_key,
        level, at, vector)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s::real[]::vector)
    ON CONFLICT (space_key, row_key) DO UPDATE
        SET session_key = excluded.session_key, author_key = excluded.author_key,
    observer_key = excluded.observer_key, observed_key = excluded.observed_key, level =
        excluded.level, at = excluded.at,
    vector = excluded.vector
"""
_DELETE = "DELETE FROM vectors WHERE space_key = %s AND row_key = ANY(%s)"
_DROP = "DELETE FROM vectors WHERE space_key = %s"
_FETCH = (
    "SELECT row_key, vector_send(vector) FROM vectors WHERE space_key = %s AND row_key = ANY(%s)"
)
_KEYS = (
    "SELECT row_key FROM vectors WHERE space_key = %s AND row_key > %s ORDER BY row_key LIMIT %s"
)
_COUNT = "SELECT count(*) FROM vectors WHERE space_key = %s"
_FITTING = (
    "SELECT count(*) FROM (SELECT 1 FROM vectors r WHERE r.space_key = %(space)s {fits} LIMIT "
    "%(limit)s) AS found"
)
_NEAREST = """
    SELECT r.row_key, -(r.vector <#> asked.vector)
        FROM vectors r, (SELECT %(asked)s::real[]::vector AS vector) AS asked
    WHERE r.space_key = %(space)s {fits} ORDER BY r.vector <#> asked.vector, r.row_key
        LIMIT %(limit)s
"""
# The index's own order may be that of shorter numbers: what it offers is compared again.
_NEAREST_BY_INDEX = """
    SELECT near.row_key, -(near.vector <#> %(asked)s::real[]::vector) FROM (
        SELECT r.row_key, r.vector FROM vectors r WHERE r.space_key = {space} {fits}
        ORDER BY (r.vector::{type}) <#> %(asked)s::real[]::{type} LIMIT %(offered)s
    ) AS near ORDER BY near.vector <#> %(asked)s::real[]::vector, near.row_key LIMIT %(limit)s
"""


class PostgresVectorIndex:
    """The `VectorIndex` of the PostgreSQL storage. Safe for threads and processes."""

    capabilities = frozenset({Capability.TRANSACTIONAL})

    def __init__(self, indexes: SpaceIndexes, exact: int = EXACT) -> None:
        self.indexes = indexes
        self._exact = exact

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
        """Store vectors, replacing those of the same rows. A row whose vector is zero has none from
        then on.

        Raises ValueError for another dimension than the space's, and for numbers that are not
        finite.
        """
        driver = driver_behind(tx)
        unique = {row.key: (row, checked(space, row.vector)) for row in rows}
        gone = [key for key, (_, vector) in unique.items() if not vector.any()]
        kept = [(row, vector) for row, vector in unique.values() if vector.any()]
        if gone:
            driver.execute(_DELETE, (space.key, gone))
        if not kept:
            return
        units = unit(np.stack([vector for _, vector in kept]))
        # In the order of keys: two writers of the same rows wait for each other, and not in a ring.
        values = sorted(
            (
                (
                    space.key,
                    r.key,
                    r.session,
                    r.author,
                    r.observer,
                    r.observed,
                    r.level,
                    r.at,
                    Reals(vector),
                )
                for (r, _), vector in zip(kept, units, strict=True)
            ),
            key=lambda each: each[1],
        )
        if len(values) == 1:
            driver.execute(_PUT, values[0])
        else:
            driver.cursor().executemany(_PUT, values)

    def delete(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> None:
        driver = driver_behind(tx)
        if keys:
            driver.execute(_DELETE, (space.key, sorted(keys)))

    def drop(self, tx: Transaction | None, space: Space) -> None:
        driver_behind(tx).execute(_DROP, (space.key,))

    def fetch(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> dict[int, Vector]:
        found = driver_behind(tx).execute(_FETCH, (space.key, list(keys)), binary=True).fetchall()
        return {key: vector_of(sent) for key, sent in found}

    def keys(
        self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
    ) -> list[int]:
        return [
            int(key)
            for (key,) in driver_behind(tx).execute(_KEYS, (space.key, after, limit)).fetchall()
        ]

    def count(self, tx: Transaction | None, space: Space) -> int:
        return int(driver_behind(tx).execute(_COUNT, (space.key,)).fetchall()[0][0])

    def query(
        self,
        tx: Transaction | None,
        space: Space,
        vector: Vector,
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int] | None = None,
    ) -> list[VectorHit]:
        """As the protocol says. A zero vector is near to nothing. Raises ValueError as `upsert`
        does."""
        driver = driver_behind(tx)
        asked = checked(space, vector)
        if k <= 0 or not asked.any():
            return []
        fits, named = fitting(index_filter)
        if ids is not None:
            fits, named = f"{fits} AND r.row_key = ANY(%(ids)s)", {**named, "ids": list(ids)}
        given = {**named, "asked": Reals(unit(asked[None, :])[0]), "space": space.key, "limit": k}
        index = self.indexes.of(driver, space) if ids is None else None
        if index is not None and (index_filter == EVERYTHING or self._many(driver, fits, given)):
            hits = _by_index(driver, index, fits, given)
            if len(hits) == k:
                return hits
        return _hits(
            driver.execute(_NEAREST.format(fits=fits).encode(), given, binary=True).fetchall()
        )

    def _many(self, driver: Driver, fits: str, given: dict[str, Any]) -> bool:
        """Do more rows fit than are quickly compared one by one?"""
        sql = _FITTING.format(fits=fits).encode()
        return bool(
            driver.execute(sql, {**given, "limit": self._exact + 1}).fetchall()[0][0] > self._exact
        )


def _by_index(
    driver: Driver, index: SpaceIndex, fits: str, given: dict[str, Any]
) -> list[VectorHit]:
    offered = 2 * given["limit"] if index.half else given["limit"]
    # A filter takes hits away: then the index goes on offering, from the nearest to the farthest,
    # until there are enough.
    execute_pipelined(
        driver,
        (
            f"SET LOCAL hnsw.ef_search = {min(1_000, max(MIN_EF_SEARCH, 2 * offered))}; SET "
            "LOCAL hnsw.iterative_scan = strict_order; "
            f"SET LOCAL hnsw.max_scan_tuples = {MAX_SCANNED}"
        ).encode(),
    )
    sql = _NEAREST_BY_INDEX.format(space=index.space, type=index.type, fits=fits)
    return _hits(
        driver.execute(
            sql.encode(), {**given, "offered": offered}, binary=True, prepare=False
        ).fetchall()
    )


def _hits(rows: Sequence[tuple[Any, ...]]) -> list[VectorHit]:
    return [VectorHit(key, min(1.0, max(-1.0, score))) for key, score in rows]
