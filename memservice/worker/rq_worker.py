"""An RQ worker: takes work units from the queues in Redis, and works on each as every runner does,
by `runner.run`.

It works in the process that it runs in: that has one opened runtime for all its jobs, and several
processes are several workers. RQ hands over the ids of jobs and does nothing else: it imports and
calls no function, times nothing out, tries nothing again and keeps no results. All of that is the
store's business.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

from redis import RedisError
from rq import Queue, SimpleWorker
from rq.exceptions import StopRequested
from rq.job import Job
from rq.serializers import JSONSerializer
from rq.utils import now
from rq.worker_registration import clean_worker_registry

from memservice.domain.errors import Unavailable
from memservice.domain.failures import redacted_traceback
from memservice.runtime import Runtime
from memservice.services.tasks import model_breaker, outbox
from memservice.services.tasks.kinds import KINDS, LOCAL
from memservice.worker import sweep
from memservice.worker.housekeeping import Housekeeping
from memservice.worker.rq_queues import JobQueues, queue_of
from memservice.worker.runner import run
from memservice.worker.time_slice import TimeSlice
from memservice.worker.unit_jobs import UnitJob
from memservice.worker.unit_threads import UnitThreads, is_delivery

log = logging.getLogger("memservice.worker")

WORKER_SECONDS = 60
"""How long Redis remembers an idle worker; about as long it waits for a job in one piece."""
JOB_SECONDS = 3_600
"""How long Redis remembers a worker that works on a job. Nothing but RQ's own lists depends on
it."""
PAUSE_SECONDS = 1.0
"""Pause after the store or Redis could not be reached."""
LOOK_SECONDS = 0.5
"""How often a worker checks for a stop, and for local work while it waits on a model."""
BUSY_SECONDS = 1.0
"""A job that takes longer than this has local work done in other threads of the same process."""
MAX_LOCAL_UNITS = 10
NOT_LOCAL = tuple(kind.name for kind in KINDS.values() if kind.lane != LOCAL)


class UnitWorker(SimpleWorker):
    """RQ's worker for units. The first SIGTERM lets it finish the batch in hand and give its unit
    back; the second ends it at once."""

    max_connection_wait_time = 5.0

    def __init__(self, queues: Sequence[Queue], stop: threading.Event) -> None:
        super().__init__(
            list(queues),
            connection=queues[0].connection,
            serializer=JSONSerializer,
            job_class=UnitJob,
            worker_ttl=WORKER_SECONDS,
        )
        self.log_job_description = False
        self.stop = stop
        self._in_hand = False

    def execute_job(self, job: Job, queue: Queue) -> None:
        """RQ's own would import what the job names. This takes the job away, and works on its
        unit."""
        self._in_hand = True
        try:
            with self.connection.pipeline() as pipeline:
                pipeline.delete(job.key, job.dependents_key)
                pipeline.lrem(queue.intermediate_queue_key, 1, job.id)
                pipeline.execute()
            unit = job.unit if isinstance(job, UnitJob) else None
            if unit is None:
                log.error("refused a job in the queue %s that is none of ours", queue.name)
                return
            self.heartbeat(JOB_SECONDS)
            work(unit)
        finally:
            self._in_hand = False

    def clean_registries(self) -> None:
        """RQ's own would look through its lists of jobs, and call what each of them names for its
        failure. There are no such lists here: the sweep makes lost jobs again, from the store."""
        for queue in self.queues:
            clean_worker_registry(queue)
            # Ids of jobs whose worker was killed between taking and beginning them.
            self.connection.delete(queue.intermediate_queue_key)
        self.last_cleaned_at = now()  # type: ignore[assignment]  # RQ declares it as None

    def run_maintenance_tasks(self) -> None:
        self.clean_registries()

    def subscribe(self) -> None:
        """Commands through Redis are not listened to: processes are ended by signals."""

    def unsubscribe(self) -> None:
        pass

    def check_for_suspension(self, burst: bool) -> None:
        if self.stop.is_set():
            raise StopRequested
        super().check_for_suspension(burst)

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        # Unlike RQ's own, this asks nothing of Redis: it runs in the middle of a job, which is none
        # of Redis's business.
        self.stop.set()
        self._stop_requested = True
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.request_force_stop)
        if not self._in_hand:
            raise StopRequested

    def request_force_stop(self, signum: int, frame: FrameType | None) -> None:
        # What is in hand was not stored yet, and is done again by whoever takes the unit over.
        os._exit(128 + signum)


class RqProcess:
    """What one process of `memservice worker` does while Redis delivers the work."""

    def __init__(self, rt: Runtime, names: Sequence[str], stop: threading.Event) -> None:
        """`names`: of the queues, the most urgent first."""
        self.rt = rt
        self.stop = stop
        self.queues = JobQueues.of(rt.settings)
        self._names = tuple(names)
        self._taking = JobQueues.of(rt.settings, waits=True).named(names)
        self._reachable = True
        self._deliveries = UnitThreads(self._work)
        self._local = UnitThreads(self._work)
        self._busy_since: float | None = None

    def run(self) -> None:
        """Work until told to stop. Redis or the store being away is logged and waited for."""
        global _process
        _process = self
        with suppress(Unavailable):  # then the next probe comes at its time
            model_breaker.retry_now(self.rt)
        tender = threading.Thread(target=self._tend, name="tending", daemon=True)
        tender.start()
        with suppress(StopRequested):  # where the signal came between two workers of RQ's
            while not self.stop.is_set():
                if self._reach():
                    self._take(burst=False)
        tender.join()
        self._deliveries.close()
        self._local.close()

    def run_until_idle(self) -> None:
        """Work until nothing is ready in these queues. Raises `Unavailable` if Redis is not
        there."""
        global _process
        _process = self
        Housekeeping(self.rt).run_due()
        try:
            self.queues.connection.ping()
            with suppress(StopRequested):
                while not self.stop.is_set() and (
                    self._ready() or self._deliveries.wait(LOOK_SECONDS)
                ):
                    sweep.sweep(self.rt, self.queues)
                    self._take(burst=True)
                    self._deliveries.wait(LOOK_SECONDS)
        except RedisError as error:
            raise Unavailable(
                f"Redis cannot be reached ({error}): start it, or unset REDIS_URL to do without"
            ) from error
        finally:
            self._deliveries.close()
            self._local.close()

    def work(self, unit: str) -> None:
        """Do one job. A delivery only begins here, because the endpoint may be slow."""
        # If Redis fails here, wake-ups of this unit can be lost until the sweep.
        with suppress(RedisError):
            self.queues.begin(unit)
        if is_delivery(unit):
            self._deliveries.begin(unit)
            return
        self._busy_since = time.monotonic()
        try:
            self._work(unit)
        finally:
            self._busy_since = None

    def _work(self, unit: str) -> None:
        try:
            delivers = is_delivery(unit)
            report = run(
                self.rt,
                unit,
                self.stop,
                TimeSlice(self._deliveries.crowded if delivers else lambda: True),
            )
            if report.claimed and self._is_due(unit):
                # It gave way to others, or is to end: its turn comes again.
                if delivers and report.left and not self.stop.is_set():
                    self._deliveries.begin(unit)
                else:
                    self.queues.wake([unit])
        except RedisError:
            pass  # left to the sweep
        except Unavailable as error:
            log.error("the store cannot be reached, %s is left to the sweep: %s", unit, error)
            self.stop.wait(PAUSE_SECONDS)
        except (
            Exception
        ) as error:  # RQ would keep the error with its text, which may quote a message
            log.error(
                "working on %s failed (%s)\n%s",
                unit,
                type(error).__name__,
                redacted_traceback(error),
            )
            self.stop.wait(PAUSE_SECONDS)

    def _ready(self) -> list[str]:
        return [unit for unit in sweep.ready(self.rt) if queue_of(unit) in self._names]

    def _is_due(self, unit: str) -> bool:
        with self.rt.storage.read() as tx:
            pending = tx.tasks.pending(unit, 1)
        return bool(pending) and outbox.is_due(self.rt, pending[0])

    def _take(self, *, burst: bool) -> None:
        with suppress(RedisError):  # also when the worker takes its leave of a Redis that is away
            UnitWorker(self._taking, self.stop).work(burst=burst, logging_level="WARNING")

    def _reach(self) -> bool:
        """Is Redis there? If not, this takes a moment."""
        try:
            self.queues.connection.ping()
        except RedisError as error:
            self._away(error)
            self.stop.wait(PAUSE_SECONDS)
            return False
        if not self._reachable:
            log.warning("Redis is back")
        self._reachable = True
        return True

    def _away(self, error: Exception) -> None:
        if self._reachable:
            log.error("Redis cannot be reached, waiting for it: %s", error)
        self._reachable = False

    def _tend(self) -> None:
        """Housekeeping, and local work while the main thread waits on a model; in a thread of its
        own."""
        housekeeping = Housekeeping(self.rt)
        every = self.rt.settings.worker.sweep_interval_seconds
        due = 0.0
        while not self.stop.is_set():
            if time.monotonic() >= due:
                due = time.monotonic() + every
                try:
                    housekeeping.run_due()
                    sweep.sweep(self.rt, self.queues)
                except RedisError as error:
                    self._away(error)
                except Unavailable as error:
                    log.error("the store cannot be reached: %s", error)
                    housekeeping.free_leases_soon()
                except (
                    Exception
                ) as error:  # the next time may go better, and nobody else would do it
                    log.error(
                        "tending failed (%s)\n%s", type(error).__name__, redacted_traceback(error)
                    )
            self._do_local_work()
            self.stop.wait(min(every, LOOK_SECONDS))

    def _do_local_work(self) -> None:
        """While the job in progress takes long, work on units that need nothing outside the store:
        deletions, text indexes and timers do not wait for a model."""
        began = self._busy_since
        if began is None or time.monotonic() - began < BUSY_SECONDS:
            return
        try:
            with self.rt.storage.read() as tx:
                units = tx.tasks.ready(
                    self.rt.clock(), MAX_LOCAL_UNITS, outbox.latest(self.rt), without=NOT_LOCAL
                )
        except Unavailable:
            return  # reported by housekeeping
        for unit in units:
            if queue_of(unit) in self._names:
                self._local.begin(unit)


_process: RqProcess | None = None
"""Of this process, while it works."""


def work(unit: str) -> None:
    """Work on a unit, in the process that works at present."""
    if _process is None:
        raise RuntimeError("jobs of memservice are done by `memservice worker`")
    _process.work(unit)


class _WithoutOutages(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, RedisError) and "could not connect to Redis" not in str(
            record.msg
        )


def quiet() -> None:
    """Leave RQ's own lines about a Redis that is away out: it is told of once, by us, and without
    tracebacks."""
    logging.getLogger("rq.worker").addFilter(_WithoutOutages())
