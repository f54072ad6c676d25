"""Units take turns, so that none that has much to do keeps the others waiting. Endpoints of
webhooks do where there are more of them than threads, since one may answer slowly; all other units
whenever their turn is over."""

from __future__ import annotations

import time
from collections.abc import Callable

MAX_CONCURRENT_DELIVERIES = 8
"""Endpoints that one worker delivers to at the same time. They wait on strangers' servers, so they
have threads of their own, and whatever an endpoint does holds up no other work."""
TIME_SLICE_SECONDS = 0.5


class TimeSlice:
    """For one run of a unit: is set when the unit had its turn and others wait."""

    def __init__(self, others_wait: Callable[[], bool]) -> None:
        self._others_wait = others_wait
        self._ends: float | None = None

    def is_set(self) -> bool:
        if self._ends is None:  # asked for the first time: however late it is, something is done
            self._ends = time.monotonic() + TIME_SLICE_SECONDS
            return False
        return time.monotonic() >= self._ends and self._others_wait()
