"""The vectors that this process holds in memory: committed rows only, grown by what is new, bounded
in bytes."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sqlalchemy import Connection

from memservice.domain.records import Space
from memservice.spi.index_filter import IndexFilter
from memservice_sqlite.vector_blocks import NOTHING, Block, Levels, Partition, block_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

Pair = tuple[int, int]
"""(observer, observed); 0 for none. Rows of one pair lie together, since most questions are about
one pair."""

FETCH = 2_000
"""Rows taken from SQLite at a time."""
MAX_PAIRS = 1_000
"""More pairs than this are not listed from a `IndexFilter`, but looked up among those that
exist."""

# What block_of reads, and the row's pair.
COLUMNS = f"""
    r.key, r.row_key, coalesce(r.session_key, {NOTHING}), coalesce(r.author_key, {NOTHING}), \
r.level, coalesce(r.at, {NOTHING}),
    r.vector, r.observer_key, r.observed_key
"""
_PAIR = itemgetter(7, 8)

_MOMENT = """
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


class Moment(NamedTuple):
    """How far a view sees. Commits are in one order, so of two committed moments one is at or after
    the other in both numbers."""

    newest: int
    """The greatest vector key that was ever given out."""
    buried: int
    """The greatest tombstone key that was ever given out."""
    oldest_tombstone: int | None
    """The least tombstone key that is still kept."""

    @classmethod
    def of(cls, connection: Connection) -> Moment:
        return cls(*connection.exec_driver_sql(_MOMENT).one())


@dataclass(slots=True)
class _Held:
    """How far this process's copy of a space goes."""

    newest: int
    buried: int
    pairs: set[Pair] | None = None
    """All pairs of the space, once they were asked for."""

    def misses_tombstones(self, moment: Moment) -> bool:
        """Were tombstones pruned that this copy has not seen?"""
        oldest = moment.buried + 1 if moment.oldest_tombstone is None else moment.oldest_tombstone
        return self.buried + 1 < oldest


@dataclass(slots=True)
class Holdings:
    """What is to be searched for one query: blocks from memory, and what only the view's own
    connection can tell."""

    blocks: list[Block] = field(default_factory=list)
    missing: list[Pair] = field(default_factory=list)
    """Pairs to read from the connection, whole."""
    pairs: set[Pair] = field(default_factory=set)
    """The pairs that `blocks` stand for."""
    newest: int = 0
    buried: int = 0
    """How far the blocks go; a view that wrote sees further."""


