"""A base class for storages: it adds retries, the guard against nested writes and waiting for work
to the transactions of a storage.

Optional: a storage can implement `memservice.spi.storage.Storage` without `BaseStorage`.
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

PROBE_FACT = "store:tried"
"""The fact that is written to check whether the store accepts writes. Its value has no meaning."""
PROBE_INTERVAL_SECONDS = 10.0
"""After a write of this process succeeded, the store is not probed for this long."""
RESTORE = "restore a backup; `memservice export` saves what can still be read"
WRITABLE = "check that its disk is not full, and that this user may write to it"


class TransientConflict(Exception):
    """Raised by `transaction()` or inside it: the transaction conflicts with another one and stores
    nothing. A second try may succeed."""


class BaseStorage(ABC):
    """`memservice.spi.storage.Storage` over two context managers, `transaction()` and `snapshot()`.

    It has the guard against nested writes, the retries after a `TransientConflict` or a
    `UniqueViolation`, and `wait_for_work` between the threads of this process. A storage that
    several processes share overrides `changed_elsewhere`.
    """

    name: str
    capabilities: frozenset[Capability]
    text: TextIndex
    vectors: VectorIndex | None = None

    attempts = 8
    """Tries of a conflicting write before it fails."""
    attempts_at_taken = 3
    """Tries of a write that violates a unique constraint."""
    poll_seconds: float | None = None
    """Seconds between two calls of `changed_elsewhere` in `wait_for_work`; None: never called."""

    def __init__(self) -> None:
        self._thread = threading.local()
        self._committed = threading.Condition()
        self._commits = 0
        self._written_at = float("-inf")
        """Time of the last write of this process that succeeded; `-inf` if one failed since."""
        self._commit_listeners: list[Callable[[Collection[str]], None]] = []
        self._damage: str | None = None
        """The first error that reported damage."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction. Commit it at the end of the block, roll it back if the block raises.
        May raise `TransientConflict` or `Unavailable`."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Transaction]:
        """A consistent transaction for reading. May raise `Unavailable`."""

    @abstractmethod
    def check(self) -> None: ...

    @abstractmethod
    def schema_version(self) -> str | None: ...

    @abstractmethod
    def migrate(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def changed_elsewhere(self) -> bool:
        """Whether another process committed since the last call of this thread. Each waiting thread
        calls it every `poll_seconds`."""
        return False

    def write(self, fn: Callable[[Transaction], T]) -> T:
        if getattr(self._thread, "writing", False):
            raise RuntimeError("write() was called inside write(): pass the transaction on instead")
        self._thread.writing = True
        try:
            with self._noticing():
                result, units = self._try(fn)
            self._written_at = time.monotonic()
        except (Unavailable, Damaged):
            self._written_at = float("-inf")
            raise
        finally:
            self._thread.writing = False
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

    def read_committed(self) -> AbstractContextManager[Transaction]:
        """By default, a consistent transaction, which is more than is asked for."""
        return self.read()

    def examine(self, *, thorough: bool = False) -> Sequence[Finding]:
        """Reports damage that this process noticed, and a write that fails now. Does not write if a
        recent write succeeded."""
        findings: list[Finding] = []
        if time.monotonic() - self._written_at > PROBE_INTERVAL_SECONDS:
            try:
                self.write(lambda tx: tx.facts.set(PROBE_FACT, secrets.token_hex(4)))
            except Unavailable as error:
                findings.append(Finding("failed", f"writes fail: {error}", WRITABLE))
            except Damaged:
                pass  # `_noticing` recorded it; it is reported below
        if self._damage is not None:
            findings.append(Finding("failed", self._damage, RESTORE))
        return findings

    def reclaim(self, *, thorough: bool = False, erasure: bool = False) -> bool:
        return False

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """Log damage once and record it: other parts of the store may still be readable."""
        try:
            yield
        except Damaged as error:
            if self._damage is None:
                self._damage = str(error)
                log.error("%s; %s", error, RESTORE)
            raise

    def announce(self) -> None:
        """Wake the threads in `wait_for_work`. `write` calls it; call it for commits of other
        processes."""
        with self._committed:
            self._commits += 1
            self._committed.notify_all()

    def wait_for_work(self, timeout: float) -> bool:
        """A commit since the last return in this thread counts, so no work is lost between looking
        for it and waiting."""
        deadline = time.monotonic() + timeout
        seen_commits = getattr(self._thread, "seen_commits", 0)
        while True:
            seconds_left = max(0.0, deadline - time.monotonic())
            with self._committed:
                if self._commits == seen_commits:
                    self._committed.wait(
                        seconds_left
                        if self.poll_seconds is None
                        else min(seconds_left, self.poll_seconds)
                    )
                if self._commits != seen_commits:
                    self._thread.seen_commits = self._commits
                    return True
            if self.poll_seconds is not None and self.changed_elsewhere():
                return True
            if time.monotonic() >= deadline:
                return False

    def _try(self, fn: Callable[[Transaction], T]) -> tuple[T, Collection[str]]:
        """The result of `fn`, and the units that got work."""
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
                # Another transaction may have stored the same row after our read: then the next run
                # finds it.
                if attempt >= self.attempts_at_taken - 1:
                    raise
        raise Unavailable(
            f"the store is busy: a write failed {self.attempts} times because of concurrent writes"
        ) from conflict
