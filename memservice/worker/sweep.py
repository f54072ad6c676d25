"""The sweep: adds ready units that have no job in Redis.

Jobs are missing after Redis was down or flushed, after a process was killed, and when a timer or a
back-off ends. The sweep finds such units some seconds later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from memservice.runtime import Runtime
from memservice.services.tasks import lease_owner, outbox
from memservice.worker.rq_queues import JobQueues

log = logging.getLogger("memservice.sweep")

UNIT = "maintenance:wake-ups"
"""The process that holds the lease of this unit is the leader."""
LEASE_SECONDS = 30.0
MAX_UNITS = 10_000
"""Units per sweep. Units beyond that became ready later."""


def ready(rt: Runtime) -> list[str]:
    """Units that are ready and not leased, the longest-waiting first."""
    with rt.storage.read() as tx:
        return tx.tasks.ready(rt.clock(), MAX_UNITS, outbox.latest(rt))


def sweep(rt: Runtime, queues: JobQueues) -> int:
    """Wake ready units whose jobs are lost; returns how many. Does nothing while another process
    sweeps. Also removes failed jobs of other programs from Redis.

    Raises `redis.RedisError` and `Unavailable`.
    """
    failed = queues.clear_failures()
    if failed:
        log.warning(
            "removed %d job(s) that another program took from the queues and that failed there, "
            "perhaps `rq worker`: only `memservice worker` can process them",
            failed,
        )
    units = ready(rt)
    return _as_leader(rt, lambda: queues.wake_lost(units)) if units else 0


def _as_leader(rt: Runtime, work: Callable[[], int]) -> int:
    owner = lease_owner.start_claim()
    try:
        lease = rt.storage.write(lambda tx: tx.tasks.claim(UNIT, owner, rt.clock(), LEASE_SECONDS))
        if lease is None:
            return 0
        try:
            woken = work()
        finally:
            rt.storage.write(lambda tx: tx.tasks.release(lease))
    finally:
        lease_owner.end_claim(owner)
    if woken:
        log.info("sweep enqueued %d ready unit(s)", woken)
    return woken
