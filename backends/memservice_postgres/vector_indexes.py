"""HNSW indexes of large spaces: one per space, so that a search visits no vectors of other tenants.

A small space is searched exactly, which is fast, and has no index. When a space becomes large, the
process that notices it first builds its index in a thread, while the service runs (`CREATE INDEX
CONCURRENTLY`). Without an index, search is exact.
"""

from __future__ import annotations

import logging
import os
import threading
import time

import psycopg
from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.records import Space
from memservice_postgres.connections import ConnectionConfig, Driver, execute_directly

LARGE = 20_000
"""Minimum number of vectors in a space with an index; of large vectors fewer (`scaled`)."""
SMALL_DIMENSION = 384
"""Up to this dimension, comparing a vector costs about as much as reading its row."""
LOOK_AGAIN_SECONDS = 60.0
"""How long a process caches whether a space has an index."""
MAX_FULL, MAX_HALF = 2_000, 4_000
"""Maximum dimensions of an index of 32-bit numbers and of 16-bit numbers."""
MAX_MEMORY_MB = 2_560
"""Default of the memory for building an index. A graph that does not fit in memory is built many
times more slowly."""
LINKS = 800
"""Bytes of the graph for each vector, in addition to the vector."""

_FIND = """
    SELECT c.relname, i.indisvalid, greatest(c.reltuples, 0)::bigint
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = to_regclass('vectors') AND c.relname = ANY(%s)
"""
_OURS = r"""
    SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = to_regclass('vectors') AND c.relname LIKE 'vectors\_hnsw\_%'
"""
_ROWS = "SELECT count(*) FROM vectors WHERE space_key = %s"
_ANY = "SELECT EXISTS (SELECT 1 FROM vectors WHERE space_key = %s)"
_LOCK = 0x6D656D7376656374
"""The number of the advisory lock for building and dropping indexes, one at a time."""


def scaled(rows: int, space: Space) -> int:
    """The number of vectors of the space that are compared in the time of as many `rows` of
    `SMALL_DIMENSION`."""
    return rows * SMALL_DIMENSION // max(SMALL_DIMENSION, space.dimension)


class SpaceIndex(Struct, frozen=True):
    """The index of one space. `half`: its numbers have 16 bits."""

    space: int
    dimension: int
    half: bool
    rows: int = 0
    """The estimated number of vectors in it."""

    @property
    def name(self) -> str:
        return f"vectors_hnsw_{self.space}_{'half' if self.half else 'full'}"

    @property
    def type(self) -> str:
        return f"{'halfvec' if self.half else 'vector'}({self.dimension})"

    def megabytes(self, rows: int) -> int:
        """The memory for its graph while it is built."""
        return rows * (self.dimension * (2 if self.half else 4) + LINKS) // 1_000_000 + 1

    @property
    def definition(self) -> str:
        operators = "halfvec_ip_ops" if self.half else "vector_ip_ops"
        return (
            f"ON vectors USING hnsw ((vector::{self.type}) {operators}) WHERE space_key = "
            f"{self.space}"
        )


