"""Vectors that this process caches in memory: those that fit a filter, bounded in bytes; or their
signatures, if large vectors do not fit.

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
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from memservice.domain.records import Space
from memservice.spi.index_filter import IndexFilter
from memservice_postgres.cached_vectors import (
    VERSION,
    CachedSignatures,
    CachedVectors,
    Matching,
    SignedRows,
)
from memservice_postgres.connections import Driver
from memservice_postgres.integers import numbers
from memservice_sql.signatures import MIN_DIMENSION
from memservice_sql.vector_blocks import Block

MIN_VECTORS = 1_000
"""Fewer vectors are compared by the database, in about the time of asking for their versions."""
MAX_FILTERS = 1_000
"""Maximum number of filters that a process remembers, with or without their vectors."""
MAX_SIGNATURES = 60_000
"""Maximum vectors of a filter whose signatures are cached. With more of them, listing their
versions after each change takes as long as a search in an index."""
UNCHANGED_SEARCHES = 8
"""Signatures are read once a filter was searched so many times in a row without a change of the
space: reading them, and listing versions, takes as long as that many searches in an index. So while
a space is written between searches, the index answers."""
IDLE_SECONDS = 300.0
"""Vectors that were not searched for this time leave the memory, as do deleted ones at each
search."""
LOOK_AGAIN_SECONDS = 60.0
"""How long the database finds the nearest vectors of a filter that has too few or too many for the
cache."""

_STATE = (
    "SELECT coalesce(bit_xor(revision), 0)::bigint FROM vector_states WHERE space_key = %(space)s"
)
_VERSIONS = f"""
    SELECT ({_STATE}), array_send(array_agg({VERSION}))
    FROM vectors r WHERE r.space_key = %(space)s {{fits}}
"""  # noqa: S608 - constants
_Key = tuple[int, IndexFilter]


class _CachedFilter:
    """The vectors that fit a filter, as of its last search. `lock` protects all of it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.used_at = 0.0
        self.skipped_until = 0.0
        """Until then the database compares these vectors."""
        self.sent = b""
        """The versions of the vectors as the database sent them."""
        self.state: int | None = None
        """The state of the space then; None if the vectors may be others."""
        self.last_state: int | None = None
        """The state of the space at the last search."""
        self.unchanged = 0
        """Searches in a row that saw that state, without the first one."""
        self.needs_signatures = False
        """Whether the vectors are known not to fit."""
        self.content: CachedVectors | CachedSignatures | None = None
        self.counted = 0
        """The bytes that the cache has counted for it."""

    @property
    def nbytes(self) -> int:
        return len(self.sent) + (0 if self.content is None else self.content.nbytes)

    def note(self, state: int) -> None:
        """Count a search that saw this state of the space."""
        self.unchanged = self.unchanged + 1 if state == self.last_state else 0
        self.last_state = state

    def snapshot(self) -> Block | SignedRows | None:
        return None if self.content is None else self.content.snapshot()


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
        read_state: Callable[[], int],
        count: Callable[[int], int] | None = None,
    ) -> Block | SignedRows | None:
        """Exactly the vectors that fit the filter, as the driver's transaction sees them, or their
        signatures; None if the database has to find the nearest. `fits` and `arguments`: the filter
        as SQL. `read_state`: the state of the space, as the transaction sees it.

        `count`, for a space with an index: the number of vectors that fit, up to a limit. Then the
        cache takes only what fits in it, since the index finds others faster than they are read
        again and again."""
        if index_filter.since is not None or index_filter.until is not None:
            return None  # another filter at each moment
        now = time.monotonic()
        cached = self._entry(space, index_filter, now)
        if cached is None:
            return None
        with cached.lock:
            if now < cached.skipped_until:
                return None
            if cached.state is not None or cached.needs_signatures:
                state = read_state()
                if state == cached.state:
                    return cached.snapshot()
                cached.note(state)
            capacity = self._capacity(space, is_indexed=count is not None)
            if count is not None and cached.content is None and not cached.needs_signatures:
                most = max(capacity)
                matching_rows = count(most + 1)
                if matching_rows > most:
                    cached.skipped_until = now + LOOK_AGAIN_SECONDS
                    return None
                cached.needs_signatures = matching_rows > capacity[0]
            if cached.needs_signatures and cached.unchanged < UNCHANGED_SEARCHES:
                return None
            versions = driver.execute(_VERSIONS.format(fits=fits).encode(), arguments, binary=True)
            state, sent = versions.fetchall()[0]
            cached.state = None  # as `sent`
            matching = Matching(driver, fits, arguments)
            is_complete = self._update(matching, cached, space, sent, capacity)
            if is_complete:
                cached.state = state
            elif cached.content is None:
                cached.skipped_until = now + LOOK_AGAIN_SECONDS
            cached.needs_signatures = isinstance(cached.content, CachedSignatures)
            size = cached.nbytes
            snapshot = cached.snapshot() if is_complete else None
        self._note_size((space.key, index_filter), cached, size)
        return snapshot

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
                cached = self._filters[key] = _CachedFilter()
                if len(self._filters) > MAX_FILTERS:
                    self._discard(next(iter(self._filters)))
            cached.used_at = now
            self._filters.move_to_end(key)
            return None if is_new else cached

    def _capacity(self, space: Space, *, is_indexed: bool) -> tuple[int, int]:
        """The maximum numbers of vectors of a filter, and of signatures in place of vectors."""
        if not is_indexed:
            return self._max_bytes // (4 * space.dimension), 0
        free_bytes = max(0, self._max_bytes - self._bytes)
        is_large = space.dimension >= MIN_DIMENSION
        signatures = min(MAX_SIGNATURES, 8 * free_bytes // space.dimension) if is_large else 0
        return free_bytes // (4 * space.dimension), signatures

    def _update(
        self,
        matching: Matching,
        cached: _CachedFilter,
        space: Space,
        sent: bytes | None,
        capacity: tuple[int, int],
    ) -> bool:
        """Read what is missing of the vectors with the versions that were sent. Returns whether all
        are there now. If not, and nothing is cached, they are too few or too many, or the database
        has changed between two statements outside a transaction."""
        if sent is not None and sent == cached.sent:
            return True
        cached.sent = b""  # it is not true of the vectors before all are read
        content, cached.content = cached.content, None
        versions = np.empty(0, np.int64) if sent is None else numbers(sent)
        if len(versions) < self._min_vectors:
            return False
        if isinstance(content, CachedVectors):
            if len(versions) * space.dimension * 4 > self._max_bytes:
                return False
        elif content is None and len(versions) <= capacity[0]:
            content = CachedVectors(space.dimension, len(versions))
        elif len(versions) > (capacity[1] if content is None else MAX_SIGNATURES):
            return False
        content = content or CachedSignatures(matching.mean())
        is_complete = content.update(matching, versions)
        if is_complete or isinstance(content, CachedSignatures):
            cached.content = content
        if sent is not None and is_complete:
            cached.sent = sent
        return is_complete

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
