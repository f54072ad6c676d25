"""Endpoints of webhooks take turns where there are more of them than threads: one that answers slowly, and has much to be told, keeps
no other waiting for longer than its turn."""

from __future__ import annotations

import time
from collections.abc import Callable

from memservice.pipeline.runner import Stop

DELIVERIES_AT_ONCE = 8
"""Endpoints that one worker delivers to at the same time. They wait on strangers' servers, so they have threads of their own, and
whatever an endpoint does holds up no other work."""
TURN_SECONDS = 0.5


class Turn:
    """For one run of a unit: is set at the worker's end, and when the unit had its turn and others wait."""

    def __init__(self, stop: Stop, others_wait: Callable[[], bool]) -> None:
        self._stop = stop
        self._others_wait = others_wait
        self._ends: float | None = None

    def is_set(self) -> bool:
        if self._stop.is_set():
            return True
        if self._ends is None:  # asked for the first time: however late it is, one event is delivered
            self._ends = time.monotonic() + TURN_SECONDS
            return False
        return time.monotonic() >= self._ends and self._others_wait()
