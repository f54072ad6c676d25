"""The time limits of exchanges, which one thread of the process enforces.

A thread for each exchange would cost an embedding a third more CPU time.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable

CHECK_SECONDS = 0.25
"""Interval of the check whether an answer is still wanted."""
IDLE_SECONDS = 5.0
"""How long after the last exchange the thread still looks at each interval. An exchange that begins
within this time need not wake it, which would cost both threads a switch."""

log = logging.getLogger(__name__)


class Watch:
    """Cuts an exchange off at its deadline, or when its answer is no longer wanted. Limits of
    single reads are not enough: they never end an answer that arrives byte by byte."""

    def __init__(
        self, cut_off: Callable[[], None], seconds: float, is_wanted: Callable[[], bool] | None
    ) -> None:
        self.is_late = False
        self.is_unwanted = False
        self._cut_off = cut_off
        self._is_wanted = is_wanted
        self._ends = time.monotonic() + seconds
        self._is_over = False
        self._lock = threading.Lock()
        _watcher.add(self, self._ends)

    def extend(self, seconds: float) -> None:
        """Allow more time."""
        self._ends += seconds

    def end(self) -> None:
        """From here on the connection can serve another exchange."""
        with self._lock:
            self._is_over = True
        _watcher.remove(self)

    def check(self) -> float:
        """Cut the exchange off if it is time. Returns its deadline, by `time.monotonic`; infinity
        once it is over."""
        is_late = time.monotonic() >= self._ends
        if not is_late and self._is_needed():
            return self._ends
        with self._lock:
            if not self._is_over:
                self._is_over = True
                self.is_late, self.is_unwanted = is_late, not is_late
                self._cut_off()
        return math.inf

    def _is_needed(self) -> bool:
        if self._is_wanted is None:
            return True
        try:
            return self._is_wanted()
        except Exception:
            # One faulty caller must not end the limits of all the others.
            log.exception("whether an answer is still wanted is unknown: it is waited for")
            self._is_wanted = None
            return True


class _Watcher:
    """The thread that checks all watches of this process. It starts with the first one."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._watches: set[Watch] = set()
        self._is_started = False
        self._wakes = math.inf
        """When the thread looks next, by `time.monotonic`."""

    def add(self, watch: Watch, ends: float) -> None:
        with self._changed:
            self._watches.add(watch)
            if not self._is_started:
                threading.Thread(target=self._run, name="model-deadlines", daemon=True).start()
                self._is_started = True
            elif ends < self._wakes:
                self._changed.notify()

    def remove(self, watch: Watch) -> None:
        with self._changed:
            self._watches.discard(watch)

    def _run(self) -> None:
        last_used = time.monotonic()
        while True:
            with self._changed:
                watches = list(self._watches)
            nearest = min((watch.check() for watch in watches), default=math.inf)
            now = time.monotonic()
            if watches:
                last_used = now
            is_idle = not watches and now - last_used >= IDLE_SECONDS
            with self._changed:
                if self._watches.difference(watches):
                    continue
                self._wakes = math.inf if is_idle else min(nearest, now + CHECK_SECONDS)
                self._changed.wait(None if is_idle else max(self._wakes - now, 0.0))


_watcher = _Watcher()


def _start_anew() -> None:
    """A forked process has no thread but its own."""
    global _watcher
    _watcher = _Watcher()


os.register_at_fork(after_in_child=_start_anew)
