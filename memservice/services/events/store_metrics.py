"""Metrics that need the store: pending embeddings, finished tasks by workspace, connections."""

from __future__ import annotations

from collections.abc import Callable

from memservice.domain.filters import equals
from memservice.domain.records import PENDING, Task
from memservice.services.tasks import kinds, model_breaker
from memservice.spi.storage import Pooled, Storage
from memservice.telemetry.metrics import Metrics

MAX_NAMES = 10_000
"""Maximum number of cached workspace names."""


def count_pending(storage: Storage, metrics: Metrics) -> None:
    """Set the numbers of pending embeddings and of unavailable models. Call this when the metrics
    are read. Raises `Unavailable`."""
    with storage.read() as tx:
        embeddings = tx.rows.count(Task, equals(kind=kinds.EMBED, state=PENDING))
        metrics.pending(embeddings, len(model_breaker.current(tx)))


class TaskCounter:
    """Counts finished tasks under the names of their workspaces."""

    def __init__(self, storage: Storage, metrics: Metrics) -> None:
        self._storage = storage
        self._metrics = metrics
        self._names: dict[int, str] = {}

    def __call__(self, kind: str, workspace_key: int | None, number: int) -> None:
        name = "" if workspace_key is None else self._name(workspace_key)
        self._metrics.worked(kind, name, number)

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
    """A function that sets the metrics of the connection pool, if the storage has one."""

    def sample() -> None:
        state = storage.pool() if isinstance(storage, Pooled) else None
        if state is not None:
            metrics.pool(state.in_use, state.idle, state.size, state.overflow)

    return sample
