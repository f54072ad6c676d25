"""The machines and processes of this installation."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

import memservice
from memservice.runtime import Runtime
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.tasks import kinds
from memservice.worker import heartbeats
from memservice.worker.heartbeats import Process


class Running(Struct, frozen=True):
    process: Process
    units: Sequence[str]
    """The work units that it is working on."""


class Instance(Struct, frozen=True):
    processes: Sequence[Running]
    """Servers first."""
    versions: Sequence[str]
    """All releases of memservice that processes run, including this one."""
    queues_without_worker: Sequence[str] = ()
    """Queues in Redis without a worker, the most urgent first."""

    @property
    def is_mixed(self) -> bool:
        return len(self.versions) > 1


def look(rt: Runtime, principal: Principal) -> Instance:
    """The processes of all machines that sent a heartbeat within the last minute."""
    policy.require_admin(principal, needs=Permission.VIEW)
    now = rt.clock()
    with rt.storage.read() as tx:
        processes = [*heartbeats.servers(tx, now), *heartbeats.workers(tx, now)]
        leases = [lease for lease in tx.tasks.leases() if lease.expires_at > now]
    running = [
        Running(process, sorted(lease.unit for lease in leases if process.holds(lease.owner)))
        for process in processes
    ]
    versions = {process.version or "unknown" for process in processes} | {memservice.__version__}
    return Instance(running, sorted(versions), _without_worker(rt, processes))


def _without_worker(rt: Runtime, processes: Sequence[Process]) -> list[str]:
    """Empty while no worker runs at all (`memservice doctor` reports it), and without Redis."""
    workers = [process for process in processes if process.kind == heartbeats.WORKER]
    if not rt.settings.app.redis_url or not workers:
        return []
    taken = {queue for worker in workers for queue in worker.queues}
    return [queue for queue in kinds.QUEUES if queue not in taken]
