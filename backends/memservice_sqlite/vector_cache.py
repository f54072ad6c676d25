"""Vectors that this process caches in memory: committed rows only, extended by new rows, bounded in
bytes."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, product
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct, field
from sqlalchemy import Connection

from memservice.domain.records import Space
from memservice.spi.index_filter import IndexFilter
from memservice_sql.vector_blocks import Block
from memservice_sqlite.vector_blocks import NULL, Levels, Partition, block_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

Pair = tuple[int, int]
"""(observer, observed); 0 for none. Rows of one pair are stored together, since most queries are
about one pair."""

FETCH_SIZE = 2_000
"""Rows fetched from SQLite at a time."""
MAX_PAIRS = 1_000
"""Maximum number of pairs listed from an `IndexFilter`. For more, the existing pairs are
filtered."""

# The columns that `block_of` reads, and the row's pair.
COLUMNS = f"""
    r.key, r.row_key, coalesce(r.session_key, {NULL}), coalesce(r.author_key, {NULL}), \
r.level, coalesce(r.at, {NULL}),
    r.vector, r.observer_key, r.observed_key
"""
_PAIR = itemgetter(7, 8)

_VERSION = """
    SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'vectors'), 0),
           coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'vector_tombstones'), 0),
           (SELECT min(key) FROM vector_tombstones)
"""
_TOMBSTONES = """
    SELECT vector_key, key, observer_key, observed_key FROM vector_tombstones
    WHERE space_key = ? AND key > ? ORDER BY observer_key, observed_key, vector_key
"""
_NEW = (
    f"SELECT {COLUMNS} FROM vectors r INDEXED BY vectors_space WHERE r.space_key = ? AND r.key "  # noqa: S608
    "> ? ORDER BY r.key"
)
_ANY = "SELECT 1 FROM vectors INDEXED BY vectors_space WHERE space_key = ? LIMIT 1"
_PAIRS = (
    "SELECT DISTINCT observer_key, observed_key FROM vectors INDEXED BY vectors_pair WHERE "
    "space_key = ?"
)
_SIZES = """
    SELECT (
        SELECT count(*) FROM vectors r
        WHERE r.space_key = :space AND r.observer_key = json_extract(wanted.value, '$[0]')
        AND r.observed_key = json_extract(wanted.value, '$[1]')
    ) FROM json_each(:pairs) wanted ORDER BY wanted.key
"""
_OF_PAIR = f"""
    SELECT {COLUMNS} FROM vectors r INDEXED BY vectors_pair
    WHERE r.space_key = ? AND r.observer_key = ? AND r.observed_key = ? ORDER BY r.key
"""  # noqa: S608 - two constants


class Version(NamedTuple):
    """The version of the data that a transaction sees. Commits have one order, so for any two
    committed versions, both numbers of one are greater than or equal to those of the other."""

    newest: int
    """The greatest vector key that was ever assigned."""
    deleted: int
    """The greatest tombstone key that was ever assigned."""
    oldest_tombstone: int | None
    """The least tombstone key that is still stored."""

    @classmethod
    def of(cls, connection: Connection) -> Version:
        return cls(*connection.exec_driver_sql(_VERSION).one())


class _CachedSpace(Struct):
    """The version of this process's copy of a space."""

    newest: int
    deleted: int
    pairs: set[Pair] | None = None
    """All pairs of the space, once a query needed them."""

    def misses_tombstones(self, version: Version) -> bool:
        """Whether tombstones were pruned that this copy has not applied."""
        oldest = (
            version.deleted + 1 if version.oldest_tombstone is None else version.oldest_tombstone
        )
        return self.deleted + 1 < oldest


class CacheResult(Struct):
    """The data for one query: blocks from memory, and the pairs to read from the connection."""

    blocks: list[Block] = field(default_factory=list)
    missing: list[Pair] = field(default_factory=list)
    """Pairs to read from the connection, with all their rows."""
    pairs: set[Pair] = field(default_factory=set)
    """The pairs of `blocks`."""
    newest: int = 0
    deleted: int = 0
    """The version of the blocks. A transaction that wrote sees a later one."""


