"""The loop that finds work and does it."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress

from memservice.domain.errors import Unavailable
from memservice.domain.failures import redacted_traceback
from memservice.runtime import Runtime
from memservice.services.tasks import outbox
from memservice.services.tasks.kinds import DELIVERIES, lane_of, workspace_of
from memservice.worker.housekeeping import Housekeeping, units_at_once
from memservice.worker.runner import RunReport, run
from memservice.worker.time_slice import MAX_CONCURRENT_DELIVERIES, TimeSlice

log = logging.getLogger("memservice.worker")

ROUND_SECONDS = 0.5
"""After so long a worker looks again at which units are ready: a workspace that had nothing to do
may have had its first message."""
MAX_REMEMBERED = 10_000
"""Workspaces whose last turn is remembered."""
LOOKED_AT = 64
"""Ready units that are looked at together; of each workspace one, where there are so many."""
SLICE_SECONDS = 0.5
"""Longest wait in one piece, so that a stop is heard soon."""
STORE_PAUSE_SECONDS = 1.0
"""Pause after the store could not be reached."""


class Worker:
    """Works on ready units, several at once where the reasoner waits on a network.

    Workspaces take turns, the longest-waiting unit of each first. No workspace has all threads: one
    more than it may have is kept for the others, so that whatever takes long in one of them holds
    up only itself.
    """

    def __init__(self, rt: Runtime, *, jitter: bool = False, at_once: int | None = None) -> None:
        """`jitter`: start at a random moment and look less and less often while idle, as many
        workers on one store should. `at_once`: units of one workspace that are worked on at once,
        if not as many as settings and reasoners say."""
        self._rt = rt
        self._jitter = jitter
        self._at_once = at_once or units_at_once(rt.settings, rt.plugins)
        self.tending = Housekeeping(rt)
        self._in_hand: dict[str, Future[RunReport]] = {}
        self._turns: dict[str, int] = {}
        """By workspace, the number of its last turn."""
        self._delivering: dict[str, Future[RunReport]] = {}
        """Units of webhooks that are in hand, or wait for a thread."""
        self._noting = threading.Lock()

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop. The store being away is logged and waited for; it never ends the
        worker."""
        settings = self._rt.settings.deriver
        if self._jitter and settings.polling_startup_jitter_seconds:
            stop.wait(random.uniform(0, settings.polling_startup_jitter_seconds))
        log.info("working, %d unit(s) at once", self._at_once)
        idle = 0
        reachable = True
        with _Pools(self._at_once) as pools:
            while not stop.is_set():
                try:
                    self.tending.run_due()
                    worked = any(
                        report.done or report.failed or report.steps
                        for report in self._round(pools, stop)
                    )
                    reachable = True
                except Unavailable as error:
                    if reachable:
                        log.error("the store cannot be reached, waiting for it: %s", error)
                    reachable = False
                    # leases that could not be given back are freed as soon as the store is there
                    # again
                    self.tending.free_leases_soon()
                    stop.wait(STORE_PAUSE_SECONDS)
                    continue
                except (
                    Exception
                ) as error:  # one thing that cannot be done must not keep all others waiting
                    log.error(
                        "a round of work failed (%s), going on\n%s",
                        type(error).__name__,
                        redacted_traceback(error),
                    )
                    stop.wait(STORE_PAUSE_SECONDS)
                    continue
                idle = 0 if worked or self._in_hand else idle + 1
                if not worked:
                    self._wait(stop, self._pause(idle))
        log.info("stopped")

    def run_until_idle(
        self, seconds: float = 60.0, stop: threading.Event | None = None
    ) -> list[RunReport]:
        """Work in this thread until nothing is ready, or told to stop. Raises `TimeoutError` after
        `seconds`."""
        stop = stop or threading.Event()
        reports: list[RunReport] = []
        deadline = time.monotonic() + seconds
        with _Pools(self._at_once) as pools:
            while time.monotonic() < deadline:
                done = self._round(pools, stop)
                if stop.is_set():
                    return reports + done
                busy = [*self._in_hand.values(), *self._delivering.values()]
                if not done and busy:
                    wait(
                        busy,
                        max(0.0, min(SLICE_SECONDS, deadline - time.monotonic())),
                        FIRST_COMPLETED,
                    )
                elif not done:
                    return reports
                reports += done
        raise TimeoutError(f"still working after {seconds} s")

    def _round(self, pools: _Pools, stop: threading.Event) -> list[RunReport]:
        """Work on the units that are ready now, and let webhooks be delivered beside; reports of
        what ended."""
        ends = time.monotonic() + ROUND_SECONDS
        ended = [*_ended(self._delivering), *_ended(self._in_hand)]
        with self._rt.storage.read() as tx:
            # Units that wait for a thread are still ready: they must not hide the others.
            maximum = LOOKED_AT + len(self._in_hand) + len(self._delivering)
            units = tx.tasks.ready(self._rt.clock(), maximum, outbox.latest(self._rt))
        for unit in units:
            if lane_of(unit) == DELIVERIES and unit not in self._delivering:
                self._delivering[unit] = pools.deliveries.submit(self._deliver, pools, unit, stop)
        waiting = [
            unit for unit in units if unit not in self._delivering and unit not in self._in_hand
        ]
        while not stop.is_set() and (waiting or self._in_hand):
            while (following := self._next(waiting)) is not None:
                waiting.remove(following)
                self._in_hand[following] = pools.units.submit(
                    run, self._rt, following, stop, TimeSlice(lambda: True)
                )
            wait(self._in_hand.values(), max(0.0, ends - time.monotonic()), FIRST_COMPLETED)
            ended += _ended(self._in_hand)
            if time.monotonic() >= ends or not waiting:
                break
        return ended

    def _next(self, waiting: list[str]) -> str | None:
        """Of the units that wait the one whose turn it is, if a thread is free for it."""
        if len(self._in_hand) > self._at_once:
            return None
        busy = Counter(map(workspace_of, self._in_hand))
        free = [unit for unit in waiting if busy[workspace_of(unit)] < self._at_once]
        if not free:
            return None
        # of equal ones the first
        unit = min(free, key=lambda unit: self._turns.get(workspace_of(unit), 0))
        here = workspace_of(unit)
        self._turns[here] = max(self._turns.values(), default=0) + 1
        if len(self._turns) > MAX_REMEMBERED:
            self._turns.clear()
        return unit

    def _deliver(self, pools: _Pools, unit: str, stop: threading.Event) -> RunReport:
        report = run(
            self._rt,
            unit,
            stop,
            TimeSlice(lambda: len(self._delivering) > MAX_CONCURRENT_DELIVERIES),
        )
        if report.left and not stop.is_set():
            # In hand as before, but behind those that wait. Its next turn may end before this one
            # is noted, and has to be noted after it.
            with self._noting, suppress(RuntimeError):  # closed meanwhile: it is left to others
                self._delivering[unit] = pools.deliveries.submit(self._deliver, pools, unit, stop)
        return report

    def _pause(self, idle: int) -> float:
        """Seconds until the next look, if nothing wakes the worker before."""
        settings = self._rt.settings.deriver
        pause = settings.polling_sleep_interval_seconds
        if not self._jitter:
            return pause
        if settings.polling_backoff_enabled:
            grown = pause * settings.polling_backoff_multiplier ** min(idle - 1, 20)
            pause = min(grown, settings.polling_sleep_max_interval_seconds)
        return pause * (
            1 + random.uniform(-settings.polling_jitter_ratio, settings.polling_jitter_ratio)
        )

    def _wait(self, stop: threading.Event, seconds: float) -> None:
        """Until something was committed, or the time is over."""
        deadline = time.monotonic() + seconds
        while not stop.is_set():
            left = deadline - time.monotonic()
            if left <= 0 or self._rt.storage.wait_for_work(min(left, SLICE_SECONDS)):
                return


class _Pools:
    """The threads of a worker: those for its own work, and those that wait for endpoints of
    webhooks."""

    def __init__(self, at_once: int) -> None:
        self.units = ThreadPoolExecutor(at_once + 1, thread_name_prefix="unit")
        self.deliveries = ThreadPoolExecutor(
            MAX_CONCURRENT_DELIVERIES, thread_name_prefix="delivery"
        )

    def __enter__(self) -> _Pools:
        return self

    def __exit__(self, *error: object) -> None:
        self.units.shutdown(cancel_futures=True)
        self.deliveries.shutdown(cancel_futures=True)


def _ended(in_hand: dict[str, Future[RunReport]]) -> list[RunReport]:
    """Take those out that have ended."""
    ended = {unit: future for unit, future in in_hand.items() if future.done()}
    for unit in ended:
        del in_hand[unit]
    return [future.result() for future in ended.values()]
