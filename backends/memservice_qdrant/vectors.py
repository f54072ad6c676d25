"""Vectors in Qdrant: points named after the row's space and key, in the collection of the space's
kind, embedder and dimension."""

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
"""Where the settings name none."""
POINTS = UUID("a6a6b5d4-6f0c-5d0b-9a52-0a4b6f3f4a51")
"""Within which points are named. Never changes: points of older releases would no longer be
found."""
BATCH_SIZE = 200
ID_BATCH_SIZE = 1_000
READ_BATCH_SIZE = 200

T = TypeVar("T")


class QdrantVectorIndex:
    """The `VectorIndex` of a Qdrant server. Safe for threads and processes: all state is in the
    server."""

    capabilities: frozenset[Capability]

    def __init__(
        self, client: QdrantClient, location: str, namespace: str = NAMESPACE, **made_with: Any
    ) -> None:
        """`location`: where it is, as messages call it; `made_with`: what new collections are made
        with."""
        self._client = client
        self._place = location
        self._namespace = namespace
        in_process = location == IN_PROCESS
        self.capabilities = frozenset() if in_process else frozenset({Capability.SHARED})
        # The stand-in in the process is exact always, and warns whoever asks for it.
        self._exact = None if in_process else models.SearchParams(exact=True)
        self._collections = Collections(client, made_with, in_process)
        # The stand-in in the process is not made for threads.
        self._alone: threading.Lock | nullcontext[None] = (
            threading.Lock() if in_process else nullcontext()
        )

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
        """Store vectors, replacing those of the same rows. A row whose vector is zero has none from
        then on.

        Raises ValueError for another dimension than the space's, and for numbers that are not
        finite.
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
        for portion in _portions(points, BATCH_SIZE):
            self._store(space, portion)

    def delete(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> None:
        for portion in _portions(keys, ID_BATCH_SIZE):
            gone: list[int | str | UUID] = [_point(space, key) for key in portion]
            with self._asked(space) as name:
                self._client.delete(
                    name, points_selector=models.PointIdsList(points=gone), wait=True
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
        """As the protocol says. A zero vector is near to nothing. Raises ValueError as `upsert`
        does."""
        asked = checked(space, vector)
        if k <= 0 or not asked.any() or matches_nothing(index_filter):
            return []
        given = unit(asked[None, :])[0].tolist()
        if ids is None:
            return stable_top_k(
                lambda n: self._near(space, given, n, of_space(space, index_filter), None), k
            )
        hits: list[VectorHit] = []
        for portion in _portions(sorted(set(ids)), ID_BATCH_SIZE):
            named = models.HasIdCondition(has_id=[_point(space, key) for key in portion])
            hits += self._near(
                space, given, len(portion), of_space(space, index_filter, named), self._exact
            )
        return stable_top_k(lambda n: hits, k)

    def fetch(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> dict[int, Vector]:
        found: dict[int, Vector] = {}
        for portion in _portions(sorted(set(keys)), READ_BATCH_SIZE):
            by_point = {_point(space, key): key for key in portion}
            with self._asked(space) as name:
                records = self._client.retrieve(
                    name, ids=list(by_point), with_payload=False, with_vectors=True
                )
                found |= {
                    by_point[str(record.id)]: np.array(record.vector, np.float32)
                    for record in records
                }
        return found

    def keys(
        self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
    ) -> list[int]:
        if limit <= 0:
            return []
        later = models.FieldCondition(key="key", range=models.Range(gt=float(after)))
        records: Sequence[models.Record] = []
        with self._asked(space) as name:
            records, _ = self._client.scroll(
                name,
                scroll_filter=of_space(space, IndexFilter(), later),
                limit=limit,
                order_by=models.OrderBy(key="key", direction=models.Direction.ASC),
                with_payload=["key"],
                with_vectors=False,
            )
        return [int((record.payload or {})["key"]) for record in records]

    def count(self, tx: Transaction | None, space: Space) -> int:
        number = 0
        with self._asked(space) as name:
            number = self._client.count(name, count_filter=of_space(space), exact=True).count
        return number

    def drop(self, tx: Transaction | None, space: Space) -> None:
        """The collection stays: it is other workspaces' as well."""
        with self._asked(space) as name:
            self._client.delete(
                name, points_selector=models.FilterSelector(filter=of_space(space)), wait=True
            )

    def erase(self) -> None:
        """Forget everything in the namespace: its collections go."""
        with self._told():
            for collection in self._client.get_collections().collections:
                if is_of(self._namespace, collection.name):
                    self._client.delete_collection(collection.name)
                    self._collections.lost(collection.name)

    def _near(
        self,
        space: Space,
        given: list[float],
        number: int,
        narrowed: models.Filter,
        how: models.SearchParams | None,
    ) -> list[VectorHit]:
        points: Sequence[models.ScoredPoint] = []
        with self._asked(space) as name:
            points = self._client.query_points(
                name,
                query=given,
                query_filter=narrowed,
                search_params=how,
                limit=number,
                with_payload=["key"],
                with_vectors=False,
            ).points
        return [VectorHit(int((point.payload or {})["key"]), point.score) for point in points]

    def _store(self, space: Space, points: Sequence[models.PointStruct]) -> None:
        name = collection_of(self._namespace, space)
        with self._told():
            self._collections.ensure(name, space)
            try:
                self._client.upsert(name, points=list(points), wait=True)
            except (UnexpectedResponse, ValueError) as error:
                if not is_missing(error):
                    raise
                # It was there once. A server that lost it is begun anew.
                self._collections.lost(name)
                self._collections.ensure(name, space)
                self._client.upsert(name, points=list(points), wait=True)

    @contextmanager
    def _asked(self, space: Space) -> Iterator[str]:
        """For requests about a collection that may not be there: then the body ends early, and
        nothing was found."""
        name = collection_of(self._namespace, space)
        with self._told():
            try:
                yield name
            except (UnexpectedResponse, ValueError) as error:
                if not is_missing(error):
                    raise
                self._collections.lost(name)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raises `IndexUnavailable` for what the server or the way to it does."""
        try:
            with self._alone:
                yield
        except UnexpectedResponse as error:
            if error.status_code in (401, 403):
                raise IndexUnavailable(
                    f"the vector index at {self._place} refuses the key in VECTOR_STORE_API_KEY"
                ) from error
            raise IndexUnavailable(
                f"the vector index at {self._place} answered {error.status_code} "
                f"{error.reason_phrase}"
            ) from error
        except (ApiException, ResourceExhaustedResponse) as error:
            cause = getattr(error, "source", None) or error
            raise IndexUnavailable(
                f"the vector index at {self._place} cannot be reached: "
                f"{type(cause).__name__}: {cause}"
            ) from error


def _point(space: Space, key: int) -> str:
    return str(uuid5(POINTS, f"{tenant_of(space)}/{key}"))


def _portions(rows: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def open_index(settings: Settings) -> QdrantVectorIndex:
    """Open it, whether the server is there or not. Raises `ConfigurationError` without a URL that
    can be used."""
    url = settings["url"]
    if not url:
        raise ConfigurationError(
            "the vector index 'qdrant' needs VECTOR_STORE_URL, for instance http://localhost:6333"
        )
    made_with = {name: settings[name] for name in ("on_disk", "replication_factor", "shard_number")}
    namespace = settings["namespace"] or NAMESPACE
    if url == IN_PROCESS:
        return QdrantVectorIndex(QdrantClient(IN_PROCESS), IN_PROCESS, namespace, **made_with)
    try:
        parts = urlsplit(url)
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        # Looking at the server's version would need it to be there.
        client = QdrantClient(
            url=url,
            api_key=settings["api_key"],
            timeout=settings["timeout_seconds"],
            check_compatibility=False,
        )
    except (ValueError, InvalidURL) as error:
        raise ConfigurationError(
            f"VECTOR_STORE_URL is not one that Qdrant is reached by: {error}"
        ) from error
    return QdrantVectorIndex(client, shown, namespace, **made_with)
