"""Time slices, so that a unit with many tasks does not delay others. A webhook endpoint releases
its thread only if there are more endpoints than threads, because one may answer slowly. All other
units release theirs when the slice ends."""

from __future__ import annotations

import time
from collections.abc import Callable

MAX_CONCURRENT_DELIVERIES = 8
"""Endpoints that one worker delivers to at the same time. Their threads only deliver, so a slow
endpoint delays no other work."""
TIME_SLICE_SECONDS = 0.5


class TimeSlice:
    """The time slice of one run of a unit: set once it has ended while other units wait."""

    def __init__(self, others_wait: Callable[[], bool]) -> None:
        self._others_wait = others_wait
        self._ends: float | None = None

    def is_set(self) -> bool:
        if self._ends is None:  # first call: a run always does some work
            self._ends = time.monotonic() + TIME_SLICE_SECONDS
            return False
        return time.monotonic() >= self._ends and self._others_wait()
