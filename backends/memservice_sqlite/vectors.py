"""Vectors in SQLite: BLOBs in the rows' own transaction, searched exactly in matrices that each
process caches.

Any number of threads and processes may use one file. A process brings its cache forward to the
version that a transaction sees (`memservice_sqlite.vector_cache`), by newer rows and tombstones,
without reading everything again.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np
from sqlalchemy import Connection

from memservice.domain.records import Space
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import IndexFilter
from memservice.spi.unit_vectors import checked
from memservice.spi.vectors import VectorHit, VectorRow
from memservice_sql.vector_blocks import KEY, Block, Nearest
from memservice_sqlite.narrowing import FITS, array, connection_of, micros, parameters
from memservice_sqlite.vector_blocks import mask_of
from memservice_sqlite.vector_cache import (
    COLUMNS,
    VectorCache,
    Version,
    read_blocks,
    read_deletions_since,
    read_pair,
    read_since,
)

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction
    from memservice.spi.vectors import Vector

_ADD = """
    INSERT INTO vectors (space_key, row_key, session_key, author_key, observer_key, observed_key,
        level, at, vector)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_DELETE = "DELETE FROM vectors WHERE space_key = ? AND row_key IN (SELECT value FROM json_each(?))"
_DROP = "DELETE FROM vectors WHERE space_key = ?"
_FETCH = """
    SELECT r.row_key, r.vector FROM json_each(:rows) wanted CROSS
        JOIN vectors r INDEXED BY vectors_row
    WHERE r.space_key = :space AND r.row_key = wanted.value
"""
_KEYS = (
    "SELECT row_key FROM vectors INDEXED BY vectors_row WHERE space_key = ? AND row_key > ? "
    "ORDER BY row_key LIMIT ?"
)
_COUNT = "SELECT count(*) FROM vectors INDEXED BY vectors_space WHERE space_key = ?"
_PRUNE = (
    "DELETE FROM vector_tombstones WHERE key <= (SELECT seq FROM sqlite_sequence WHERE name = "
    "'vector_tombstones') - ?"
)
_OF_ROWS = f"""
    SELECT {COLUMNS} FROM json_each(:rows) wanted CROSS JOIN vectors r INDEXED BY vectors_row
    WHERE r.space_key = :space AND r.row_key = wanted.value AND {FITS}
"""  # noqa: S608 - three constants

# Transactions that have written vectors, through any index object: their rows may still be rolled
# back.
_writers: WeakSet[Transaction] = WeakSet()
_writers_lock = Lock()


class SqliteVectorIndex:
    """The `VectorIndex` of the SQLite storage. Safe for threads and processes.

    A process caches up to `max_cache_bytes` of vectors: the most recently queried pairs of
    (observer, observed). A larger pair is read from the file at each query. The last
    `max_tombstones` deletions are stored for the other processes; a process that missed more of
    them reads its spaces again.
    """

    capabilities = frozenset({Capability.TRANSACTIONAL})

    def __init__(self, max_cache_bytes: int = 256 * 2**20, max_tombstones: int = 10_000) -> None:
        self._cache = VectorCache(max_cache_bytes)
        self._max_tombstones = max_tombstones

    @property
    def cached_bytes(self) -> int:
        return self._cache.nbytes

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
        """Store vectors and replace those of the same rows. A zero vector removes the row's vector.

        Raises ValueError if a vector does not have the space's dimension, or has a number that is
        not finite.
        """
        connection = connection_of(tx)
        unique = {row.key: (row, checked(space, row.vector)) for row in rows}
        self._delete(tx, connection, space, list(unique))
        values = [
            (
                *(
                    space.key,
                    row.key,
                    row.session,
                    row.author,
                    row.observer or 0,
                    row.observed or 0,
                ),
                *(row.level, micros(row.at), vector.astype("<f4").tobytes()),
            )
            for row, vector in unique.values()
            if vector.any()
        ]
        if values:
            connection.exec_driver_sql(_ADD, values)

    def delete(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> None:
        self._delete(tx, connection_of(tx), space, keys)

    def drop(self, tx: Transaction | None, space: Space) -> None:
        connection = connection_of(tx)
        _note_write(tx)
        connection.exec_driver_sql(_DROP, (space.key,))
        self._prune(connection)
        self._cache.drop_space(space.key)

    def fetch(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> dict[int, Vector]:
        rows = (
            connection_of(tx)
            .exec_driver_sql(_FETCH, {"space": space.key, "rows": array(set(keys))})
            .all()
        )
        return {key: np.frombuffer(blob, "<f4").astype(np.float32) for key, blob in rows}

    def keys(
        self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
    ) -> list[int]:
        return list(connection_of(tx).exec_driver_sql(_KEYS, (space.key, after, limit)).scalars())

    def count(self, tx: Transaction | None, space: Space) -> int:
        return int(connection_of(tx).exec_driver_sql(_COUNT, (space.key,)).scalar_one())

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
        connection = connection_of(tx)
        query_vector = checked(space, vector)
        if k <= 0 or not query_vector.any():
            return []
        nearest = Nearest(query_vector, k)
        if ids is not None:
            arguments = parameters(index_filter) | {"space": space.key, "rows": array(set(ids))}
            for _, block in read_blocks(
                connection, _OF_ROWS, arguments, space.dimension, self._cache.levels
            ):
                nearest.add(block, np.ones(len(block.facts), np.bool_))
            return nearest.hits()
        with _writers_lock:
            committed = tx not in _writers
        self._search(connection, space, nearest, index_filter, committed)
        return nearest.hits()

    def sweep(self, tx: Transaction) -> None:
        """Free the cached vectors of spaces that any process deleted. Cheap if nothing was
        deleted."""
        connection = connection_of(tx)
        self._cache.sweep(connection, Version.of(connection))

    def _search(
        self,
        connection: Connection,
        space: Space,
        nearest: Nearest,
        index_filter: IndexFilter,
        committed: bool,
    ) -> None:
        version = Version.of(connection)
        levels = self._cache.levels
        result = self._cache.lookup(connection, space, version, index_filter, committed)

        def add(block: Block) -> None:
            nearest.add(
                block, mask_of(block.facts, index_filter, levels, version.newest, version.deleted)
            )

        # Only a transaction that wrote can see a later version than the cache.
        if version.deleted > result.deleted and result.blocks:
            deleted_keys = read_deletions_since(connection, space, result)
            for block in result.blocks:
                alive = ~np.isin(block.facts[:, KEY], deleted_keys)
                nearest.add(
                    block,
                    mask_of(block.facts, index_filter, levels, version.newest, version.deleted)
                    & alive,
                )
        else:
            for block in result.blocks:
                add(block)
        if version.newest > result.newest and result.blocks:
            for block in read_since(connection, space, result, levels):
                add(block)
        for pair in result.missing:
            for block in read_pair(connection, space, pair, levels):
                add(block)

    def _delete(
        self, tx: Transaction | None, connection: Connection, space: Space, keys: Sequence[int]
    ) -> None:
        if keys:
            _note_write(tx)
            connection.exec_driver_sql(_DELETE, (space.key, array(keys)))
            self._prune(connection)

    def _prune(self, connection: Connection) -> None:
        connection.exec_driver_sql(_PRUNE, (self._max_tombstones,))


def _note_write(tx: Transaction | None) -> None:
    assert tx is not None  # `connection_of` raises for None
    with _writers_lock:
        _writers.add(tx)