class SpaceIndexes:
    """Finds the indexes of spaces, cached in the process, and builds new ones."""

    def __init__(
        self,
        config: ConnectionConfig,
        log: logging.Logger,
        *,
        half: bool = False,
        large: int = LARGE,
        max_memory_mb: int = MAX_MEMORY_MB,
    ) -> None:
        self._config = config
        self._log = log
        self._half = half
        self._large = large
        self._max_memory_mb = max_memory_mb
        self._cached: dict[int, tuple[float, SpaceIndex | None]] = {}
        self._in_progress: set[tuple[int, int]] = set()

    def of(self, driver: Driver, space: Space) -> SpaceIndex | None:
        """The space's index; None if there is none. Starts to build a missing index if the space is
        large."""
        checked_at, space_index = self._cached.get(space.key, (0.0, None))
        now = time.monotonic()
        if checked_at and now - checked_at < LOOK_AGAIN_SECONDS:
            return space_index
        space_index, _ = _find(driver, space)
        self._cached[space.key] = (now, space_index)
        if space_index is None and self._possible_index(space) is not None:
            self._start(space)
        return space_index

    def build_if_large(self, space: Space) -> None:
        """Build the space's index if the space is large and has none, and drop indexes of deleted
        spaces. May take minutes."""
        possible_index, large = self._possible_index(space), scaled(self._large, space)
        settings = {
            "statement_timeout": "0",
            "lock_timeout": "0",
            "application_name": "memservice-vectors",
        }
        with self._config.connect(**settings) as driver:
            if driver.pooler:
                return  # a pooler may move the session, and so its lock, to another connection
            if not driver.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchall()[0][0]:
                return  # another process is building
            self._drop_orphans(driver)
            rows = driver.execute(_ROWS, (space.key,)).fetchall()[0][0]
            space_index, broken = _find(driver, space)
            for name in broken:
                driver.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}".encode())
            if space_index is None and possible_index is not None and rows >= large:
                started_at = time.monotonic()
                self._build(driver, possible_index, rows)
                self._log.info(
                    "vector index of space %d built in %.0f s",
                    space.key,
                    time.monotonic() - started_at,
                )
                space_index = possible_index
            # A search that found no index need not look again, and start this again, at once.
            if self._cached.get(space.key, (0.0, None))[1] != space_index:
                self._cached.pop(space.key, None)

    def _build(self, driver: Driver, index: SpaceIndex, rows: int) -> None:
        create = f"CREATE INDEX CONCURRENTLY {index.name} {index.definition}".encode()
        memory = f"{min(self._max_memory_mb, max(64, index.megabytes(rows)))}MB"
        execute_directly(driver, f"SET maintenance_work_mem = '{memory}'".encode())
        try:
            driver.execute(create)
        except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory) as error:
            # A parallel build uses shared memory, of which a container may have little. Build it in
            # one process, in its own memory.
            self._log.info(
                "vector index of space %d: %s; building it in one process",
                index.space,
                str(error).partition("\n")[0],
            )
            driver.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}".encode())
            execute_directly(driver, b"SET max_parallel_maintenance_workers = 0")
            driver.execute(create)

    def _possible_index(self, space: Space) -> SpaceIndex | None:
        half = self._half or space.dimension > MAX_FULL
        return (
            SpaceIndex(space.key, space.dimension, half)
            if space.dimension <= (MAX_HALF if half else MAX_FULL)
            else None
        )

    def _start(self, space: Space) -> None:
        mark = (os.getpid(), space.key)
        if mark not in self._in_progress:
            self._in_progress.add(mark)
            threading.Thread(
                target=self._build_in_thread,
                args=(space, mark),
                name="memservice-vectors",
                daemon=True,
            ).start()

    def _build_in_thread(self, space: Space, mark: tuple[int, int]) -> None:
        try:
            self.build_if_large(space)
        except psycopg.Error as error:
            self._log.warning(
                "the vector index of space %d could not be built: %s",
                space.key,
                str(error).partition("\n")[0],
            )
        finally:
            self._in_progress.discard(mark)

    def _drop_orphans(self, driver: Driver) -> None:
        for (name,) in driver.execute(_OURS).fetchall():
            if not driver.execute(_ANY, (int(name.split("_")[2]),)).fetchall()[0][0]:
                driver.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}".encode())


def _find(driver: Driver, space: Space) -> tuple[SpaceIndex | None, list[str]]:
    """The space's index, and the names of its unfinished indexes."""
    possible = {
        index.name: index
        for index in (SpaceIndex(space.key, space.dimension, half) for half in (False, True))
    }
    rows = driver.execute(_FIND, (list(possible),)).fetchall()
    return (
        next((replace(possible[name], rows=size) for name, valid, size in rows if valid), None),
        [name for name, valid, _ in rows if not valid],
    )
