"""Locks of threads that compute. Python runs one thread at a time. Threads that compute at the same
time take its lock from each other after each system call, and all of them take longer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from memservice.spi.waiting import on_wait

T = TypeVar("T")

MAX_SECONDS = 0.1
"""How long a thread of a worker waits for its lock. Then it computes beside the one that has it,
which may wait for something without saying so: a unit that derives a batch, or dreams, rarely
computes this long."""


class Lock(Protocol):
    """A lock that a thread has while it computes."""

    def acquire(self) -> bool:
        """Wait for the lock. False: the thread did not get it in time, and computes without it."""
        ...

    def release(self) -> None:
        """Let another thread compute. Called by the thread that has the lock only."""
        ...


class ComputeLock:
    """The lock of the threads of a worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def acquire(self) -> bool:
        return self._lock.acquire(timeout=MAX_SECONDS)

    def release(self) -> None:
        self._lock.release()

    def run(self, work: Callable[[], T]) -> T:
        """What `work` returns. It has the lock, except where it waits: `released`, and from a call
        of `memservice.spi.waiting.about_to_wait` on."""
        compute_under(self, has_lock=self.acquire())
        try:
            return work()
        finally:
            _release()
            compute_freely()


class _Thread(threading.local):
    lock: Lock | None = None
    has_lock = False
    waits = 0
    """How many blocks of `released` it is in: one may call what has another."""


_thread = _Thread()


def compute_under(lock: Lock, *, has_lock: bool) -> None:
    """Let this thread compute under the lock from now on: it releases the lock where it waits.
    `has_lock`: it has the lock."""
    _thread.lock, _thread.has_lock = lock, has_lock
    on_wait(_release)


def compute_freely() -> None:
    """Let this thread compute at any time. A lock that it has is not released."""
    _thread.lock = None
    on_wait(None)


def _acquire() -> None:
    if _thread.lock is not None and not _thread.has_lock:
        _thread.has_lock = _thread.lock.acquire()


def _release() -> None:
    if _thread.lock is not None and _thread.has_lock:
        _thread.has_lock = False
        _thread.lock.release()


@contextmanager
def released() -> Iterator[None]:
    """Let other threads compute while this one waits for another program. Have no transaction open.
    Does nothing in threads that do not compute under a lock."""
    _release()
    _thread.waits += 1
    try:
        yield
    finally:
        _thread.waits -= 1
        if not _thread.waits:
            _acquire()
