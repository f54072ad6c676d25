"""Vectors in pgvector, in the rows' own transaction: exact search in memory if this process has the
vectors that match, in the database if few match, and HNSW in a large space.

Vectors are stored with length one, so that their inner product is the cosine similarity.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from memservice.domain.records import Space
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.unit_vectors import checked, unit
from memservice.spi.vectors import VectorHit, VectorRow
from memservice_postgres.connections import Driver, execute_directly
from memservice_postgres.narrowing import driver_behind, fitting
from memservice_postgres.reals import FloatArray, vector_of
from memservice_postgres.vector_cache import MIN_VECTORS, VectorCache
from memservice_postgres.vector_indexes import SpaceIndex, SpaceIndexes, scaled
from memservice_postgres.vector_schema import PARTS
from memservice_sql.rows import SqlRows
from memservice_sql.signatures import MIN_REDUCTION, compared_for
from memservice_sql.text_cache import random_number
from memservice_sql.vector_blocks import Block, Nearest

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction
    from memservice.spi.vectors import Vector

EXACT = 10_000
"""Up to this many vectors that match a filter are compared one by one, even in a space with an
index; of large vectors fewer (`scaled`)."""
MIN_EF_SEARCH = 200
"""Minimum candidates of a search in an index, for better recall at the cost of a few milliseconds
(benchmarks/vectors.py)."""
SHARE = 16
"""If fewer than one in so many vectors of a space match a filter, the planner chooses between the
index, which visits as many times more vectors, and comparing the matching rows."""
MAX_SCANNED = 40_000
"""Maximum neighbours that the index checks against a filter, before the query falls back to
comparing the matching rows."""

_CHANGED = f"""
    INSERT INTO vector_states (space_key, part, revision)
    VALUES (%s, pg_backend_pid() %% {PARTS}, %s)
    ON CONFLICT (space_key, part) DO UPDATE SET revision = excluded.revision
"""  # noqa: S608 - a constant
_STATES = """
    SELECT space_key, bit_xor(revision)::bigint FROM vector_states
    WHERE space_key = ANY(
        ARRAY(SELECT key FROM spaces WHERE workspace_key = %(workspace)s) || %(space)s::bigint
    ) GROUP BY space_key
"""
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
# The query's vector is a subquery, so that a cached plan converts it once. Converting it for each
# row takes longer than comparing it.
_NEAREST = """
    SELECT near.row_key, -near.distance FROM (
        SELECT r.row_key, r.vector <#> (SELECT %(query_vector)s::real[]::vector) AS distance
        FROM vectors r WHERE r.space_key = %(space)s {fits} OFFSET 0
    ) AS near ORDER BY near.distance, near.row_key LIMIT %(limit)s
"""
_BY_KEYS = " AND r.row_key = ANY(%(ids)s)"
# The index may compare 16-bit numbers, so its candidates are compared again exactly.
_NEAREST_BY_INDEX = """
    SELECT near.row_key, -(near.vector <#> %(query_vector)s::real[]::vector) FROM (
        SELECT r.row_key, r.vector FROM vectors r WHERE r.space_key = {space} {fits}
        ORDER BY (r.vector::{type}) <#> %(query_vector)s::real[]::{type} LIMIT %(candidates)s
    ) AS near ORDER BY near.vector <#> %(query_vector)s::real[]::vector, near.row_key
        LIMIT %(limit)s
