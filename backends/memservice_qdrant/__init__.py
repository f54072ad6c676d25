"""Vectors in a Qdrant server: for many workspaces, and for more vectors than fit one database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context, Settings, VectorIndexProvider

if TYPE_CHECKING:
    from memservice.spi.vectors import VectorIndex


def _open(settings: Settings, context: Context) -> VectorIndex:
    from memservice_qdrant.vectors import open_index

    return open_index(settings)


def _erase(settings: Settings, context: Context) -> None:
    from memservice_qdrant.vectors import open_index

    open_index(settings).erase()


@hookimpl
def memservice_vector_indexes() -> Iterable[VectorIndexProvider]:
    """`VECTOR_STORE_TYPE=qdrant` and `VECTOR_STORE_URL=http://host:6333`, with
    `VECTOR_STORE_API_KEY` if the server requires a key."""
    from memservice_qdrant.settings import QdrantSettings

    yield VectorIndexProvider(
        name="qdrant",
        open=_open,
        settings=QdrantSettings,
        capabilities=frozenset({Capability.SHARED}),
        erase=_erase,
    )
