"""Vectors in the vector sets of Redis 8 or newer. The same server may also carry the queues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context, Settings, VectorIndexProvider

if TYPE_CHECKING:
    from memservice.spi.vectors import VectorIndex


def _open(settings: Settings, context: Context) -> VectorIndex:
    from memservice_redis.vectors import open_index

    return open_index(settings, context.logger)


def _erase(settings: Settings, context: Context) -> None:
    from memservice_redis.vectors import open_index

    open_index(settings, context.logger).erase()


@hookimpl
def memservice_vector_indexes() -> Iterable[VectorIndexProvider]:
    """`VECTOR_STORE_TYPE=redis` and `VECTOR_STORE_URL=redis://host:6379/0`."""
    from memservice_redis.settings import RedisSettings

    yield VectorIndexProvider(
        name="redis",
        open=_open,
        settings=RedisSettings,
        capabilities=frozenset({Capability.SHARED}),
        erase=_erase,
    )
