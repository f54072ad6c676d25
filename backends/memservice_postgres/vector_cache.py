"""Vectors that this process caches in memory: those that fit a filter, bounded in bytes.

The version of a row changes whenever the row is written (`memservice_postgres.vector_schema`). A
search asks the database for the versions of the rows that fit, as its own transaction sees them,
which an index answers without reading a row. So the database alone decides which vectors are
compared, and the cache is no more than their content: concurrent commits, rollbacks, deletions and
replicas need no other rule. Each change of vectors gives their space another random state, in the
same transaction; while the state is the same, so are the versions, and they are not listed again.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from memservice.domain.records import Space
from memservice.spi.index_filter import IndexFilter
from memservice_postgres.connections import Driver
from memservice_postgres.integers import numbers
from memservice_postgres.reals import vector_of
from memservice_sql.vector_blocks import KEY, ROW, Block, GrowingBlock

if TYPE_CHECKING:
    from memservice_sql.vector_blocks import Integers

MIN_VECTORS = 1_000
"""Fewer vectors are compared by the database, in about the time of asking for their versions."""
FETCH_SIZE = 2_000
"""Vectors fetched from the database at a time."""
MAX_FILTERS = 1_000
"""Maximum number of filters that a process remembers, with or without their vectors."""
IDLE_SECONDS = 300.0
"""Vectors that were not searched for this time leave the memory, as do deleted ones at each
search."""
LOOK_AGAIN_SECONDS = 60.0
"""How long the database finds the nearest vectors of a filter that has too few or too many for the
cache."""

_VERSION = "coalesce(r.version, -r.row_key)"
_STATE = (
    "SELECT coalesce(bit_xor(revision), 0)::bigint FROM vector_states WHERE space_key = %(space)s"
)
_VERSIONS = f"""
    SELECT ({_STATE}), array_send(array_agg({_VERSION}))
    FROM vectors r WHERE r.space_key = %(space)s {{fits}}
"""  # noqa: S608 - constants
# The array is computed first, from the index alone, so that the rows are read by their keys.
_VECTORS = f"""
    SELECT {_VERSION}, r.row_key, vector_send(r.vector) FROM vectors r
    WHERE r.space_key = %(space)s AND r.row_key = ANY(ARRAY(
        SELECT r.row_key FROM vectors r WHERE r.space_key = %(space)s {{fits}}
        AND {_VERSION} = ANY(%(versions)s)
    ))