class VectorCache:
    """Safe for threads. SQL runs under its lock, searches do not.

    AUTOINCREMENT assigns the keys of a rolled-back transaction again. So rows are cached only from
    transactions that have written no vectors (`committed`), whose keys are final. A transaction
    that has written reads its own rows in addition to the cached ones (`CacheResult`).
    """

    def __init__(self, max_bytes: int) -> None:
        self.levels = Levels()
        self._max_bytes = max_bytes
        self._bytes = 0
        self._lock = Lock()
        self._spaces: dict[int, _CachedSpace] = {}
        self._partitions: OrderedDict[tuple[int, Pair], Partition] = OrderedDict()
        self._swept = 0
        """The greatest tombstone key at the last `sweep`."""

    @property
    def nbytes(self) -> int:
        return self._bytes

    def drop_space(self, space_key: int) -> None:
        """Remove a space from the cache. If it still exists, the next query reads it again."""
        with self._lock:
            self._drop_space(space_key)

    def sweep(self, connection: Connection, version: Version) -> None:
        """Remove empty spaces from the cache, if anything was deleted since the last call."""
        with self._lock:
            if version.deleted <= self._swept:
                return
            self._swept = version.deleted
            for space_key in list(self._spaces):
                if connection.exec_driver_sql(_ANY, (space_key,)).first() is None:
                    self._drop_space(space_key)

    def _drop_space(self, space_key: int) -> None:
        self._spaces.pop(space_key, None)
        for partition_key in [
            partition_key for partition_key in self._partitions if partition_key[0] == space_key
        ]:
            self._discard(partition_key)

    def lookup(
        self,
        connection: Connection,
        space: Space,
        version: Version,
        index_filter: IndexFilter,
        committed: bool,
    ) -> CacheResult:
        """Blocks for the pairs that `index_filter` selects, as of `version` or later. Loads missing
        pairs if possible."""
        with self._lock:
            cached = self._spaces.get(space.key)
            if committed and (cached is None or version[:2] > (cached.newest, cached.deleted)):
                try:
                    cached = self._refresh(connection, space, cached, version)
                except BaseException:
                    # It may have added some of the new rows, which the next one would add again.
                    self._drop_space(space.key)
                    raise
            if cached is None or cached.misses_tombstones(version):
                return CacheResult(
                    missing=selected_pairs(index_filter, lambda: read_pairs(connection, space))
                )
            current = version[:2] == (cached.newest, cached.deleted)
            if current and cached.pairs is None and not _lists_pairs(index_filter):
                cached.pairs = read_pairs(connection, space)
            known_pairs = cached.pairs if current else None
            result = CacheResult(newest=cached.newest, deleted=cached.deleted)
            for pair in selected_pairs(
                index_filter,
                lambda: read_pairs(connection, space) if known_pairs is None else known_pairs,
            ):
                partition = self._partitions.get((space.key, pair))
                if partition is None or partition.since > version.deleted:
                    result.missing.append(pair)
                else:
                    self._partitions.move_to_end((space.key, pair))
                    result.blocks.append(partition.block())
                    result.pairs.add(pair)
            if current and result.missing:
                self._load(connection, space, cached, result)
            self._evict()
            return result

    def _refresh(
        self, connection: Connection, space: Space, cached: _CachedSpace | None, version: Version
    ) -> _CachedSpace:
        """Bring the copy of a space up to `version`, by its tombstones and new rows."""
        if cached is None or cached.misses_tombstones(version):
            self._drop_space(space.key)
            self._spaces[space.key] = _CachedSpace(version.newest, version.deleted)
            return self._spaces[space.key]
        if version.deleted > cached.deleted:
            self._mark_deleted(connection, space, cached.deleted, version.deleted)
        if version.newest > cached.newest:
            for pair, block in read_blocks(
                connection, _NEW, (space.key, cached.newest), space.dimension, self.levels
            ):
                partition = self._partitions.get((space.key, pair))
                if partition is None and cached.pairs is not None and pair not in cached.pairs:
                    partition = Partition(space.dimension, version.deleted)
                if partition is not None:
                    partition.append(block)
                    self._store((space.key, pair), partition)
                if cached.pairs is not None:
                    cached.pairs.add(pair)
        cached.newest, cached.deleted = version.newest, version.deleted
        return cached

    def _mark_deleted(self, connection: Connection, space: Space, since: int, until: int) -> None:
        rows = connection.exec_driver_sql(_TOMBSTONES, (space.key, since)).all()
        for pair, tombstone_rows in groupby(rows, key=itemgetter(2, 3)):
            partition = self._partitions.get((space.key, pair))
            if partition is not None:
                keys, tombstones = np.array([row[:2] for row in tombstone_rows], np.int64).T
                partition.mark_deleted(keys, tombstones)
                if partition.deleted_rows * 2 > partition.rows:
                    self._store((space.key, pair), partition.without_deleted(until))

    def _load(
        self, connection: Connection, space: Space, cached: _CachedSpace, result: CacheResult
    ) -> None:
        """Load as many missing pairs as fit in the cache; the others stay missing."""
        arguments = {"space": space.key, "pairs": json.dumps(result.missing)}
        sizes = connection.exec_driver_sql(_SIZES, arguments).scalars().all()
        free_bytes = self._max_bytes
        loaded: dict[Pair, Partition] = {}
        for pair, rows in zip(result.missing, sizes, strict=True):
            partition = Partition(space.dimension, cached.deleted, rows)
            if partition.nbytes <= free_bytes:
                free_bytes -= partition.nbytes
                loaded[pair] = partition
        for pair, partition in loaded.items():
            for block in read_pair(connection, space, pair, self.levels):
                partition.append(block)
            self._store((space.key, pair), partition)
            result.blocks.append(partition.block())
        result.pairs.update(loaded)
        result.missing = [pair for pair in result.missing if pair not in loaded]

    def _store(self, partition_key: tuple[int, Pair], partition: Partition) -> None:
        """Store a partition, or update the size of one that has changed."""
        self._discard(partition_key)
        self._partitions[partition_key] = partition
        partition.counted = partition.nbytes
        self._bytes += partition.counted

    def _discard(self, partition_key: tuple[int, Pair]) -> None:
        partition = self._partitions.pop(partition_key, None)
        if partition is not None:
            self._bytes -= partition.counted

    def _evict(self) -> None:
        while self._bytes > self._max_bytes:
            self._discard(next(iter(self._partitions)))


