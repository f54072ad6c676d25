"""Time slices, so that a unit with many tasks does not delay the others. Webhook endpoints give way
only if there are more of them than threads, because one may answer slowly. All other units give way
when their slice ends."""

from __future__ import annotations

import time
from collections.abc import Callable

MAX_CONCURRENT_DELIVERIES = 8
"""Endpoints that one worker delivers to at the same time. Their threads do nothing else, so a slow
endpoint delays no other work."""
TIME_SLICE_SECONDS = 0.5


class TimeSlice:
    """The time slice of one run of a unit: set once it has ended and other units wait."""

    def __init__(self, others_wait: Callable[[], bool]) -> None:
        self._others_wait = others_wait
        self._ends: float | None = None

    def is_set(self) -> bool:
        if self._ends is None:  # first call: a run always does some work
            self._ends = time.monotonic() + TIME_SLICE_SECONDS
            return False
        return time.monotonic() >= self._ends and self._others_wait()
