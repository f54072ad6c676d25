"""The loop that finds ready units and works on them."""

from __future__ import annotations

import logging
import random
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import memservice
from memservice.domain.errors import SchemaVersionError, Unavailable
from memservice.domain.failures import redacted_traceback
from memservice.runtime import Runtime
from memservice.services.tasks import model_breaker, outbox
from memservice.services.tasks.kinds import DELIVERIES, KINDS, LANES, lane_of, workspace_of
from memservice.worker.housekeeping import Housekeeping, units_at_once
from memservice.worker.lanes import Lanes, take_ended
from memservice.worker.runner import RunReport, run
from memservice.worker.schema import wait_for_own_schema
from memservice.worker.time_slice import MAX_CONCURRENT_DELIVERIES, TimeSlice

log = logging.getLogger("memservice.worker")

ROUND_SECONDS = 0.5
"""A worker reads the list of ready units at least this often, because new ones may be more
urgent."""
MAX_REMEMBERED = 10_000
"""Workspaces whose last turn is remembered."""
READY_BATCH_SIZE = 64
"""Ready units per query; with that many workspaces, one of each."""
SLICE_SECONDS = 0.5
"""Longest wait without a check for a stop."""
STORE_PAUSE_SECONDS = 1.0
"""Pause after the store could not be reached."""


