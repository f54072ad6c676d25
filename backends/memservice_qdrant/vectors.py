"""Vectors in Qdrant: one point per space and row, in the collection for the space's kind, embedder
and dimension."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID, uuid5

import numpy as np
from httpx import InvalidURL
from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from memservice.domain.errors import ConfigurationError, IndexUnavailable
from memservice.domain.records import Space
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import IndexFilter, matches_nothing
from memservice.spi.providers import Settings
from memservice.spi.top_k import stable_top_k
from memservice.spi.unit_vectors import checked, unit
from memservice.spi.vectors import VectorHit, VectorRow
from memservice_qdrant.collections import Collections, collection_of, is_missing, is_of
from memservice_qdrant.conditions import of_space, payload_of, tenant_of

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction
    from memservice.spi.vectors import Vector

IN_PROCESS = ":memory:"
NAMESPACE = "memservice"
"""The default, if the settings name none."""
POINTS = UUID("a6a6b5d4-6f0c-5d0b-9a52-0a4b6f3f4a51")
"""The UUID namespace of point ids. Never changes: points of older releases would become
unreachable."""
BATCH_SIZE = 200
ID_BATCH_SIZE = 1_000
READ_BATCH_SIZE = 200

T = TypeVar("T")


class QdrantVectorIndex:
    """The `VectorIndex` of a Qdrant server, which holds all state. Safe for threads and
    processes."""

    capabilities: frozenset[Capability]

    def __init__(
        self,
        client: QdrantClient,
        location: str,
        namespace: str = NAMESPACE,
        **collection_options: Any,
    ) -> None:
        """`location`: the server's address for messages; `collection_options`: for new
        collections."""
        self._client = client
        self._location = location
        self._namespace = namespace
        in_process = location == IN_PROCESS
        self.capabilities = frozenset() if in_process else frozenset({Capability.SHARED})
        # The client's in-process mode is always exact, and warns about `exact`.
        self._exact = None if in_process else models.SearchParams(exact=True)
        self._collections = Collections(client, collection_options, in_process)
        # The client's in-process mode is not safe for threads.
        self._client_lock: threading.Lock | nullcontext[None] = (
            threading.Lock() if in_process else nullcontext()
        )

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
        """Store vectors and replace those of the same rows. A zero vector removes the row's vector.

        Raises ValueError if a vector does not have the space's dimension, or has a number that is
        not finite.
        """
        unique = {row.key: (row, checked(space, row.vector)) for row in rows}
        points = [
            models.PointStruct(
                id=_point(space, row.key),
                vector=unit(vector[None, :])[0].tolist(),
                payload=payload_of(space, row),
            )
            for row, vector in unique.values()
            if vector.any()
        ]
        self.delete(tx, space, [key for key, (_, vector) in unique.items() if not vector.any()])
        for batch in _batches(points, BATCH_SIZE):
            self._store(space, batch)

    def delete(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> None:
        for batch in _batches(keys, ID_BATCH_SIZE):
            point_ids: list[int | str | UUID] = [_point(space, key) for key in batch]
            with self._existing(space) as name:
                self._client.delete(
                    name, points_selector=models.PointIdsList(points=point_ids), wait=True
                )

    def query(
        self,
        tx: Transaction | None,
        space: Space,
        vector: Vector,
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int] | None = None,
    ) -> list[VectorHit]:
        """See `VectorIndex.query`. A zero vector has no hits. Raises ValueError as `upsert`
        does."""
        query_vector = checked(space, vector)
        if k <= 0 or not query_vector.any() or matches_nothing(index_filter):
            return []
        unit_vector = unit(query_vector[None, :])[0].tolist()
        if ids is None:
            return stable_top_k(
                lambda n: self._near(space, unit_vector, n, of_space(space, index_filter), None), k
            )
        hits: list[VectorHit] = []
        for batch in _batches(sorted(set(ids)), ID_BATCH_SIZE):
            among_ids = models.HasIdCondition(has_id=[_point(space, key) for key in batch])
            hits += self._near(
                space,
                unit_vector,
                len(batch),
                of_space(space, index_filter, among_ids),
                self._exact,
            )
        return stable_top_k(lambda n: hits, k)

    def fetch(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> dict[int, Vector]:
        vectors: dict[int, Vector] = {}
        for batch in _batches(sorted(set(keys)), READ_BATCH_SIZE):
            by_point = {_point(space, key): key for key in batch}
            with self._existing(space) as name:
                records = self._client.retrieve(
                    name, ids=list(by_point), with_payload=False, with_vectors=True
                )
                vectors |= {
                    by_point[str(record.id)]: np.array(record.vector, np.float32)
                    for record in records
                }
        return vectors

    def keys(
        self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
    ) -> list[int]:
        if limit <= 0:
            return []
        after_key = models.FieldCondition(key="key", range=models.Range(gt=float(after)))
        records: Sequence[models.Record] = []
        with self._existing(space) as name:
            records, _ = self._client.scroll(
                name,
                scroll_filter=of_space(space, IndexFilter(), after_key),
                limit=limit,
                order_by=models.OrderBy(key="key", direction=models.Direction.ASC),
                with_payload=["key"],
                with_vectors=False,
            )
        return [int((record.payload or {})["key"]) for record in records]

    def count(self, tx: Transaction | None, space: Space) -> int:
        number = 0
        with self._existing(space) as name:
            number = self._client.count(name, count_filter=of_space(space), exact=True).count
        return number

    def drop(self, tx: Transaction | None, space: Space) -> None:
        """Delete the space's points. The collection stays: other workspaces use it too."""
        with self._existing(space) as name:
            self._client.delete(
                name, points_selector=models.FilterSelector(filter=of_space(space)), wait=True
            )

    def erase(self) -> None:
        """Delete all collections of the namespace."""
        with self._errors_translated():
            for collection in self._client.get_collections().collections:
                if is_of(self._namespace, collection.name):
                    self._client.delete_collection(collection.name)
                    self._collections.mark_missing(collection.name)

    def _near(
        self,
        space: Space,
        unit_vector: list[float],
        number: int,
        query_filter: models.Filter,
        search_params: models.SearchParams | None,
    ) -> list[VectorHit]:
        points: Sequence[models.ScoredPoint] = []
        with self._existing(space) as name:
            points = self._client.query_points(
                name,
                query=unit_vector,
                query_filter=query_filter,
                search_params=search_params,
                limit=number,
                with_payload=["key"],
                with_vectors=False,
            ).points
        return [VectorHit(int((point.payload or {})["key"]), point.score) for point in points]

    def _store(self, space: Space, points: Sequence[models.PointStruct]) -> None:
        name = collection_of(self._namespace, space)
        with self._errors_translated():
            self._collections.ensure(name, space)
            try:
                self._client.upsert(name, points=list(points), wait=True)
            except (UnexpectedResponse, ValueError) as error:
                if not is_missing(error):
                    raise
                # The server lost a collection that existed. Create it again.
                self._collections.mark_missing(name)
                self._collections.ensure(name, space)
                self._client.upsert(name, points=list(points), wait=True)

    @contextmanager
    def _existing(self, space: Space) -> Iterator[str]:
        """The name of the space's collection, for requests in the body. If the collection does not
        exist, the body ends early, without an error."""
        name = collection_of(self._namespace, space)
        with self._errors_translated():
            try:
                yield name
            except (UnexpectedResponse, ValueError) as error:
                if not is_missing(error):
                    raise
                self._collections.mark_missing(name)

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        """Raises `IndexUnavailable` if the server fails or cannot be reached."""
        try:
            with self._client_lock:
                yield
        except UnexpectedResponse as error:
            if error.status_code in (401, 403):
                raise IndexUnavailable(
                    f"the vector index at {self._location} rejects the key in VECTOR_STORE_API_KEY"
                ) from error
            raise IndexUnavailable(
                f"the vector index at {self._location} answered {error.status_code} "
                f"{error.reason_phrase}"
            ) from error
        except (ApiException, ResourceExhaustedResponse) as error:
            cause = getattr(error, "source", None) or error
            raise IndexUnavailable(
                f"the vector index at {self._location} cannot be reached: "
                f"{type(cause).__name__}: {cause}"
            ) from error


