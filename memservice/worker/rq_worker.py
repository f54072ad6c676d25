"""An RQ worker: takes work units from the queues in Redis and processes them with `runner.run`.

It does not fork: one process has one opened runtime for all its jobs. Start several processes for
several workers. RQ only delivers the ids of jobs: it imports and calls no function, and has no
time-outs, retries or results. The store has those.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import signal
import socket
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

from memservice.domain.errors import SchemaVersionError, Unavailable
from memservice.domain.failures import redacted_traceback
from memservice.runtime import Runtime
from memservice.services.tasks import model_breaker, outbox
from memservice.services.tasks.kinds import KINDS, LOCAL
from memservice.worker import sweep
from memservice.worker.housekeeping import Housekeeping
from memservice.worker.rq_queues import JobQueues, queue_of
from memservice.worker.runner import run
from memservice.worker.schema import wait_for_own_schema
from memservice.worker.time_slice import TimeSlice
from memservice.worker.unit_jobs import UnitJob
from memservice.worker.unit_threads import UnitThreads, is_delivery

log = logging.getLogger("memservice.worker")

WORKER_SECONDS = 60
"""How long Redis lists an idle worker; one wait for a job is about as long."""
JOB_SECONDS = 3_600
"""How long Redis lists a worker with a job in progress. Only RQ's own lists depend on it."""
PAUSE_SECONDS = 1.0
"""Pause after the store or Redis could not be reached."""
POLL_SECONDS = 0.5
"""How often a worker checks for a stop, and for local work while it waits on a model."""
BUSY_SECONDS = 1.0
"""While a job takes longer than this, other threads of the process do local work."""
MAX_LOCAL_UNITS = 10
NOT_LOCAL = tuple(kind.name for kind in KINDS.values() if kind.lane != LOCAL)


class UnitWorker(SimpleWorker):
    """RQ's worker for units. On the first SIGTERM it finishes the current batch and releases its
    unit; on the second it ends at once."""

    max_connection_wait_time = 5.0

    def __init__(self, queues: Sequence[Queue], stop: threading.Event) -> None:
        super().__init__(
            list(queues),
            name=_new_name(),
            connection=queues[0].connection,
            serializer=JSONSerializer,
            job_class=UnitJob,
            worker_ttl=WORKER_SECONDS,
        )
        self.log_job_description = False
        self.stop = stop
        self._job_running = False

    def execute_job(self, job: Job, queue: Queue) -> None:
        """RQ's own method imports the function that the job names. This one removes the job and
        works on its unit."""
        self._job_running = True
        try:
            with self.connection.pipeline() as pipeline:
                pipeline.delete(job.key, job.dependents_key)
                pipeline.lrem(queue.intermediate_queue_key, 1, job.id)
                pipeline.execute()
            unit = job.unit if isinstance(job, UnitJob) else None
            if unit is None:
                log.error(
                    "refused a job in the queue %s: memservice did not enqueue it", queue.name
                )
                return
            self.heartbeat(JOB_SECONDS)
            work(unit)
        finally:
            self._job_running = False

    def clean_registries(self) -> None:
        """RQ's own method reads its lists of jobs and calls the failure callback of each. Here the
        lists are empty: the sweep enqueues lost jobs again, from the store."""
        for queue in self.queues:
            clean_worker_registry(queue)
            # Ids of jobs whose worker was killed after it took them and before they began.
            self.connection.delete(queue.intermediate_queue_key)
        self.last_cleaned_at = now()  # type: ignore[assignment]  # RQ declares it as None

    def run_maintenance_tasks(self) -> None:
        self.clean_registries()

    def subscribe(self) -> None:
        """Ignore commands from Redis: signals end processes."""

    def unsubscribe(self) -> None:
        pass

    def check_for_suspension(self, burst: bool) -> None:
        if self.stop.is_set():
            raise StopRequested
        super().check_for_suspension(burst)

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        # Unlike RQ's own method, this does not call Redis: the signal can arrive during a job.
        self.stop.set()
        self._stop_requested = True
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.request_force_stop)
        if not self._job_running:
            raise StopRequested

    def request_force_stop(self, signum: int, frame: FrameType | None) -> None:
        # The current batch is not stored yet. The next worker of the unit does it again.
        os._exit(128 + signum)


def _new_name() -> str:
    """The name that RQ's tools show: host, pid, and a part that distinguishes containers with the
    same host name and later workers of the same process."""
    host = re.sub(r"[^\w.-]", "-", socket.gethostname())
    return f"{host}.{os.getpid()}.{secrets.token_hex(3)}"


