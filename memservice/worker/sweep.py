"""The sweep: whatever is ready and waits in no queue is put into one, whyever it is not there.

Redis was down or flushed, a process was killed, a timer or a back-off ran out: all of that is found
here, some seconds later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from memservice.runtime import Runtime
from memservice.services.tasks import lease_owner, outbox
from memservice.worker.rq_queues import JobQueues

log = logging.getLogger("memservice.sweep")

UNIT = "maintenance:wake-ups"
"""Its lease makes one process the leader at a time, however many there are."""
LEASE_SECONDS = 30.0
MAX_UNITS = 10_000
"""Units that are looked at together. Beyond them are those that became ready later."""


def ready(rt: Runtime) -> list[str]:
    """Units with something to do now that nobody works on, the longest-waiting first."""
    with rt.storage.read() as tx:
        return tx.tasks.ready(rt.clock(), MAX_UNITS, outbox.latest(rt))


def sweep(rt: Runtime, queues: JobQueues) -> int:
    """Wake ready units whose jobs are lost; returns how many. Does nothing while another process
    does it.

    Raises `redis.RedisError` and `Unavailable`.
    """
    units = ready(rt)
    return _as_leader(rt, lambda: queues.wake_lost(units)) if units else 0


def _as_leader(rt: Runtime, work: Callable[[], int]) -> int:
    mine = lease_owner.this_process()
    try:
        lease = rt.storage.write(lambda tx: tx.tasks.claim(UNIT, mine, rt.clock(), LEASE_SECONDS))
        if lease is None:
            return 0
        try:
            made = work()
        finally:
            rt.storage.write(lambda tx: tx.tasks.release(lease))
    finally:
        lease_owner.ended(mine)
    if made:
        log.info("%d unit(s) were ready that nobody had been woken for", made)
    return made