def read_blocks(
    connection: Connection, sql: str, parameters: Any, dimension: int, levels: Levels
) -> Iterator[tuple[Pair, Block]]:
    """Selected rows (`COLUMNS`) by pair, `FETCH_SIZE` rows at a time."""
    for rows in connection.exec_driver_sql(sql, parameters).partitions(FETCH_SIZE):
        by_pair: dict[Pair, list[Sequence[Any]]] = {}
        for row in rows:
            by_pair.setdefault(_PAIR(row), []).append(row)
        for pair, of_pair in by_pair.items():
            yield pair, block_of(of_pair, dimension, levels)


def read_pair(connection: Connection, space: Space, pair: Pair, levels: Levels) -> Iterator[Block]:
    """A pair's rows by ascending key, as the connection's transaction sees them."""
    for _, block in read_blocks(connection, _OF_PAIR, (space.key, *pair), space.dimension, levels):
        yield block


def read_pairs(connection: Connection, space: Space) -> set[Pair]:
    """All pairs of a space as the connection's transaction sees it."""
    return {
        (observer, observed)
        for observer, observed in connection.exec_driver_sql(_PAIRS, (space.key,)).all()
    }


def read_since(
    connection: Connection, space: Space, result: CacheResult, levels: Levels
) -> Iterator[Block]:
    """Rows of the cached pairs that are newer than the cache."""
    for pair, block in read_blocks(
        connection, _NEW, (space.key, result.newest), space.dimension, levels
    ):
        if pair in result.pairs:
            yield block


def read_deletions_since(
    connection: Connection, space: Space, result: CacheResult
) -> NDArray[np.int64]:
    """Keys of the space's vectors that were deleted after the cached version."""
    return np.array(
        [
            row[0]
            for row in connection.exec_driver_sql(_TOMBSTONES, (space.key, result.deleted)).all()
        ],
        np.int64,
    )


def _lists_pairs(index_filter: IndexFilter) -> bool:
    return (
        index_filter.observers is not None
        and index_filter.observed is not None
        and len(index_filter.observers) * len(index_filter.observed) <= MAX_PAIRS
    )


def selected_pairs(index_filter: IndexFilter, existing: Callable[[], set[Pair]]) -> list[Pair]:
    """The pairs that `index_filter` selects, in order: all combinations if it names both sides,
    else those that exist."""
    if (
        index_filter.observers is not None
        and index_filter.observed is not None
        and _lists_pairs(index_filter)
    ):
        return sorted(set(product(index_filter.observers, index_filter.observed)))
    observer_keys = None if index_filter.observers is None else set(index_filter.observers)
    observed = None if index_filter.observed is None else set(index_filter.observed)
    return sorted(
        pair
        for pair in existing()
        if (observer_keys is None or pair[0] in observer_keys)
        and (observed is None or pair[1] in observed)
    )
