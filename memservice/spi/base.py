"""What every storage has to get right around its transactions, written once: a storage gives the
transactions themselves.

Optional. A storage that has its own way of doing this implements `memservice.spi.storage.Storage`
and leaves `BaseStorage` alone.
"""

from __future__ import annotations

import logging
import random
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from memservice.domain.errors import Damaged, Unavailable
from memservice.spi.capabilities import Capability
from memservice.spi.rows import UniqueViolation
from memservice.spi.storage import Finding, Transaction
from memservice.spi.text import TextIndex
from memservice.spi.vectors import VectorIndex

log = logging.getLogger("memservice.storage")

T = TypeVar("T")

TRIED = "store:tried"
"""The fact that is written to learn whether the store takes writes. Its value says nothing."""
TRY_AGAIN_SECONDS = 10.0
"""A write of this process that succeeded so lately says that the store takes writes."""
RESTORE = "restore a backup; `memservice export` saves what can still be read"
WRITABLE = "see that its disk has room, and that this user may write to it"


class TransientConflict(Exception):
    """Raised out of `transaction()`, or by what runs in it: it lost against another one, nothing of
    it is stored, and a second try may succeed."""


class BaseStorage(ABC):
    """`memservice.spi.storage.Storage` over two context managers, `transaction()` and `snapshot()`.

    Holds: the guard against nested writes, the retries after a `TransientConflict` or a
    `UniqueViolation`, and `wait_for_work` between the threads of this process. A storage that
    several processes share overrides `changed_elsewhere`.
    """

    name: str
    capabilities: frozenset[Capability]
    text: TextIndex
    vectors: VectorIndex | None = None

    attempts = 8
    """How often a conflicting write is tried before it is given up."""
    attempts_at_taken = 3
    """How often a write is tried that meets a row with the same value of a unique constraint."""
    poll_seconds: float | None = None
    """How often `wait_for_work` asks `changed_elsewhere`; None = never."""

    def __init__(self) -> None:
        self._mine = threading.local()
        self._committed = threading.Condition()
        self._commits = 0
        self._written_at = float("-inf")
        """When a write of this process succeeded, if none failed since."""
        self._commit_listeners: list[Callable[[Collection[str]], None]] = []
        self._damage: str | None = None
        """How it was first noticed that the store is damaged."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Transaction]:
        """Begin; commit where the block ends, roll back where it raises. May raise
        `TransientConflict` or `Unavailable`."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Transaction]:
        """A view of one moment for reading. May raise `Unavailable`."""

    @abstractmethod
    def check(self) -> None: ...

    @abstractmethod
    def schema_version(self) -> str | None: ...

    @abstractmethod
    def migrate(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def changed_elsewhere(self) -> bool:
        """Did another process commit since this thread last asked? Called every `poll_seconds` by
        each waiting thread."""
        return False

    def write(self, fn: Callable[[Transaction], T]) -> T:
        if getattr(self._mine, "writing", False):
            raise RuntimeError("a write inside a write: pass the view on instead")
        self._mine.writing = True
        try:
            with self._noticing():
                result, units = self._try(fn)
            self._written_at = time.monotonic()
        except (Unavailable, Damaged):
            self._written_at = float("-inf")
            raise
        finally:
            self._mine.writing = False
        self.announce()
        if units:
            for listener in self._commit_listeners:
                listener(units)
        return result

    def on_commit(self, listener: Callable[[Collection[str]], None]) -> None:
        self._commit_listeners.append(listener)

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        with self._noticing(), self.snapshot() as tx:
            yield tx

    def examine(self, *, thorough: bool = False) -> Sequence[Finding]:
        """That damage was noticed by this process, or that a write fails now. A store that took one
        a moment ago is not asked again."""
        findings: list[Finding] = []
        if time.monotonic() - self._written_at > TRY_AGAIN_SECONDS:
            try:
                self.write(lambda tx: tx.facts.set(TRIED, secrets.token_hex(4)))
            except Unavailable as error:
                findings.append(Finding("failed", f"it takes no writes: {error}", WRITABLE))
            except Damaged:
                pass  # noted, and told below
        if self._damage is not None:
            findings.append(Finding("failed", self._damage, RESTORE))
        return findings

    def reclaim(self, *, thorough: bool = False) -> bool:
        return False

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """Damage is logged once, and remembered: a part of the store that is whole says nothing of
        the others."""
        try:
            yield
        except Damaged as error:
            if self._damage is None:
                self._damage = str(error)
                log.error("%s; %s", error, RESTORE)
            raise

    def announce(self) -> None:
        """Wake those who wait for work. `write` calls it; call it for a commit that was learnt of
        in another way."""
        with self._committed:
            self._commits += 1
            self._committed.notify_all()

    def wait_for_work(self, timeout: float) -> bool:
        """A commit since this thread last returned from here counts, so nothing is lost between
        looking for work and waiting."""
        deadline = time.monotonic() + timeout
        seen = getattr(self._mine, "seen", 0)
        while True:
            left = max(0.0, deadline - time.monotonic())
            with self._committed:
                if self._commits == seen:
                    self._committed.wait(
                        left if self.poll_seconds is None else min(left, self.poll_seconds)
                    )
                if self._commits != seen:
                    self._mine.seen = self._commits
                    return True
            if self.poll_seconds is not None and self.changed_elsewhere():
                return True
            if time.monotonic() >= deadline:
                return False

    def _try(self, fn: Callable[[Transaction], T]) -> tuple[T, Collection[str]]:
        """What `fn` returned, and the units that it gave work."""
        conflict: TransientConflict | None = None
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(random.uniform(0, 0.005 * 2**attempt))
            try:
                with self.transaction() as tx:
                    result = fn(tx)
                    units = set(tx.tasks.units_with_work) if self._commit_listeners else ()
                return result, units
            except TransientConflict as error:
                conflict = error
            except UniqueViolation:
                # Maybe another transaction stored the same between our look and our write: then the
                # next run finds it.
                if attempt >= self.attempts_at_taken - 1:
                    raise
        raise Unavailable(
            "the store is busy: the write met other writes every time it was tried"
        ) from conflict
