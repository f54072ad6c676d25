"""Collections: one for all spaces of a kind, an embedder and a dimension, in which each workspace
is a tenant.

A collection costs the server memory and threads of its own, so workspaces do not have one each. Its
points carry the key of their space, which the server is told is the tenant's: it stores a tenant's
points together and builds a graph for each tenant only. So each query has a graph of its own
workspace, and none can come across another's points.
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
"""Every field that is filtered or sorted by. Without its index the server would read every point,
or refuse."""
LINKS = 16
"""Of each point in its tenant's graph."""
_UNSAFE = re.compile(r"[^a-z0-9]+")


def collection_of(namespace: str, space: Space) -> str:
    """The name of the space's collection. Embedders are named with characters that names of
    collections may not have, so what is left of one is followed by a hash of all of it."""
    digest = hashlib.sha256(space.embedder.encode()).hexdigest()[:10]
    embedder = _UNSAFE.sub("-", space.embedder.lower()).strip("-")[:60]
    return "_".join((namespace, space.kind, embedder, digest, str(space.dimension)))


def is_of(namespace: str, collection: str) -> bool:
    """Is that the name of a collection of this namespace, and of no other one that begins alike?"""
    return (
        re.fullmatch(rf"{re.escape(namespace)}_[a-z]+_[a-z0-9-]*_[0-9a-f]{{10}}_[0-9]+", collection)
        is not None
    )


def is_missing(error: Exception) -> bool:
    """Did the server, or the stand-in in the process, say that there is no such collection?"""
    if isinstance(error, UnexpectedResponse):
        return error.status_code == HTTPStatus.NOT_FOUND
    return isinstance(error, ValueError) and "not found" in str(error)


class Collections:
    """Makes collections when something is first stored in them. Safe for threads; other processes
    may make the same at once."""

    def __init__(self, client: QdrantClient, made_with: dict[str, Any], in_process: bool) -> None:
        self._client = client
        self._made_with = made_with
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

    def lost(self, name: str) -> None:
        """The server does not have it any more."""
        with self._lock:
            self._ready.discard(name)

    def _create(self, name: str, space: Space) -> None:
        vectors = models.VectorParams(
            size=space.dimension,
            distance=models.Distance.COSINE,
            on_disk=self._made_with.get("on_disk"),
        )
        try:
            self._client.create_collection(
                name,
                vectors_config=vectors,
                # No graph over all points, one for each tenant.
                hnsw_config=models.HnswConfigDiff(m=0, payload_m=LINKS),
                shard_number=self._made_with.get("shard_number"),
                replication_factor=self._made_with.get("replication_factor"),
            )
        except UnexpectedResponse as error:
            if error.status_code != HTTPStatus.CONFLICT:  # another process was faster
                raise

    def _index_payloads(self, name: str) -> None:
        """Also those that a process which ended in between did not come to."""
        there = self._client.get_collection(name).payload_schema
        for field, schema in PAYLOAD_INDEXES.items():
            if field not in there:
                self._client.create_payload_index(
                    name, field_name=field, field_schema=schema, wait=True
                )
