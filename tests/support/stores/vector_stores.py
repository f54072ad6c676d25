"""Vector indexes outside the storage, for tests that run on them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from redis import Redis

from memservice.hookspecs import hookimpl
from memservice.spi.providers import VectorIndexProvider
from support.stores import redis_vectors

QDRANT = "MEMSERVICE_TEST_QDRANT_URL"


class _Opened:
    """Offers an index that is open already."""

    def __init__(self, client: Redis, namespace: str) -> None:
        self._index = redis_vectors.index_at(client, namespace)

    @hookimpl
    def memservice_vector_indexes(self) -> Iterable[VectorIndexProvider]:
        yield VectorIndexProvider(name="redis-stand-in", open=lambda settings, context: self._index)


class _Offered:
    """Offers an index of Qdrant's local mode, which keeps its files in a folder."""

    name = "qdrant-local"

    def __init__(self, folder: Path) -> None:
        from qdrant_client import QdrantClient  # slow to import

        from memservice_qdrant.vectors import IN_PROCESS, QdrantVectorIndex

        self.client = QdrantClient(path=str(folder))
        self._index = QdrantVectorIndex(self.client, IN_PROCESS)

    @hookimpl
    def memservice_vector_indexes(self) -> Iterable[VectorIndexProvider]:
        yield VectorIndexProvider(name=self.name, open=lambda settings, context: self._index)


@contextmanager
def local_qdrant(folder: Path) -> Iterator[tuple[dict[str, str], Sequence[object]]]:
    """The settings and plugins of an empty index of Qdrant in this folder."""
    offered = _Offered(folder)
    with closing(offered.client):
        yield {"VECTOR_STORE_TYPE": offered.name}, (offered,)


@contextmanager
def opened_index() -> Iterator[tuple[dict[str, str], Sequence[object], Redis]]:
    """The settings and plugins of an empty index in the stand-in for a Redis with vector sets, and
    its client."""
    with closing(redis_vectors.client_of("stand-in")) as client:
        offered = _Opened(client, redis_vectors.namespace())
        yield {"VECTOR_STORE_TYPE": "redis-stand-in"}, (offered,), client


@contextmanager
def vector_store(name: str) -> Iterator[tuple[dict[str, str], Sequence[object]]]:
    """The settings of an empty index of that kind, and the plugins that it takes; nothing of either
    for the storage's own. Qdrant and Redis are real where the environment names one (a Redis that
    has vector sets), else the one in the process, or a stand-in."""
    if name == "qdrant":
        qdrant, namespace = os.environ.get(QDRANT, ":memory:"), redis_vectors.namespace()
        yield (
            {
                "VECTOR_STORE_TYPE": "qdrant",
                "VECTOR_STORE_URL": qdrant,
                "VECTOR_STORE_NAMESPACE": namespace,
            },
            (),
        )
    elif name == "redis":
        url, namespace = redis_vectors.real_url(), redis_vectors.namespace()
        with closing(Redis.from_url(url) if url else redis_vectors.client_of("stand-in")) as client:
            if url:
                yield (
                    {
                        "VECTOR_STORE_TYPE": "redis",
                        "VECTOR_STORE_URL": url,
                        "VECTOR_STORE_NAMESPACE": namespace,
                    },
                    (),
                )
            else:
                yield {"VECTOR_STORE_TYPE": "redis-stand-in"}, (_Opened(client, namespace),)
            redis_vectors.erase(client, namespace)
    else:
        yield {}, ()