"""  # noqa: S608 - constants

_Key = tuple[int, IndexFilter]


class _CachedFilter:
    """The vectors that fit a filter, as of its last search. `lock` protects all of it."""

    def __init__(self, dimension: int) -> None:
        self.lock = Lock()
        self.used_at = 0.0
        self.skipped_until = 0.0
        """Until then the database compares these vectors."""
        self.sent = b""
        """The versions of the vectors as the database sent them."""
        self.state: int | None = None
        """The state of the space then; None if the vectors may be others."""
        self.vectors = GrowingBlock(dimension, ROW + 1)
        self.counted = 0
        """The bytes that the cache has counted for it."""

    def clear(self) -> None:
        self.sent, self.state, self.vectors = (
            b"",
            None,
            GrowingBlock(len(self.vectors.block().matrix), ROW + 1),
        )


class VectorCache:
    """Safe for threads. The vectors of a filter are cached when it is searched a second time, if
    they are at least `min_vectors`."""

    def __init__(self, max_bytes: int, min_vectors: int = MIN_VECTORS) -> None:
        self._max_bytes = max_bytes
        self._min_vectors = min_vectors
        self._lock = Lock()
        self._filters: OrderedDict[_Key, _CachedFilter] = OrderedDict()
        self._bytes = 0

    @property
    def nbytes(self) -> int:
        return self._bytes

    def lookup(
        self,
        driver: Driver,
        space: Space,
        index_filter: IndexFilter,
        fits: str,
        arguments: dict[str, Any],
        count: Callable[[int], int] | None = None,
    ) -> Block | None:
        """Exactly the vectors that fit the filter, as the driver's transaction sees them; None if
        the database has to find the nearest. `fits` and `arguments`: the filter as SQL.

        `count`, for a space with an index: the number of vectors that fit, up to a limit. Then the
        cache takes only vectors for which it has room, since the index finds others faster than
        they are read again and again."""
        if index_filter.since is not None or index_filter.until is not None:
            return None  # another filter at each moment
        now = time.monotonic()
        cached = self._entry(space, index_filter, now)
        if cached is None:
            return None
        with cached.lock:
            if now < cached.skipped_until:
                return None
            if cached.state is not None:
                state = driver.execute(_STATE, arguments).fetchall()[0][0]
                if state == cached.state:
                    return cached.vectors.block()
            if count is not None and not cached.vectors.rows:
                remaining = max(0, self._max_bytes - self._bytes) // (4 * space.dimension)
                if count(remaining + 1) > remaining:
                    cached.skipped_until = now + LOOK_AGAIN_SECONDS
                    return None
            versions = driver.execute(_VERSIONS.format(fits=fits).encode(), arguments, binary=True)
            state, sent = versions.fetchall()[0]
            cached.state = None  # as `sent`
            block = self._current(driver, cached, sent, fits, arguments)
            if block is None:
                cached.clear()
                cached.skipped_until = now + LOOK_AGAIN_SECONDS
            else:
                cached.state = state
            size = cached.vectors.nbytes + len(cached.sent)
        self._note_size((space.key, index_filter), cached, size)
        return block

    def drop_space(self, space_key: int) -> None:
        with self._lock:
            for key in [key for key in self._filters if key[0] == space_key]:
                self._discard(key)

    def sweep(self) -> None:
        """Free the memory of filters that were not searched lately."""
        with self._lock:
            self._drop_idle(time.monotonic())

    def _entry(self, space: Space, index_filter: IndexFilter, now: float) -> _CachedFilter | None:
        """The entry of a filter that was searched before, lately."""
        key = space.key, index_filter
        with self._lock:
            self._drop_idle(now)
            cached = self._filters.get(key)
            is_new = cached is None
            if cached is None:
                cached = self._filters[key] = _CachedFilter(space.dimension)
                if len(self._filters) > MAX_FILTERS:
                    self._discard(next(iter(self._filters)))
            cached.used_at = now
            self._filters.move_to_end(key)
            return None if is_new else cached

    def _current(
        self,
        driver: Driver,
        cached: _CachedFilter,
        sent: bytes | None,
        fits: str,
        arguments: dict[str, Any],
    ) -> Block | None:
        """The vectors with the versions that were sent; None if they are too few or too many, or if
        the database has changed between two statements outside a transaction."""
        if sent is None:
            return None
        if sent == cached.sent:
            return cached.vectors.block()
        versions = numbers(sent)
        dimension = len(cached.vectors.block().matrix)
        if len(versions) < self._min_vectors or len(versions) * dimension * 4 > self._max_bytes:
            return None
        cached.sent = b""  # it is not true of the vectors before all are read
        facts = cached.vectors.block().facts
        is_current = np.isin(facts[:, KEY], versions)
        if not is_current.all():
            cached.vectors = _without(cached.vectors.block(), ~is_current)
            facts = cached.vectors.block().facts
        missing = versions[~np.isin(versions, facts[:, KEY])]
        if not len(facts):
            cached.vectors = GrowingBlock(dimension, ROW + 1, len(versions))
        for block in _read(driver, missing, fits, arguments):
            cached.vectors.append(block)
        if cached.vectors.rows != len(versions):
            return None
        cached.sent = sent
        return cached.vectors.block()

    def _note_size(self, key: _Key, cached: _CachedFilter, size: int) -> None:
        with self._lock:
            if self._filters.get(key) is not cached:
                return  # it was dropped meanwhile
            self._bytes += size - cached.counted
            cached.counted = size
            while self._bytes > self._max_bytes:
                self._discard(next(iter(self._filters)))

    def _drop_idle(self, now: float) -> None:
        while self._filters:
            oldest, cached = next(iter(self._filters.items()))
            if now - cached.used_at < IDLE_SECONDS:
                return
            self._discard(oldest)

    def _discard(self, key: _Key) -> None:
        self._bytes -= self._filters.pop(key).counted


def _read(
    driver: Driver, missing: Integers, fits: str, arguments: dict[str, Any]
) -> Iterator[Block]:
    sql = _VECTORS.format(fits=fits).encode()
    for start in range(0, len(missing), FETCH_SIZE):
        chunk = missing[start : start + FETCH_SIZE].tolist()
        rows = driver.execute(sql, {**arguments, "versions": chunk}, binary=True).fetchall()
        if rows:
            yield _block_of(rows)


def _block_of(rows: Sequence[tuple[int, int, bytes]]) -> Block:
    facts = np.array([row[:2] for row in rows], np.int64)
    return Block(facts, np.stack([vector_of(row[2]) for row in rows], axis=1))


def _without(block: Block, excluded: Any) -> GrowingBlock:
    """A copy without these rows, so that nothing of them stays in memory."""
    copy = GrowingBlock(len(block.matrix), ROW + 1)
    copy.append(Block(block.facts[~excluded], block.matrix[:, ~excluded]))
    return copy
