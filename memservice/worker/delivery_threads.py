"""Webhooks of an RQ worker are delivered beside its other work: strangers' servers may take their
time, and nothing else waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from memservice.services.tasks.kinds import DELIVERIES, lane_of
from memservice.worker.time_slice import MAX_CONCURRENT_DELIVERIES


def is_delivery(unit: str) -> bool:
    return lane_of(unit) == DELIVERIES


class Deliveries:
    """Works on units in threads of its own, on each of them once at a time."""

    def __init__(self, work: Callable[[str], None]) -> None:
        """`work` is to do a unit, and to raise nothing."""
        self._work = work
        self._pool = ThreadPoolExecutor(MAX_CONCURRENT_DELIVERIES, thread_name_prefix="delivery")
        self._changed = threading.Condition()
        self._in_hand: set[str] = set()
        """Being delivered, or waiting for a thread."""
        self._again: set[str] = set()

    def begin(self, unit: str) -> None:
        """Soon. One that is in hand is looked at once more after that: what it is asked for now may
        have come too late for it."""
        with self._changed:
            if unit in self._in_hand:
                self._again.add(unit)
                return
            self._in_hand.add(unit)
        self._pool.submit(self._run, unit)

    def crowded(self) -> bool:
        """Do some wait for a thread?"""
        with self._changed:
            return len(self._in_hand) > MAX_CONCURRENT_DELIVERIES

    def wait(self, seconds: float) -> bool:
        """Until none is in hand, or the time is over; returns whether any was or is."""
        with self._changed:
            was = bool(self._in_hand)
            self._changed.wait_for(lambda: not self._in_hand, seconds)
            return was

    def close(self) -> None:
        """Ends when those are done that were begun; those that wait for a thread are left to
        others."""
        self._pool.shutdown(cancel_futures=True)

    def _run(self, unit: str) -> None:
        self._work(unit)
        with self._changed:
            if unit in self._again:
                self._again.discard(unit)
                with suppress(RuntimeError):  # closed meanwhile: it is left to others
                    self._pool.submit(self._run, unit)  # behind those that wait
                    return
            self._in_hand.discard(unit)
            self._changed.notify_all()
