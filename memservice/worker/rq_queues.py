"""The queues in Redis: jobs for RQ workers. Urgent units have separate queues.

Redis only holds copies of what is in the store. It can lose them at any time: the sweep enqueues
them again.

The id of a unit's job is a hash of the unit and its epoch. The epoch rises when a job begins,
before the unit is claimed. All wake-ups before that share one job; a wake-up after it makes another
job, so a job in progress cannot swallow it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memservice.domain.errors import ConfigurationError
from memservice.services.tasks.kinds import MAINTENANCE_QUEUE, kind_of
from memservice.services.tasks.kinds import QUEUES as QUEUES
from memservice.settings import Settings

if TYPE_CHECKING:
    from redis import Redis
    from rq import Queue

CONNECT_SECONDS = ANSWER_SECONDS = 1.0
"""Longest wait for Redis, except for a worker that takes jobs."""
MAX_CLEARED = 1_000
"""Failed jobs of one queue that are removed at once."""
EPOCH_SECONDS = 86_400
"""How long an epoch is stored after it rose; longer than any job takes."""


def queue_of(unit: str) -> str:
    """The RQ queue of a unit. Units of unknown kinds are maintenance."""
    kind = kind_of(unit)
    return MAINTENANCE_QUEUE if kind is None else kind.queue


def connect(url: str, *, waits: bool = False) -> Redis:
    """A connection to the Redis at `url`; nothing is sent yet. `waits`: without a time-out, for a
    worker that takes jobs."""
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    try:
        return Redis.from_url(
            url,
            socket_connect_timeout=CONNECT_SECONDS,
            socket_timeout=None if waits else ANSWER_SECONDS,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError as error:
        raise ConfigurationError(
            f"REDIS_URL is not a Redis URL: {error}. Example: redis://127.0.0.1:6379/0"
        ) from error


class JobQueues:
    """Jobs of one installation. NAMESPACE separates installations that share one Redis."""

    def __init__(self, connection: Redis, namespace: str) -> None:
        from rq import Queue
        from rq.serializers import JSONSerializer

        from memservice.worker.unit_jobs import UnitJob

        self.connection = connection
        self._namespace = namespace
        self._queues: dict[str, Queue] = {
            name: Queue(
                f"{namespace}:{name}",
                connection=connection,
                job_class=UnitJob,
                serializer=JSONSerializer,
            )
            for name in QUEUES
        }

    @classmethod
    def of(cls, settings: Settings, *, waits: bool = False) -> JobQueues:
        """With the settings REDIS_URL, which must be set, and NAMESPACE."""
        return cls(connect(settings.app.redis_url or "", waits=waits), settings.app.namespace)

    def named(self, names: Iterable[str]) -> list[Queue]:
        return [self._queues[name] for name in names]

    def wake(self, units: Sequence[str]) -> int:
        """Enqueue a job for each unit without a queued one; returns how many. Raises
        `redis.RedisError`."""
        return sum(
            self._enqueue(unit, epoch)
            for unit, epoch in zip(units, self._epochs(units), strict=True)
        )

    def wake_lost(self, units: Sequence[str]) -> int:
        """Like `wake`, but checks the queues: a job that is in no queue is enqueued again."""
        names = {queue_of(unit) for unit in units}
        queued = {id for queue in self.named(names) for id in queue.get_job_ids()}
        enqueued = 0
        for unit, epoch in zip(units, self._epochs(units), strict=True):
            id = self._id(unit, epoch)
            if id in queued:
                continue
            if self._enqueue(unit, epoch):
                enqueued += 1
            elif self._queues[queue_of(unit)].get_job_position(id) is None:
                # The job exists but is in no queue: its process was killed, or is starting it
                # right now. In the second case the new job finds the unit claimed, and ends.
                enqueued += self._enqueue(unit, self.begin(unit))
        return enqueued

    def begin(self, unit: str) -> int:
        """Record that a job of this unit begins: later wake-ups enqueue another job. Returns the
        new epoch."""
        key = self._epoch_key(unit)
        pipeline = self.connection.pipeline()
        pipeline.incr(key)
        pipeline.expire(key, EPOCH_SECONDS)
        return int(pipeline.execute()[0])

    def clear_failures(self) -> int:
        """Remove the jobs that RQ lists as failed, and from its list of jobs in progress those that
        are overdue; returns the number of failed ones. Only programs other than `memservice worker`
        put jobs there, and their work is in the store."""
        from rq.job import Job
        from rq.results import Result

        cleared = 0
        for queue in self._queues.values():
            failed, started = queue.failed_job_registry, queue.started_job_registry
            self.connection.zremrangebyscore(started.key, 0, int(time.time()))
            ids = failed.get_job_ids(0, MAX_CLEARED - 1, cleanup=False)
            if ids:
                pipeline = self.connection.pipeline()
                pipeline.delete(*map(Job.key_for, ids), *map(Result.get_key, ids))
                pipeline.zrem(failed.key, *ids)
                pipeline.execute()
                cleared += len(ids)
        return cleared

    def _enqueue(self, unit: str, epoch: int) -> bool:
        from rq.exceptions import DuplicateJobError

        from memservice.worker.unit_jobs import FUNCTION

        try:
            self._queues[queue_of(unit)].enqueue_call(
                FUNCTION,
                args=(unit,),
                job_id=self._id(unit, epoch),
                timeout=-1,
                result_ttl=0,
                description=unit,
                unique=True,
            )
        except DuplicateJobError:
            return False
        return True

    def _epochs(self, units: Sequence[str]) -> list[int]:
        epochs = self.connection.mget([self._epoch_key(unit) for unit in units]) if units else []
        return [int(epoch or 0) for epoch in epochs]

    def _epoch_key(self, unit: str) -> str:
        return f"{self._namespace}:epoch:{_digest(unit)}"

    def _id(self, unit: str, epoch: int) -> str:
        return _digest(f"{self._namespace}|{unit}|{epoch}")


def _digest(text: str) -> str:
    """A valid id of RQ: letters, digits, `_` and `-`."""
    return hashlib.sha256(text.encode()).hexdigest()[:40]
