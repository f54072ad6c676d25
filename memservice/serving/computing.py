"""Which thread of a server process computes. All of this is called by `memservice.serving.threads`
while it holds its lock."""

from __future__ import annotations

import time
from collections import deque
from queue import SimpleQueue

Mailbox = SimpleQueue[bool]
"""Wakes a thread, which is known by it."""

MAX_SECONDS = 0.05
"""How long a thread that computes keeps others from resuming: it may wait for something without
saying so."""


class Computing:
    """One thread computes at a time, unless it takes too long. Those that have waited for another
    program resume in the order in which their waits ended."""

    def __init__(self) -> None:
        self._thread: Mailbox | None = None
        self._since = 0.0
        """When it began or resumed (monotonic seconds)."""
        self._resuming: deque[Mailbox] = deque()

    @property
    def is_free(self) -> bool:
        """Whether no thread computes."""
        return self._thread is None

    def is_longer_than(self, seconds: float) -> bool:
        """Whether a thread has computed for this time. False, if none does."""
        return self._thread is not None and time.monotonic() - self._since > seconds

    def begin(self, thread: Mailbox) -> None:
        """Let this thread compute. It does so beside another one that computes already."""
        if self._thread is None:
            self._compute(thread)

    def resume(self, thread: Mailbox) -> bool:
        """Whether this thread, which has waited, may compute now. If not, it is woken later."""
        if self._thread is None:
            self._compute(thread)
            return True
        self._resuming.append(thread)
        return False

    def end(self, thread: Mailbox) -> None:
        """This thread is going to wait, or its job has ended."""
        if self._thread is thread:
            self._next()

    def expire(self) -> None:
        """Let the next thread resume beside one that takes too long."""
        if self.is_longer_than(MAX_SECONDS):
            self._next()

    def _next(self) -> None:
        self._thread = None
        if self._resuming:
            thread = self._resuming.popleft()
            self._compute(thread)
            thread.put(True)

    def _compute(self, thread: Mailbox) -> None:
        self._thread, self._since = thread, time.monotonic()
