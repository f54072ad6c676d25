"""The storage: one moment that readers see, replaced whole by each commit."""

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
from memservice_memory.tables import Moment

REVISION = "memory"
"""The only schema there is: the records themselves."""


class MemoryStorage(BaseStorage):
    """Writers take turns; readers never wait. A write waits at most `lock_seconds` for its turn.

    A subclass that wants other rows or nouns sets `rows_type` or `view_type`.
    """

    name = "memory"
    capabilities: frozenset[Capability] = frozenset()
    rows_type: type[MemoryRows] = MemoryRows
    view_type: type[Transaction] = Transaction

    def __init__(self, lock_seconds: float = 30.0) -> None:
        super().__init__()
        self.text = MemoryTextIndex()
        self.vectors = MemoryVectorIndex()
        self._lock_seconds = lock_seconds
        self._turn = threading.Lock()
        self._moment = Moment()
        self._closed = False
        # Outside the moment: a rolled-back transaction leaves a gap, so that no key is ever used
        # twice.
        self._keys: dict[type[Any], Iterator[int]] = defaultdict(lambda: count(1))

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        self.check()
        if not self._turn.acquire(timeout=self._lock_seconds):
            raise Unavailable("the store stayed locked by another write")
        try:
            rows = self.rows_type(self._moment, lambda record: next(self._keys[record]))
            yield self.view_type(rows)
            self._moment = rows.moment()
        finally:
            self._turn.release()

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        self.check()
        yield self.view_type(self.rows_type(self._moment))

    def check(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")

    def schema_version(self) -> str | None:
        return REVISION

    def migrate(self) -> None:
        self.check()

    def close(self) -> None:
        self._closed = True