class Worker:
    """Works on ready units, in the threads of their lanes (`memservice.worker.lanes`). A free
    thread gets the next unit at once.

    Workspaces take turns, the longest-waiting unit of each first. No workspace has all threads of a
    lane, so slow work in one of them delays only that workspace.
    """

    def __init__(self, rt: Runtime, *, jitter: bool = False, at_once: int | None = None) -> None:
        """`jitter`: start at a random moment and poll less and less often while idle, for many
        workers on one store. `at_once`: units of one workspace that may wait on a language model at
        the same time; by default, settings and reasoners determine the number."""
        self._rt = rt
        self._jitter = jitter
        self._at_once = at_once or units_at_once(rt.settings, rt.plugins)
        self.housekeeping = Housekeeping(rt)
        self._waiting = False
        """Whether some units are ready but have no free thread."""
        self._turns: dict[str, int] = {}
        """By workspace, the number of its last turn."""
        self._delivering: dict[str, Future[RunReport]] = {}
        """Units of webhooks that are in progress or queued for a thread."""
        self._delivery_lock = threading.Lock()

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set. An unreachable store is logged, and does not end the worker."""
        settings = self._rt.settings.deriver
        self._rt.open_background_models()
        if self._jitter and settings.polling_startup_jitter_seconds:
            stop.wait(random.uniform(0, settings.polling_startup_jitter_seconds))
        log.info(
            "memservice %s: the worker runs, with up to %d unit(s) at once",
            memservice.__version__,
            self._at_once,
        )
        idle = 0
        is_logged = False
        retried = False
        with _Pools(self._at_once) as pools:
            while not stop.is_set():
                try:
                    if not retried:
                        model_breaker.retry_now(self._rt)
                        retried = True
                    is_housekeeping_done = self._start_housekeeping(pools)
                    worked = any(
                        report.done or report.failed or report.steps
                        for report in self._round(pools, stop)
                    )
                    # A store that can be read may still refuse what housekeeping writes.
                    if is_housekeeping_done:
                        is_logged = False
                except SchemaVersionError as error:
                    wait_for_own_schema(self._rt, error, stop)
                    self.housekeeping.free_leases_soon()
                    continue
                except Unavailable as error:
                    if not is_logged:
                        log.error("the store cannot be reached, waiting for it: %s", error)
                    is_logged = True
                    # Leases that could not be released are freed when the store is reachable again.
                    self.housekeeping.free_leases_soon()
                    stop.wait(STORE_PAUSE_SECONDS)
                    continue
                except Exception as error:  # one failure must not stop all other work
                    log.error(
                        "a round of work failed (%s); the worker continues\n%s",
                        type(error).__name__,
                        redacted_traceback(error),
                    )
                    stop.wait(STORE_PAUSE_SECONDS)
                    continue
                idle = 0 if worked or pools.lanes else idle + 1
                if not worked and not self._waiting:
                    self._wait(stop, self._pause(idle))
        log.info("stopped")

    def run_until_idle(
        self, seconds: float = 60.0, stop: threading.Event | None = None
    ) -> list[RunReport]:
        """Work until nothing is ready or `stop` is set. Raises `TimeoutError` after `seconds`."""
        stop = stop or threading.Event()
        reports: list[RunReport] = []
        deadline = time.monotonic() + seconds
        with _Pools(self._at_once) as pools:
            while time.monotonic() < deadline:
                round_reports = self._round(pools, stop)
                if stop.is_set():
                    return reports + round_reports
                if not round_reports and (pools.lanes or self._delivering):
                    seconds_left = deadline - time.monotonic()
                    pools.lanes.wait(min(SLICE_SECONDS, seconds_left), self._delivering.values())
                elif not round_reports:
                    return reports
                reports += round_reports
        raise TimeoutError(f"still working after {seconds} s")

    def _start_housekeeping(self, pools: _Pools) -> bool:
        """Start housekeeping unless it is running. Returns whether a previous run has ended, and
        raises its error."""
        previous, pools.housekeeping_run = pools.housekeeping_run, None
        if previous is not None and not previous.done():
            pools.housekeeping_run = previous
            return False
        if previous is not None:
            previous.result()
        pools.housekeeping_run = pools.housekeeping.submit(self.housekeeping.run_due)
        return previous is not None

    def _round(self, pools: _Pools, stop: threading.Event) -> list[RunReport]:
        """Start ready units while threads are free. Returns the reports of ended units."""
        ends = time.monotonic() + ROUND_SECONDS
        lanes = pools.lanes
        ended = [*take_ended(self._delivering), *lanes.ended()]
        units = self._ready(lanes)
        with self._delivery_lock:
            for unit in units:
                if lane_of(unit) == DELIVERIES and unit not in self._delivering:
                    self._delivering[unit] = pools.deliveries.submit(
                        self._deliver, pools, unit, stop
                    )
        waiting = [unit for unit in units if lane_of(unit) != DELIVERIES and unit not in lanes]
        while not stop.is_set() and (waiting or lanes):
            while (chosen := self._next(waiting, lanes)) is not None:
                waiting.remove(chosen)
                work = partial(run, self._rt, chosen, stop, TimeSlice(lambda: True))
                lanes.start(chosen, work)
            lanes.wait(ends - time.monotonic())
            ended += lanes.ended()
            if time.monotonic() >= ends or not waiting:
                break
        self._waiting = bool(waiting)
        return ended

    def _ready(self, lanes: Lanes) -> list[str]:
        """Ready units, the longest-waiting of each workspace first."""
        # Units that are queued for a thread are still ready: without this they would fill the list.
        maximum = READY_BATCH_SIZE + len(lanes) + len(self._delivering)
        now, latest = self._rt.clock(), outbox.latest(self._rt)
        closed = lanes.closed()
        with self._rt.storage.read() as tx:
            units = tx.tasks.ready(now, maximum, latest, without=closed)
            if len(units) == maximum:
                # One lane may fill the list: query each lane separately.
                for lane in LANES:
                    other_kinds = tuple(kind.name for kind in KINDS.values() if kind.lane != lane)
                    without = tuple({*closed, *other_kinds})
                    units += tx.tasks.ready(now, maximum, latest, without=without)
        return list(dict.fromkeys(units))

    def _next(self, waiting: list[str], lanes: Lanes) -> str | None:
        """The unit whose turn is next, among those with a free thread."""
        startable = lanes.startable(waiting)
        if not startable:
            return None
        # `min` returns the first of several with the same turn.
        unit = min(startable, key=lambda unit: self._turns.get(workspace_of(unit), 0))
        workspace = workspace_of(unit)
        self._turns[workspace] = max(self._turns.values(), default=0) + 1
        if len(self._turns) > MAX_REMEMBERED:
            self._turns.clear()
        return unit

    def _deliver(self, pools: _Pools, unit: str, stop: threading.Event) -> RunReport:
        with self._delivery_lock:
            # The units of a round are queued: a slice has to end only if others wait.
            pass
        report = run(
            self._rt,
            unit,
            stop,
            TimeSlice(lambda: len(self._delivering) > MAX_CONCURRENT_DELIVERIES),
        )
        if report.more_due and not stop.is_set():
            # Queue it again, behind the others. The lock keeps the order: its next turn can end
            # before this one is recorded, and must be recorded after it.
            with self._delivery_lock, suppress(RuntimeError):  # closed: another worker takes it
                self._delivering[unit] = pools.deliveries.submit(self._deliver, pools, unit, stop)
        return report

    def _pause(self, idle: int) -> float:
        """Seconds until the next poll, unless a commit wakes the worker."""
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
        """Wait until a transaction is committed, at most `seconds`."""
        deadline = time.monotonic() + seconds
        while not stop.is_set():
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0 or self._rt.storage.wait_for_work(
                min(seconds_left, SLICE_SECONDS)
            ):
                return


class _Pools:
    """The threads of a worker: for units by lane, for webhook deliveries, and for housekeeping."""

    def __init__(self, at_once: int) -> None:
        self.lanes = Lanes(at_once)
        self.deliveries = ThreadPoolExecutor(
            MAX_CONCURRENT_DELIVERIES, thread_name_prefix="delivery"
        )
        self.housekeeping = ThreadPoolExecutor(1, thread_name_prefix="housekeeping")
        self.housekeeping_run: Future[None] | None = None

    def __enter__(self) -> _Pools:
        return self

    def __exit__(self, *error: object) -> None:
        self.lanes.close()
        self.deliveries.shutdown(cancel_futures=True)
        self.housekeeping.shutdown(cancel_futures=True)
