"""Metrics that need the store: finished tasks by workspace, and connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memservice.services.tasks import kinds
from memservice.spi.storage import Pooled, Replicated, Storage
from memservice.telemetry.metrics import DEAD_LETTER, DELIVERED, TO_BE_RETRIED, Metrics

MAX_NAMES = 10_000
"""Maximum number of cached workspace names."""


class TaskCounter:
    """Counts finished tasks under the names of their workspaces, failures by the class of their
    error, and deliveries by their outcome."""

    def __init__(self, storage: Storage, metrics: Metrics) -> None:
        self._storage = storage
        self._metrics = metrics
        self._names: dict[int, str] = {}

    def done(
        self, kind: str, workspace_key: int | None, number: int, outcome: Mapping[str, object]
    ) -> None:
        name = "" if workspace_key is None else self._name(workspace_key)
        self._metrics.worked(kind, name, number)
        if kind == kinds.WEBHOOK and "delivered" in outcome:
            self._metrics.delivery(DELIVERED)

    def failed(self, kind: str, error: str, is_final: bool) -> None:
        self._metrics.failure(kind, error)
        if kind == kinds.WEBHOOK:
            self._metrics.delivery(DEAD_LETTER if is_final else TO_BE_RETRIED)

    def _name(self, workspace_key: int) -> str:
        name = self._names.get(workspace_key)
        if name is None:
            with self._storage.read() as tx:
                workspace = tx.workspaces.by_key(workspace_key)
            if len(self._names) >= MAX_NAMES:
                self._names.clear()
            name = self._names[workspace_key] = workspace.slug if workspace is not None else ""
        return name


def pool_sampler(storage: Storage, metrics: Metrics) -> Callable[[], None]:
    """A function that sets the metrics of the connection pool and of reads from a replica, if the
    storage has them."""
    # Checked once: for a class with methods only, the check takes a tenth of a short request.
    pooled = storage if isinstance(storage, Pooled) else None
    replicated = storage if isinstance(storage, Replicated) else None

    def sample() -> None:
        state = pooled.pool() if pooled is not None else None
        if state is not None:
            metrics.pool(state.in_use, state.idle, state.size, state.overflow)
        reads = replicated.replica_reads() if replicated is not None else None
        if reads is not None:
            metrics.replica(reads.replica, reads.behind, reads.away)

    return sample