class VectorCache:
    """Safe for threads. SQL runs under its lock, searches do not.

    AUTOINCREMENT gives the keys of a rolled-back transaction out again. So rows enter from views
    that have written no vectors (`committed`), whose keys are final; a view that has written reads
    its own rows beside what is held (`Holdings`).
    """

    def __init__(self, max_bytes: int) -> None:
        self.levels = Levels()
        self._max_bytes = max_bytes
        self._bytes = 0
        self._lock = Lock()
        self._held: dict[int, _Held] = {}
        self._partitions: OrderedDict[tuple[int, Pair], Partition] = OrderedDict()
        self._swept = 0
        """The greatest tombstone key when it was last seen to which spaces are gone."""

    @property
    def nbytes(self) -> int:
        return self._bytes

    def forget(self, space_key: int) -> None:
        """Hold nothing of a space any more. If it is still there, it is read again."""
        with self._lock:
            self._forget(space_key)

    def sweep(self, connection: Connection, moment: Moment) -> None:
        """Forget spaces of which nothing is left, where anything was deleted since the last
        time."""
        with self._lock:
            if moment.buried <= self._swept:
                return
            self._swept = moment.buried
            for space_key in list(self._held):
                if connection.exec_driver_sql(_ANY, (space_key,)).first() is None:
                    self._forget(space_key)

    def _forget(self, space_key: int) -> None:
        self._held.pop(space_key, None)
        for place in [place for place in self._partitions if place[0] == space_key]:
            self._discard(place)

    def holdings(
        self,
        connection: Connection,
        space: Space,
        moment: Moment,
        index_filter: IndexFilter,
        committed: bool,
    ) -> Holdings:
        """Blocks for the pairs that `index_filter` asks for, as of `moment` or later, loaded if
        need be."""
        with self._lock:
            held = self._held.get(space.key)
            if committed and (held is None or moment[:2] > (held.newest, held.buried)):
                held = self._refresh(connection, space, held, moment)
            if held is None or held.misses_tombstones(moment):
                return Holdings(
                    missing=wanted_pairs(index_filter, lambda: read_pairs(connection, space))
                )
            current = moment[:2] == (held.newest, held.buried)
            if current and held.pairs is None and not _lists_pairs(index_filter):
                held.pairs = read_pairs(connection, space)
            known = held.pairs if current else None
            result = Holdings(newest=held.newest, buried=held.buried)
            for pair in wanted_pairs(
                index_filter, lambda: read_pairs(connection, space) if known is None else known
            ):
                partition = self._partitions.get((space.key, pair))
                if partition is None or partition.since > moment.buried:
                    result.missing.append(pair)
                else:
                    self._partitions.move_to_end((space.key, pair))
                    result.blocks.append(partition.block())
                    result.pairs.add(pair)
            if current and result.missing:
                self._load(connection, space, held, result)
            self._evict()
            return result

    def _refresh(
        self, connection: Connection, space: Space, held: _Held | None, moment: Moment
    ) -> _Held:
        """Bring the copy of a space up to `moment` by its tombstones and new rows."""
        if held is None or held.misses_tombstones(moment):
            self._forget(space.key)
            self._held[space.key] = _Held(moment.newest, moment.buried)
            return self._held[space.key]
        if moment.buried > held.buried:
            self._bury(connection, space, held.buried, moment.buried)
        if moment.newest > held.newest:
            for pair, block in read_blocks(
                connection, _NEW, (space.key, held.newest), space.dimension, self.levels
            ):
                partition = self._partitions.get((space.key, pair))
                if partition is None and held.pairs is not None and pair not in held.pairs:
                    partition = Partition(space.dimension, moment.buried)
                if partition is not None:
                    partition.append(block)
                    self._keep((space.key, pair), partition)
                if held.pairs is not None:
                    held.pairs.add(pair)
        held.newest, held.buried = moment.newest, moment.buried
        return held

    def _bury(self, connection: Connection, space: Space, since: int, until: int) -> None:
        rows = connection.exec_driver_sql(_TOMBSTONES, (space.key, since)).all()
        for pair, deaths in groupby(rows, key=itemgetter(2, 3)):
            partition = self._partitions.get((space.key, pair))
            if partition is not None:
                keys, tombstones = np.array([death[:2] for death in deaths], np.int64).T
                partition.bury(keys, tombstones)
                if partition.dead * 2 > partition.rows:
                    self._keep((space.key, pair), partition.without_dead(until))

    def _load(self, connection: Connection, space: Space, held: _Held, result: Holdings) -> None:
        """Take missing pairs into memory, as many as fit; the others stay missing."""
        named = {"space": space.key, "pairs": json.dumps(result.missing)}
        sizes = connection.exec_driver_sql(_SIZES, named).scalars().all()
        left = self._max_bytes
        loaded: dict[Pair, Partition] = {}
        for pair, rows in zip(result.missing, sizes, strict=True):
            partition = Partition(space.dimension, held.buried, rows)
            if partition.nbytes <= left:
                left -= partition.nbytes
                loaded[pair] = partition
        for pair, partition in loaded.items():
            for block in read_pair(connection, space, pair, self.levels):
                partition.append(block)
            self._keep((space.key, pair), partition)
            result.blocks.append(partition.block())
        result.pairs.update(loaded)
        result.missing = [pair for pair in result.missing if pair not in loaded]

    def _keep(self, place: tuple[int, Pair], partition: Partition) -> None:
        """Hold a partition, or count it anew after a change."""
        self._discard(place)
        self._partitions[place] = partition
        partition.counted = partition.nbytes
        self._bytes += partition.counted

    def _discard(self, place: tuple[int, Pair]) -> None:
        partition = self._partitions.pop(place, None)
        if partition is not None:
            self._bytes -= partition.counted

    def _evict(self) -> None:
        while self._bytes > self._max_bytes:
            self._discard(next(iter(self._partitions)))


def read_blocks(
    connection: Connection, sql: str, parameters: Any, dimension: int, levels: Levels
) -> Iterator[tuple[Pair, Block]]:
    """Selected rows (`COLUMNS`), some at a time, by pair."""
    for rows in connection.exec_driver_sql(sql, parameters).partitions(FETCH):
        by_pair: dict[Pair, list[Sequence[Any]]] = {}
        for row in rows:
            by_pair.setdefault(_PAIR(row), []).append(row)
        for pair, of_pair in by_pair.items():
            yield pair, block_of(of_pair, dimension, levels)


def read_pair(connection: Connection, space: Space, pair: Pair, levels: Levels) -> Iterator[Block]:
    """A pair's rows in the order of their keys, as the connection's transaction sees them."""
    for _, block in read_blocks(connection, _OF_PAIR, (space.key, *pair), space.dimension, levels):
        yield block


def read_pairs(connection: Connection, space: Space) -> set[Pair]:
    """All pairs of a space as the connection's transaction sees it."""
    return {
        (observer, observed)
        for observer, observed in connection.exec_driver_sql(_PAIRS, (space.key,)).all()
    }


def read_since(
    connection: Connection, space: Space, holdings: Holdings, levels: Levels
) -> Iterator[Block]:
    """Rows of the held pairs that are newer than what is held."""
    for pair, block in read_blocks(
        connection, _NEW, (space.key, holdings.newest), space.dimension, levels
    ):
        if pair in holdings.pairs:
            yield block


def read_deaths_since(
    connection: Connection, space: Space, holdings: Holdings
) -> NDArray[np.int64]:
    """Keys of the space's vectors that died after what is held."""
    return np.array(
        [
            row[0]
            for row in connection.exec_driver_sql(_TOMBSTONES, (space.key, holdings.buried)).all()
        ],
        np.int64,
    )


def _lists_pairs(index_filter: IndexFilter) -> bool:
    return (
        index_filter.observers is not None
        and index_filter.observed is not None
        and len(index_filter.observers) * len(index_filter.observed) <= MAX_PAIRS
    )


def wanted_pairs(index_filter: IndexFilter, existing: Callable[[], set[Pair]]) -> list[Pair]:
    """The pairs that `index_filter` asks for, in order: listed if it names both sides, else picked
    from those that exist."""
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
