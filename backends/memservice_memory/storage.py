"""The storage: one snapshot that readers see. Each commit replaces it as a whole."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from memservice.domain.errors import Unavailable
from memservice.spi.base import BaseStorage
from memservice.spi.capabilities import Capability
from memservice.spi.storage import Transaction
from memservice_memory.indexes import MemoryTextIndex, MemoryVectorIndex
from memservice_memory.rows import MemoryRows
from memservice_memory.tables import Snapshot

REVISION = "memory"
"""The schema version. There is only one: the records themselves."""


class MemoryStorage(BaseStorage):
    """One writer at a time; readers never wait. A write waits at most `lock_seconds` for the lock.

    A subclass sets `rows_type` or `transaction_type` to use other rows or repositories.
    """

    name = "memory"
    capabilities: frozenset[Capability] = frozenset()
    rows_type: type[MemoryRows] = MemoryRows
    transaction_type: type[Transaction] = Transaction

    def __init__(self, lock_seconds: float = 30.0) -> None:
        super().__init__()
        self.text = MemoryTextIndex()
        self.vectors = MemoryVectorIndex()
        self._lock_seconds = lock_seconds
        self._writer_lock = threading.Lock()
        self._snapshot = Snapshot()
        self._closed = False
        # Outside the snapshot: a rolled-back transaction leaves a gap, so that no key is ever used
        # twice.
        self._keys: dict[type[Any], Iterator[int]] = defaultdict(lambda: count(1))

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        self.check()
        if not self._writer_lock.acquire(timeout=self._lock_seconds):
            raise Unavailable("the store stayed locked by another write")
        try:
            rows = self.rows_type(self._snapshot, lambda record: next(self._keys[record]))
            yield self.transaction_type(rows)
            self._snapshot = rows.result()
        finally:
            self._writer_lock.release()

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        self.check()
        yield self.transaction_type(self.rows_type(self._snapshot))

    def check(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")

    def schema_version(self) -> str | None:
        return REVISION

    def migrate(self) -> None:
        self.check()

    def close(self) -> None:
        self._closed = True
