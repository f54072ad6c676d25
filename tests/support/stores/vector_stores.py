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
def redis_store() -> Iterator[tuple[dict[str, str], Redis]]:
    """The settings of an empty index in Redis, and a client of that Redis."""
    with redis_vectors.opened() as client:
        namespace = redis_vectors.namespace()
        settings = {
            "VECTOR_STORE_TYPE": "redis",
            "VECTOR_STORE_URL": redis_vectors.url(),
            "VECTOR_STORE_NAMESPACE": namespace,
        }
        try:
            yield settings, client
        finally:
            redis_vectors.erase(client, namespace)


@contextmanager
def vector_store(name: str) -> Iterator[dict[str, str]]:
    """The settings of an empty index of that kind; none for the storage's own. Qdrant is real where
    the environment names one, else the one in the process."""
    if name == "qdrant":
        yield {
            "VECTOR_STORE_TYPE": "qdrant",
            "VECTOR_STORE_URL": os.environ.get(QDRANT, ":memory:"),
            "VECTOR_STORE_NAMESPACE": redis_vectors.namespace(),
        }
    elif name == "redis":
        with redis_store() as (settings, _):
            yield settings
    else:
        yield {}
