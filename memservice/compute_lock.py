"""A lock for threads of a worker that compute. Python runs one thread at a time. Threads that
compute at the same time take its lock from each other after each system call, and all of them take
longer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from memservice.spi.waiting import on_wait

T = TypeVar("T")

MAX_SECONDS = 0.1
"""How long a thread waits for the lock. Then it computes without it, beside one that computes for
long."""


class ComputeLock:
    def __init__(self) -> None:
        self._lock = threading.Lock()

    def run(self, work: Callable[[], T]) -> T:
        """What `work` returns. It has the lock, except where it waits: `released`, and from a call
        of `memservice.spi.waiting.about_to_wait` on."""
        _thread.lock = self._lock
        on_wait(_release)
        _acquire()
        try:
            return work()
        finally:
            _release()
            on_wait(None)
            _thread.lock = None


class _Thread(threading.local):
    lock: threading.Lock | None = None
    has_lock = False
    waits = 0
    """How many blocks of `released` it is in: one may call what has another."""


_thread = _Thread()


def _acquire() -> None:
    if _thread.lock is not None and not _thread.has_lock:
        _thread.has_lock = _thread.lock.acquire(timeout=MAX_SECONDS)


def _release() -> None:
    if _thread.lock is not None and _thread.has_lock:
        _thread.has_lock = False
        _thread.lock.release()


@contextmanager
def released() -> Iterator[None]:
    """Let other threads compute while this one waits for another program. Have no transaction open.
    Does nothing in threads that do not compute under such a lock."""
    _release()
    _thread.waits += 1
    try:
        yield
    finally:
        _thread.waits -= 1
        if not _thread.waits:
            _acquire()