def _point(space: Space, key: int) -> str:
    return str(uuid5(POINTS, f"{tenant_of(space)}/{key}"))


def _batches(rows: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def open_index(settings: Settings) -> QdrantVectorIndex:
    """Open the index, even if the server cannot be reached. Raises `ConfigurationError` without a
    usable URL."""
    url = settings["url"]
    if not url:
        raise ConfigurationError(
            "the vector index 'qdrant' needs VECTOR_STORE_URL, for instance http://localhost:6333"
        )
    collection_options = {
        name: settings[name] for name in ("on_disk", "replication_factor", "shard_number")
    }
    namespace = settings["namespace"] or NAMESPACE
    if url == IN_PROCESS:
        return QdrantVectorIndex(
            QdrantClient(IN_PROCESS), IN_PROCESS, namespace, **collection_options
        )
    try:
        parts = urlsplit(url)
        public_url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        # No compatibility check: it needs a reachable server.
        client = QdrantClient(
            url=url,
            api_key=settings["api_key"],
            timeout=settings["timeout_seconds"],
            check_compatibility=False,
        )
    except (ValueError, InvalidURL) as error:
        raise ConfigurationError(f"VECTOR_STORE_URL is not a URL of Qdrant: {error}") from error
    return QdrantVectorIndex(client, public_url, namespace, **collection_options)
