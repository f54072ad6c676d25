"""The storage in memory: for tests, and as the simplest implementation of the storage contract.
Its rows are lost when the process ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memservice.hookspecs import hookimpl
from memservice.spi.providers import Context, Settings, StorageProvider

if TYPE_CHECKING:
    from memservice.spi.storage import Storage


def _open(settings: Settings, context: Context) -> Storage:
    from memservice_memory.storage import MemoryStorage

    return MemoryStorage()


@hookimpl
def memservice_storages() -> Iterable[StorageProvider]:
    """`DB_CONNECTION_URI=memory://`. Each call of `open` creates a separate store."""
    yield StorageProvider(name="memory", schemes=("memory",), open=_open)