class RqProcess:
    """One process of `memservice worker` that gets its work from Redis."""

    def __init__(self, rt: Runtime, names: Sequence[str], stop: threading.Event) -> None:
        """`names`: names of queues, the most urgent first."""
        self.rt = rt
        self.stop = stop
        self.queues = JobQueues.of(rt.settings)
        self._names = tuple(names)
        self._taking = JobQueues.of(rt.settings, waits=True).named(names)
        self._reachable = True
        self._deliveries = UnitThreads(self._work)
        self._local = UnitThreads(self._work)
        self._busy_since: float | None = None
        self._schema_lock = threading.Lock()

    def run(self) -> None:
        """Work until `stop` is set. If Redis or the store cannot be reached, log it and wait."""
        global _process
        _process = self
        self.rt.open_background_models()
        with suppress(Unavailable):  # the next scheduled probe tries again
            model_breaker.retry_now(self.rt)
        housekeeper = threading.Thread(
            target=self._housekeeping_loop, name="housekeeping", daemon=True
        )
        housekeeper.start()
        with suppress(StopRequested):  # raised if the signal arrives between two RQ workers
            while not self.stop.is_set():
                if self._can_reach_queues():
                    self._take_jobs(burst=False)
        housekeeper.join()
        self._deliveries.close()
        self._local.close()

    def run_until_idle(self) -> None:
        """Work until nothing is ready in these queues. Raises `Unavailable` if Redis cannot be
        reached."""
        global _process
        _process = self
        Housekeeping(self.rt).run_due()
        try:
            self.queues.connection.ping()
            with suppress(StopRequested):
                while not self.stop.is_set() and (
                    self._ready() or self._deliveries.wait(POLL_SECONDS)
                ):
                    sweep.sweep(self.rt, self.queues)
                    self._take_jobs(burst=True)
                    self._deliveries.wait(POLL_SECONDS)
        except RedisError as error:
            raise Unavailable(
                f"Redis cannot be reached ({error}): start it, or unset REDIS_URL"
            ) from error
        finally:
            self._deliveries.close()
            self._local.close()

    def work(self, unit: str) -> None:
        """Do one job. A delivery continues in another thread, because the endpoint may be slow."""
        # If Redis fails here, wake-ups of this unit can be lost. The sweep finds the unit.
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
                # Its time slice ended, or the process stops: enqueue it again.
                if delivers and report.more_due and not self.stop.is_set():
                    self._deliveries.begin(unit)
                else:
                    self.queues.wake([unit])
        except RedisError:
            pass  # the sweep enqueues the unit
        except SchemaVersionError as error:
            self._wait_for_own_schema(error)
        except Unavailable as error:
            log.error("the store cannot be reached, the sweep will enqueue %s: %s", unit, error)
            self.stop.wait(PAUSE_SECONDS)
        except (
            Exception
        ) as error:  # RQ would store the text of the error, which may quote a message
            log.error(
                "processing %s failed (%s)\n%s",
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

    def _take_jobs(self, *, burst: bool) -> None:
        with suppress(RedisError):  # also raised when the worker unregisters
            UnitWorker(self._taking, self.stop).work(burst=burst, logging_level="WARNING")

    def _can_reach_queues(self) -> bool:
        """Whether Redis can be reached. Pauses if it cannot."""
        try:
            self.queues.connection.ping()
        except RedisError as error:
            self._note_outage(error)
            self.stop.wait(PAUSE_SECONDS)
            return False
        if not self._reachable:
            log.warning("Redis is reachable again")
        self._reachable = True
        return True

    def _note_outage(self, error: Exception) -> None:
        if self._reachable:
            log.error("Redis cannot be reached, waiting for it: %s", error)
        self._reachable = False

    def _housekeeping_loop(self) -> None:
        """Housekeeping, and local work while the main thread waits on a model."""
        housekeeping = Housekeeping(self.rt)
        every = self.rt.settings.worker.sweep_interval_seconds
        next_run = 0.0
        while not self.stop.is_set():
            if time.monotonic() >= next_run:
                next_run = time.monotonic() + every
                try:
                    housekeeping.run_due()
                    sweep.sweep(self.rt, self.queues)
                except RedisError as error:
                    self._note_outage(error)
                except SchemaVersionError as error:
                    self._wait_for_own_schema(error)
                    housekeeping.free_leases_soon()
                except Unavailable as error:
                    log.error("the store cannot be reached: %s", error)
                    housekeeping.free_leases_soon()
                except Exception as error:  # one failure must not stop later runs
                    log.error(
                        "housekeeping failed (%s)\n%s",
                        type(error).__name__,
                        redacted_traceback(error),
                    )
            self._do_local_work()
            self.stop.wait(min(every, POLL_SECONDS))

    def _wait_for_own_schema(self, error: SchemaVersionError) -> None:
        """In any of this process's threads; the first one logs it."""
        with self._schema_lock:
            try:
                self.rt.storage.check()
            except SchemaVersionError:
                wait_for_own_schema(self.rt, error, self.stop)

    def _do_local_work(self) -> None:
        """While the current job takes long, work on units that need only the store, such as
        deletions, text indexes and timers."""
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
"""The RQ worker of this process while it runs."""


def work(unit: str) -> None:
    """Work on a unit in the current `RqProcess`."""
    if _process is None:
        raise RuntimeError("only `memservice worker` can process jobs of memservice")
    _process.work(unit)


class _WithoutOutages(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, RedisError) and "could not connect to Redis" not in str(
            record.msg
        )


def hide_outages() -> None:
    """Hide RQ's log lines about an unreachable Redis: memservice logs this once, without a
    traceback."""
    logging.getLogger("rq.worker").addFilter(_WithoutOutages())
