"""HNSW indexes of large spaces, one per space, so that no tenant's vectors lie in another's way.

A small space is searched exactly, which is fast, and needs none. Once a space is large its index is
built beside the running service (`CREATE INDEX CONCURRENTLY`), in a thread of whichever process
noticed; until it is there, and whenever it is not, search is exact.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from dataclasses import dataclass

import psycopg

from memservice.domain.records import Space
from memservice_postgres.connections import ConnectionConfig, Driver, execute_pipelined

LARGE = 20_000
"""Vectors from which on a space has an index."""
LOOK_AGAIN_SECONDS = 60.0
"""How long a process goes by what it knows of a space's index."""
MAX_FULL, MAX_HALF = 2_000, 4_000
"""Dimensions that an index of 32-bit and of 16-bit numbers can have."""
MAX_MEMORY_MB = 2_560
"""For building an index, unless the settings say otherwise: a graph that does not fit is built many
times slower."""
LINKS = 800
"""Bytes that a graph needs for each vector beside the vector."""

_FIND = """
    SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = to_regclass('vectors') AND c.relname = ANY(%s)
"""
_OURS = r"""
    SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = to_regclass('vectors') AND c.relname LIKE 'vectors\_hnsw\_%'
"""
_ROWS = "SELECT count(*) FROM vectors WHERE space_key = %s"
_ANY = "SELECT EXISTS (SELECT 1 FROM vectors WHERE space_key = %s)"
_LOCK = 0x6D656D7376656374
"""Of the advisory lock under which indexes are built and dropped, one at a time."""


@dataclass(frozen=True, slots=True)
class SpaceIndex:
    """The index of one space: of which type its numbers are."""

    space: int
    dimension: int
    half: bool

    @property
    def name(self) -> str:
        return f"vectors_hnsw_{self.space}_{'half' if self.half else 'full'}"

    @property
    def type(self) -> str:
        return f"{'halfvec' if self.half else 'vector'}({self.dimension})"

    def megabytes(self, rows: int) -> int:
        """What its graph takes while it is built."""
        return rows * (self.dimension * (2 if self.half else 4) + LINKS) // 1_000_000 + 1

    @property
    def definition(self) -> str:
        operators = "halfvec_ip_ops" if self.half else "vector_ip_ops"
        return (
            f"ON vectors USING hnsw ((vector::{self.type}) {operators}) WHERE space_key = "
            f"{self.space}"
        )


class SpaceIndexes:
    """Which spaces have an index, as one process knows, and the building of new ones."""

    def __init__(
        self,
        config: ConnectionConfig,
        log: logging.Logger,
        *,
        half: bool = False,
        large: int = LARGE,
        most_memory_mb: int = MAX_MEMORY_MB,
    ) -> None:
        self._place = config
        self._log = log
        self._half = half
        self._large = large
        self._most_memory_mb = most_memory_mb
        self._known: dict[int, tuple[float, SpaceIndex | None]] = {}
        self._busy: set[tuple[int, int]] = set()

    def of(self, driver: Driver, space: Space) -> SpaceIndex | None:
        """The index by which the space can be searched, if there is one. Has one built if there
        should be."""
        looked, space_index = self._known.get(space.key, (0.0, None))
        now = time.monotonic()
        if looked and now - looked < LOOK_AGAIN_SECONDS:
            return space_index
        space_index, _ = _find(driver, space)
        self._known[space.key] = (now, space_index)
        if space_index is None and self._fitting(space) is not None:
            self._start(space)
        return space_index

    def keep(self, space: Space) -> None:
        """Build the space's index if it is large and has none, and drop those of spaces that are
        gone. May take minutes."""
        wanted = self._fitting(space)
        settings = {
            "statement_timeout": "0",
            "lock_timeout": "0",
            "application_name": "memservice-vectors",
        }
        with self._place.connect(**settings) as driver:
            if driver.pooler:
                return  # it is not known on which connection the lock would be, nor for how long
            if not driver.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchall()[0][0]:
                return  # another process is at it
            self._drop_orphans(driver)
            rows = driver.execute(_ROWS, (space.key,)).fetchall()[0][0]
            space_index, broken = _find(driver, space)
            for name in broken:
                driver.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}".encode())
            if space_index is None and wanted is not None and rows >= self._large:
                began = time.monotonic()
                self._build(driver, wanted, rows)
                self._log.info(
                    "vector index of space %d built in %.0f s", space.key, time.monotonic() - began
                )
        self._known.pop(space.key, None)

    def _build(self, driver: Driver, index: SpaceIndex, rows: int) -> None:
        create = f"CREATE INDEX CONCURRENTLY {index.name} {index.definition}".encode()
        memory = f"{min(self._most_memory_mb, max(64, index.megabytes(rows)))}MB"
        execute_pipelined(driver, f"SET maintenance_work_mem = '{memory}'".encode())
        try:
            driver.execute(create)
        except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory) as error:
            # Several processes build it in shared memory, of which a container may have little:
            # then one does, in its own.
            self._log.info(
                "vector index of space %d: %s; building it in one process",
                index.space,
                str(error).partition("\n")[0],
            )
            driver.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}".encode())
            execute_pipelined(driver, b"SET max_parallel_maintenance_workers = 0")
            driver.execute(create)

    def _fitting(self, space: Space) -> SpaceIndex | None:
        half = self._half or space.dimension > MAX_FULL
        return (
            SpaceIndex(space.key, space.dimension, half)
            if space.dimension <= (MAX_HALF if half else MAX_FULL)
            else None
        )

    def _start(self, space: Space) -> None:
        mark = (os.getpid(), space.key)
        if mark not in self._busy:
            self._busy.add(mark)
            threading.Thread(
                target=self._keep, args=(space, mark), name="memservice-vectors", daemon=True
            ).start()

    def _keep(self, space: Space, mark: tuple[int, int]) -> None:
        try:
            self.keep(space)
        except psycopg.Error as error:
            self._log.warning(
                "the vector index of space %d could not be built: %s",
                space.key,
                str(error).partition("\n")[0],
            )
        finally:
            self._busy.discard(mark)

    def _drop_orphans(self, driver: Driver) -> None:
        for (name,) in driver.execute(_OURS).fetchall():
            if not driver.execute(_ANY, (int(name.split("_")[2]),)).fetchall()[0][0]:
                driver.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}".encode())


def _find(driver: Driver, space: Space) -> tuple[SpaceIndex | None, list[str]]:
    """The space's index, and the names of those that were not finished."""
    possible = {
        index.name: index
        for index in (SpaceIndex(space.key, space.dimension, half) for half in (False, True))
    }
    found = driver.execute(_FIND, (list(possible),)).fetchall()
    return next((possible[name] for name, valid in found if valid), None), [
        name for name, valid in found if not valid
    ]
