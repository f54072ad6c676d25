"""Metrics of the whole installation, read from the store: the backlog, the workers, and whether
Redis and the vector index answer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from datetime import datetime

from memservice.domain.errors import MemserviceError
from memservice.domain.records import FAILED, PENDING
from memservice.runtime import Runtime
from memservice.services import index_probe
from memservice.services.tasks import kinds, model_breaker
from memservice.spi.repositories import KindCount
from memservice.telemetry import metrics as names
from memservice.telemetry.metrics import Metrics
from memservice.worker import heartbeats, rq_queues

log = logging.getLogger("memservice.metrics")

EVERY_SECONDS = 15.0
"""Least time between two collections in one process."""
MAX_COUNTED = 100_000
"""Pending tasks that are counted, and as many failed ones."""
STORE, REDIS, VECTOR_INDEX = "store", "redis", "vector_index"


class InstallationMetrics:
    """Sets the gauges when it is called, at most every `EVERY_SECONDS`. Never raises because a part
    cannot be reached."""

    def __init__(self, rt: Runtime, metrics: Metrics, every: float = EVERY_SECONDS) -> None:
        self._rt = rt
        self._metrics = metrics
        self._every = every
        self._next = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> None:
        if not self._lock.acquire(blocking=False):
            return  # another thread is collecting
        try:
            if time.monotonic() >= self._next:
                self._collect()
                self._next = time.monotonic() + self._every
        finally:
            self._lock.release()

    def _collect(self) -> None:
        rt, metrics = self._rt, self._metrics
        is_up = self._read_store()
        metrics.part(STORE, is_up)
        if rt.settings.app.redis_url:
            metrics.part(REDIS, self._queues_answer(rt.settings.app.redis_url))
        metrics.part(VECTOR_INDEX, is_up if rt.vectors_transactional else self._index_answers())

    def _read_store(self) -> bool:
        now = self._rt.clock()
        try:
            with self._rt.storage.read() as tx:
                counts = tx.tasks.backlog(now, MAX_COUNTED)
                workers = len(heartbeats.workers(tx, now))
                outages = len(model_breaker.current(tx))
        except MemserviceError:
            return False  # the last numbers stay
        embeddings = [count for count in counts if count.kind == kinds.EMBED]
        for kind in kinds.KINDS:
            self._set(kind, [count for count in counts if count.kind == kind], now)
        self._metrics.pending(
            sum(count.tasks for count in embeddings if count.state == PENDING), outages
        )
        self._metrics.alive(workers)
        return True

    def _set(self, kind: str, counts: Sequence[KindCount], now: datetime) -> None:
        numbers = dict.fromkeys((names.DUE, names.WAITING, names.RUNNING, names.FAILED), 0)
        for count in counts:
            numbers[_state(count)] += count.tasks
        due = [count.oldest for count in counts if _state(count) == names.DUE]
        age = max(0.0, (now - min(due)).total_seconds()) if due else 0.0
        self._metrics.tasks_of(kind, numbers, age)

    def _queues_answer(self, url: str) -> bool:
        from redis import RedisError

        try:
            with rq_queues.connect(url) as client:
                return bool(client.ping())
        except (RedisError, MemserviceError, ValueError):
            return False

    def _index_answers(self) -> bool:
        try:
            index_probe.ask(self._rt)
        except Exception as error:  # a driver may raise anything
            log.debug("the vector index does not answer: %s", type(error).__name__)
            return False
        return True


def _state(count: KindCount) -> str:
    if count.state == FAILED:
        return names.FAILED
    if count.working:
        return names.RUNNING
    return names.DUE if count.due else names.WAITING