"""


class PostgresVectorIndex:
    """The `VectorIndex` of the PostgreSQL storage. Safe for threads and processes.

    A process caches up to `max_cache_bytes` of vectors: those of the most recently searched
    filters that at least `min_cached` vectors match.
    """

    capabilities = frozenset({Capability.TRANSACTIONAL})

    def __init__(
        self,
        indexes: SpaceIndexes,
        exact: int = EXACT,
        max_cache_bytes: int = 128 * 2**20,
        min_cached: int = MIN_VECTORS,
    ) -> None:
        self.indexes = indexes
        self._exact = exact
        self._cache = VectorCache(max_cache_bytes, min_cached)

    @property
    def cached_bytes(self) -> int:
        return self._cache.nbytes

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
        """Store vectors and replace those of the same rows. A zero vector removes the row's vector.

        Raises ValueError if a vector does not have the space's dimension, or has a number that is
        not finite.
        """
        driver = driver_behind(tx)
        unique = {row.key: (row, checked(space, row.vector)) for row in rows}
        if unique:
            _note_change(driver, space)
        zero_keys = [key for key, (_, vector) in unique.items() if not vector.any()]
        nonzero = [(row, vector) for row, vector in unique.values() if vector.any()]
        if zero_keys:
            driver.execute(_DELETE, (space.key, zero_keys))
        if not nonzero:
            return
        units = unit(np.stack([vector for _, vector in nonzero]))
        # By ascending key, so that two writers of the same rows cannot deadlock.
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
                    FloatArray(vector),
                )
                for (r, _), vector in zip(nonzero, units, strict=True)
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
            _note_change(driver, space)
            driver.execute(_DELETE, (space.key, sorted(keys)))

    def drop(self, tx: Transaction | None, space: Space) -> None:
        driver = driver_behind(tx)
        _note_change(driver, space)
        driver.execute(_DROP, (space.key,))
        self._cache.drop_space(space.key)

    def fetch(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> dict[int, Vector]:
        rows = driver_behind(tx).execute(_FETCH, (space.key, list(keys)), binary=True).fetchall()
        return {key: vector_of(data) for key, data in rows}

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
        """See `VectorIndex.query`. A zero vector has no hits. Raises ValueError as `upsert`
        does."""
        driver = driver_behind(tx)
        query_vector = checked(space, vector)
        if k <= 0 or not query_vector.any():
            return []
        fits, filter_values = fitting(index_filter)
        arguments = {
            **filter_values,
            "query_vector": FloatArray(unit(query_vector[None, :])[0]),
            "space": space.key,
            "limit": k,
        }
        if ids is not None:
            arguments["ids"] = list(ids)
            return _compared(driver, fits + _BY_KEYS, arguments)
        index = self.indexes.of(driver, space)
        cached = self._cache.lookup(
            driver,
            space,
            index_filter,
            fits,
            arguments,
            partial(_state, tx, driver, space),
            None if index is None else partial(_size, driver, index, index_filter, fits, arguments),
        )
        if isinstance(cached, Block):
            nearest = Nearest(query_vector, k)
            nearest.add(cached, np.ones(len(cached.facts), np.bool_))
            return nearest.hits()
        if cached is not None and compared_for(k) * MIN_REDUCTION <= len(cached.facts):
            arguments["ids"] = cached.candidates(query_vector, k)
            return _compared(driver, fits + _BY_KEYS, arguments)
        if index is not None:
            exact = scaled(self._exact, space)
            share = index.rows // SHARE
            matching = (
                None
                if index_filter == EVERYTHING
                else _count(driver, fits, arguments, max(exact, share) + 1)
            )
            if matching is None or matching > exact:
                forced = matching is None or matching > share
                hits = _by_index(driver, index, fits, arguments, forced=forced)
                if len(hits) == k:
                    return hits
        return _compared(driver, fits, arguments)

    def sweep(self) -> None:
        """Free the vectors of filters that were not searched lately."""
        self._cache.sweep()


def _note_change(driver: Driver, space: Space) -> None:
    """Tell the processes with vectors in memory that this transaction changes some of the space."""
    # pyrefly: ignore[bad-argument-type]  # made of constants
    driver.execute(_CHANGED, (space.key, random_number()))


def _state(tx: Transaction | None, driver: Driver, space: Space) -> int:
    """The state of a space (`memservice_postgres.vector_cache`). A snapshot reads those of all
    spaces of the workspace at once, since a search may be of several kinds."""
    rows = getattr(tx, "rows", None)
    states: dict[int, int] = (
        rows.once(("vectors", space.workspace_key), dict) if isinstance(rows, SqlRows) else {}
    )
    if space.key not in states:
        values = {"workspace": space.workspace_key, "space": space.key}
        states[space.key] = 0  # of a space that never had a vector
        states.update(driver.reader.rows(_STATES, values))
    return states[space.key]


def _compared(driver: Driver, fits: str, arguments: dict[str, Any]) -> list[VectorHit]:
    """The nearest vectors that match, compared one by one by the database."""
    return _hits(driver.reader.rows(_NEAREST.format(fits=fits), arguments, binary=True))


def _count(driver: Driver, fits: str, arguments: dict[str, Any], limit: int) -> int:
    """The number of vectors that match, at most `limit`."""
    values = {**arguments, "limit": limit}
    return int(driver.reader.rows(_FITTING.format(fits=fits), values)[0][0])


def _size(
    driver: Driver,
    index: SpaceIndex,
    index_filter: IndexFilter,
    fits: str,
    arguments: dict[str, Any],
    limit: int,
) -> int:
    """As `_count`, but estimated for a whole space."""
    return index.rows if index_filter == EVERYTHING else _count(driver, fits, arguments, limit)


def _by_index(
    driver: Driver, index: SpaceIndex, fits: str, arguments: dict[str, Any], *, forced: bool
) -> list[VectorHit]:
    """Unless `forced`, the planner may compare the matching rows instead."""
    candidates = 2 * arguments["limit"] if index.half else arguments["limit"]
    # If a filter removes hits, the index continues with the next nearest ones until there are
    # enough.
    execute_directly(
        driver,
        (
            f"SET LOCAL hnsw.ef_search = {min(1_000, max(MIN_EF_SEARCH, 2 * candidates))}; SET "
            "LOCAL hnsw.iterative_scan = strict_order; "
            f"SET LOCAL hnsw.max_scan_tuples = {MAX_SCANNED}; "
            # It expects too few rows of a pair, whose columns depend on each other. Only a plan
            # without the index has to sort all of them.
            f"SET LOCAL enable_sort = {'off' if forced else 'on'}"
        ).encode(),
    )
    sql = _NEAREST_BY_INDEX.format(space=index.space, type=index.type, fits=fits)
    rows = driver.execute(
        sql.encode(), {**arguments, "candidates": candidates}, binary=True, prepare=False
    ).fetchall()
    if forced:
        execute_directly(driver, b"SET LOCAL enable_sort = on")
    return _hits(rows)


def _hits(rows: Sequence[tuple[Any, ...]]) -> list[VectorHit]:
    return [VectorHit(key, min(1.0, max(-1.0, score))) for key, score in rows]
