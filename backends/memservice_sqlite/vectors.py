"""Vectors in SQLite: BLOBs in the rows' own transaction, searched exactly from matrices that each
process keeps.

Any number of threads and processes may use one file: what a process keeps is only ever brought
forward to what a view has seen (`memservice_sqlite.vector_cache`), by the rows and tombstones that
are newer, never read again as a whole.
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
from memservice_sqlite.narrowing import FITS, array, connection_of, micros, parameters
from memservice_sqlite.vector_blocks import KEY, Block, Nearest, mask_of
from memservice_sqlite.vector_cache import (
    COLUMNS,
    Moment,
    VectorCache,
    read_blocks,
    read_deaths_since,
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

# Views whose transaction has written vectors, by whichever index object: what they see may yet be
# rolled back.
_wrote: WeakSet[Transaction] = WeakSet()
_wrote_lock = Lock()


class SqliteVectorIndex:
    """The `VectorIndex` of the SQLite storage. Safe for threads and processes.

    A process keeps up to `max_cache_bytes` of vectors in memory, pairs of (observer, observed) that
    were asked for last; a pair that is larger is read from the file at each query. The last
    `tombstones_kept` deletions are kept for the other processes; one that missed more than that
    reads its spaces anew.
    """

    capabilities = frozenset({Capability.TRANSACTIONAL})

    def __init__(self, max_cache_bytes: int = 256 * 2**20, tombstones_kept: int = 10_000) -> None:
        self._cache = VectorCache(max_cache_bytes)
        self._tombstones_kept = tombstones_kept

    @property
    def cached_bytes(self) -> int:
        return self._cache.nbytes

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
        """Store vectors, replacing those of the same rows. A row whose vector is zero has none from
        then on.

        Raises ValueError for another dimension than the space's, and for numbers that are not
        finite.
        """
        connection = connection_of(tx)
        unique = {row.key: (row, checked(space, row.vector)) for row in rows}
        self._delete(tx, connection, space, list(unique))
        added = [
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
        if added:
            connection.exec_driver_sql(_ADD, added)

    def delete(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> None:
        self._delete(tx, connection_of(tx), space, keys)

    def drop(self, tx: Transaction | None, space: Space) -> None:
        connection = connection_of(tx)
        _note_write(tx)
        connection.exec_driver_sql(_DROP, (space.key,))
        self._prune(connection)
        self._cache.forget(space.key)

    def fetch(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> dict[int, Vector]:
        found = (
            connection_of(tx)
            .exec_driver_sql(_FETCH, {"space": space.key, "rows": array(set(keys))})
            .all()
        )
        return {key: np.frombuffer(stored, "<f4").astype(np.float32) for key, stored in found}

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
        """As the protocol says. A zero vector is near to nothing. Raises ValueError as `upsert`
        does."""
        connection = connection_of(tx)
        asked = checked(space, vector)
        if k <= 0 or not asked.any():
            return []
        nearest = Nearest(asked, k)
        if ids is not None:
            named = parameters(index_filter) | {"space": space.key, "rows": array(set(ids))}
            for _, block in read_blocks(
                connection, _OF_ROWS, named, space.dimension, self._cache.levels
            ):
                nearest.offer(block, np.ones(len(block.facts), np.bool_))
            return nearest.hits()
        with _wrote_lock:
            committed = tx not in _wrote
        self._search(connection, space, nearest, index_filter, committed)
        return nearest.hits()

    def sweep(self, tx: Transaction) -> None:
        """Let go of what is held in memory of spaces that are gone, by whichever process. Cheap
        where nothing was deleted."""
        connection = connection_of(tx)
        self._cache.sweep(connection, Moment.of(connection))

    def _search(
        self,
        connection: Connection,
        space: Space,
        nearest: Nearest,
        index_filter: IndexFilter,
        committed: bool,
    ) -> None:
        moment = Moment.of(connection)
        levels = self._cache.levels
        holdings = self._cache.holdings(connection, space, moment, index_filter, committed)

        def offer(block: Block) -> None:
            nearest.offer(
                block, mask_of(block.facts, index_filter, levels, moment.newest, moment.buried)
            )

        # Only a view that wrote can see further than what is held.
        if moment.buried > holdings.buried and holdings.blocks:
            deaths = read_deaths_since(connection, space, holdings)
            for block in holdings.blocks:
                alive = ~np.isin(block.facts[:, KEY], deaths)
                nearest.offer(
                    block,
                    mask_of(block.facts, index_filter, levels, moment.newest, moment.buried)
                    & alive,
                )
        else:
            for block in holdings.blocks:
                offer(block)
        if moment.newest > holdings.newest and holdings.blocks:
            for block in read_since(connection, space, holdings, levels):
                offer(block)
        for pair in holdings.missing:
            for block in read_pair(connection, space, pair, levels):
                offer(block)

    def _delete(
        self, tx: Transaction | None, connection: Connection, space: Space, keys: Sequence[int]
    ) -> None:
        if keys:
            _note_write(tx)
            connection.exec_driver_sql(_DELETE, (space.key, array(keys)))
            self._prune(connection)

    def _prune(self, connection: Connection) -> None:
        connection.exec_driver_sql(_PRUNE, (self._tombstones_kept,))


def _note_write(tx: Transaction | None) -> None:
    assert tx is not None  # `connection_of` has refused it
    with _wrote_lock:
        _wrote.add(tx)
