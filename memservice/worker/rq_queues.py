"""The queues in Redis: work units wait there for RQ workers, the urgent ones in queues of their
own.

What is in Redis is a copy of what the store knows already. It may be lost at any time: the sweep
puts it there again.

The id of a unit's job is a hash of the unit and its epoch, which rises when a job begins, before
the unit is claimed. All wake-ups before that are one job, and a wake-up after it is another one,
which no job that is still in flight can swallow.
"""

from __future__ import annotations

import hashlib
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
"""Longest wait for Redis, where it is only told of something."""
EPOCH_SECONDS = 86_400
"""How long an epoch is remembered after it rose; longer than any job is in flight."""


def queue_of(unit: str) -> str:
    """The RQ queue of a unit. Units of unknown kinds are maintenance."""
    kind = kind_of(unit)
    return MAINTENANCE_QUEUE if kind is None else kind.queue


def connect(url: str, *, waits: bool = False) -> Redis:
    """A connection to the Redis at `url`; nothing is sent yet. `waits`: for a worker, who waits for
    jobs as long as it likes."""
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
            f"REDIS_URL is not one: {error}. Write for instance redis://127.0.0.1:6379/0"
        ) from error


class JobQueues:
    """Jobs of one installation: NAMESPACE keeps those of several apart that share one Redis."""

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
        """As REDIS_URL, which has to be set, and NAMESPACE say."""
        return cls(connect(settings.app.redis_url or "", waits=waits), settings.app.namespace)

    def named(self, names: Iterable[str]) -> list[Queue]:
        return [self._queues[name] for name in names]

    def wake(self, units: Sequence[str]) -> int:
        """Make a job of each unit that has none waiting; returns how many were made. Raises
        `redis.RedisError`."""
        return sum(
            self._enqueue(unit, epoch)
            for unit, epoch in zip(units, self._epochs(units), strict=True)
        )

    def wake_lost(self, units: Sequence[str]) -> int:
        """As `wake`, for units of which nobody knows whether their jobs are still waiting: one that
        is in no queue is made again."""
        names = {queue_of(unit) for unit in units}
        waiting = {id for queue in self.named(names) for id in queue.get_job_ids()}
        made = 0
        for unit, epoch in zip(units, self._epochs(units), strict=True):
            id = self._id(unit, epoch)
            if id in waiting:
                continue
            if self._enqueue(unit, epoch):
                made += 1
            elif self._queues[queue_of(unit)].get_job_position(id) is None:
                # A job that is in no queue, yet there: its process was killed, or takes it up this
                # moment. Then a second job finds the unit claimed, and ends.
                made += self._enqueue(unit, self.begin(unit))
        return made

    def begin(self, unit: str) -> int:
        """A job of this unit begins: whoever wakes it from now on makes another one. Returns the
        new epoch."""
        key = self._epoch_key(unit)
        pipeline = self.connection.pipeline()
        pipeline.incr(key)
        pipeline.expire(key, EPOCH_SECONDS)
        return int(pipeline.execute()[0])

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
        found = self.connection.mget([self._epoch_key(unit) for unit in units]) if units else []
        return [int(epoch or 0) for epoch in found]

    def _epoch_key(self, unit: str) -> str:
        return f"{self._namespace}:epoch:{_digest(unit)}"

    def _id(self, unit: str, epoch: int) -> str:
        return _digest(f"{self._namespace}|{unit}|{epoch}")


def _digest(text: str) -> str:
    """RQ's ids are letters, digits, `_` and `-`."""
    return hashlib.sha256(text.encode()).hexdigest()[:40]
