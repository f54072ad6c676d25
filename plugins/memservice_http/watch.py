"""The time limit of an exchange."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

CHECK_SECONDS = 0.25
"""Interval of the check whether an answer is still wanted."""


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
        self._over = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._run, name="model-deadline", daemon=True).start()

    def extend(self, seconds: float) -> None:
        """Allow more time."""
        self._ends += seconds

    def end(self) -> None:
        """From here on the connection can serve another exchange."""
        with self._lock:
            self._over.set()

    def _run(self) -> None:
        while True:
            remaining = max(self._ends - time.monotonic(), 0.0)
            pause = remaining if self._is_wanted is None else min(remaining, CHECK_SECONDS)
            if self._over.wait(pause):
                return
            is_late = time.monotonic() >= self._ends
            if is_late or (self._is_wanted is not None and not self._is_wanted()):
                break
        with self._lock:
            if not self._over.is_set():
                self.is_late, self.is_unwanted = is_late, not is_late
                self._cut_off()
