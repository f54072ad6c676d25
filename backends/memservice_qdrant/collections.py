"""Collections: one for all spaces of a kind, an embedder and a dimension, in which each workspace
is a tenant.

Each collection costs the server memory and threads, so workspaces share one. Every point carries
the key of its space, which is declared as the tenant key: the server stores a tenant's points
together and builds one graph per tenant. So a query uses the graph of its own workspace, and cannot
reach points of another.
"""

from __future__ import annotations

import hashlib
import re
import threading
from http import HTTPStatus
from typing import Any

from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from memservice.domain.records import Space

TENANT = "space"
_NUMBER = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=True, range=False)
_RANGE = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=False, range=True)
PAYLOAD_INDEXES: dict[str, Any] = {
    TENANT: models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "key": _RANGE,
    "session": _NUMBER,
    "author": _NUMBER,
    "observer": _NUMBER,
    "observed": _NUMBER,
    "level": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD),
    "at": _RANGE,
}
"""An index for every field that queries filter or sort by. Without it the server reads every point,
or rejects the query."""
LINKS = 16
"""Links of each point in its tenant's graph (`m` of HNSW)."""
_UNSAFE = re.compile(r"[^a-z0-9]+")


def collection_of(namespace: str, space: Space) -> str:
    """The name of the space's collection. An embedder's name may have characters that are not
    allowed in a collection's name, so its allowed characters are followed by a hash of the whole
    name."""
    digest = hashlib.sha256(space.embedder.encode()).hexdigest()[:10]
    embedder = _UNSAFE.sub("-", space.embedder.lower()).strip("-")[:60]
    return "_".join((namespace, space.kind, embedder, digest, str(space.dimension)))


def is_of(namespace: str, collection: str) -> bool:
    """Whether the collection belongs to this namespace, and not to one whose name begins alike."""
    return (
        re.fullmatch(rf"{re.escape(namespace)}_[a-z]+_[a-z0-9-]*_[0-9a-f]{{10}}_[0-9]+", collection)
        is not None
    )


def is_missing(error: Exception) -> bool:
    """Whether the error says that the collection does not exist, on the server or in process."""
    if isinstance(error, UnexpectedResponse):
        return error.status_code == HTTPStatus.NOT_FOUND
    return isinstance(error, ValueError) and "not found" in str(error)


class Collections:
    """Creates each collection before its first points are stored. Safe for threads, and for other
    processes that create the same collection at the same time."""

    def __init__(
        self, client: QdrantClient, collection_options: dict[str, Any], in_process: bool
    ) -> None:
        self._client = client
        self._collection_options = collection_options
        self._in_process = in_process
        self._ready: set[str] = set()
        self._lock = threading.Lock()

    def ensure(self, name: str, space: Space) -> None:
        with self._lock:
            if name in self._ready:
                return
            if not self._client.collection_exists(name):
                self._create(name, space)
            if not self._in_process:
                self._index_payloads(name)
            self._ready.add(name)

    def mark_missing(self, name: str) -> None:
        """Record that the server no longer has the collection."""
        with self._lock:
            self._ready.discard(name)

    def _create(self, name: str, space: Space) -> None:
        vectors = models.VectorParams(
            size=space.dimension,
            distance=models.Distance.COSINE,
            on_disk=self._collection_options.get("on_disk"),
        )
        try:
            self._client.create_collection(
                name,
                vectors_config=vectors,
                # One graph for each tenant, none over all points.
                hnsw_config=models.HnswConfigDiff(m=0, payload_m=LINKS),
                shard_number=self._collection_options.get("shard_number"),
                replication_factor=self._collection_options.get("replication_factor"),
            )
        except UnexpectedResponse as error:
            if error.status_code != HTTPStatus.CONFLICT:  # another process was faster
                raise

    def _index_payloads(self, name: str) -> None:
        """Create missing payload indexes, including those that a process which ended early did not
        create."""
        existing = self._client.get_collection(name).payload_schema
        for field, schema in PAYLOAD_INDEXES.items():
            if field not in existing:
                self._client.create_payload_index(
                    name, field_name=field, field_schema=schema, wait=True
                )
