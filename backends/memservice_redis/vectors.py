"""Vectors in Redis: for each space a vector set, and a sorted set of row keys to list them in
order. A large space also has a vector set for each group of rows that are queried together
(`groups`).

All sets change in one transaction of the server. A query compares all vectors of a small space or
of a group, and follows the graph otherwise. If a filtered query finds too few matching rows in the
graph, it is repeated exactly, so that a filter loses no rows.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
from redis import Redis

from memservice.domain.errors import ConfigurationError
from memservice.domain.records import Space
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import EVERYTHING, IndexFilter, matches_nothing
from memservice.spi.providers import Settings
from memservice.spi.top_k import stable_top_k
from memservice.spi.unit_vectors import checked, unit
from memservice.spi.vectors import VectorHit, VectorRow
from memservice_redis import groups, removing
from memservice_redis.attributes import attributes, expression, fits
from memservice_redis.server import Client, Server, pairs

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction
    from memservice.spi.vectors import Vector

T = TypeVar("T")

NAMESPACE = "memservice"
"""The default, if the settings name none."""

BATCH_SIZE = 100
"""Rows in one write request. Adding a row to the graph takes the server about a millisecond, during
which it serves no other client."""
READ_BATCH_SIZE = 500
_GLOB = re.compile(r"[*?\[\]\\^-]")
"""Characters with a meaning in patterns of SCAN."""
_ESCAPED = r"\\\g<0>"
"""The replacement that escapes such a character."""
EF_BUILD = "200"
EF_SEARCH = 200
"""Minimum number of candidates that a graph search keeps."""
MAX_VISITED = 20_000
"""Maximum number of rows that a graph search checks against a filter, before the query falls back
to comparing all vectors."""


class RedisVectorIndex:
    """The `VectorIndex` of a Redis server, which holds all state. Safe for threads and
    processes."""

    capabilities = frozenset({Capability.SHARED})

    def __init__(
        self, server: Server, namespace: str = NAMESPACE, exact_up_to: int = 20_000
    ) -> None:
        self._server = server
        self._namespace = namespace
        self._exact_up_to = exact_up_to

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
        """Store vectors and replace those of the same rows. A zero vector removes the row's vector.

        Raises ValueError if a vector does not have the space's dimension, or has a number that is
        not finite.
        """
        unique = {row.key: (row, checked(space, row.vector)) for row in rows}
        vectors, keys = self._set_names(space)
        for batch in _batches(list(unique.values()), BATCH_SIZE):
            with self._server.client() as client, client.pipeline(transaction=True) as pipe:
                batch_keys = [row.key for row, _ in batch]
                groups.remove(pipe, space, vectors, batch_keys)
                for row, vector in batch:
                    pipe.execute_command("VREM", vectors, row.key)
                    if vector.any():
                        arguments = (
                            "FP32",
                            _bytes(vector),
                            row.key,
                            "NOQUANT",
                            "EF",
                            EF_BUILD,
                            "SETATTR",
                            attributes(row),
                        )
                        pipe.execute_command("VADD", vectors, *arguments)
                        pipe.execute_command("ZADD", keys, row.key, row.key)
                    else:
                        pipe.execute_command("ZREM", keys, row.key)
                groups.add(pipe, space, vectors, batch_keys)
                pipe.execute()

    def delete(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> None:
        vectors, key_list = self._set_names(space)
        for batch in _batches(keys, READ_BATCH_SIZE):
            with self._server.client() as client, client.pipeline(transaction=True) as pipe:
                groups.remove(pipe, space, vectors, batch)
                for key in batch:
                    pipe.execute_command("VREM", vectors, key)
                pipe.execute_command("ZREM", key_list, *batch)
                pipe.execute()

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
        if ids is not None:
            return self._exact_among(space, query_vector, k, index_filter, ids)
        vectors, _ = self._set_names(space)
        with self._server.client() as client, client.pipeline(transaction=False) as pipe:
            pipe.execute_command("VCARD", vectors)
            pipe.execute_command("GET", groups.names(vectors)[0])
            size, grouped = pipe.execute()
        if size == 0:
            return []
        if size <= self._exact_up_to:
            return self._exact([vectors], query_vector, k, index_filter)
        chosen = groups.chosen_by(space, vectors, index_filter) if grouped == groups.READY else None
        if chosen is not None and self._size(chosen[0]) <= groups.MAX_ROWS:
            return self._exact(chosen[0], query_vector, k, chosen[1])
        filter_expression = expression(index_filter)
        hits = stable_top_k(
            lambda n: self._similar(
                vectors, query_vector, n, filter_expression, *_walk(n, filter_expression)
            ),
            k,
        )
        if len(hits) < k and filter_expression is not None:
            hits = self._exact([vectors], query_vector, k, index_filter)
        return hits

    def fetch(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> dict[int, Vector]:
        vectors, _ = self._set_names(space)
        fetched: dict[int, Vector] = {}
        for batch in _batches(sorted(set(keys)), READ_BATCH_SIZE):
            with self._server.client() as client, client.pipeline(transaction=False) as pipe:
                for key in batch:
                    pipe.execute_command("VEMB", vectors, key, "RAW")
                answers = pipe.execute()
            fetched |= {
                key: _vector(value)
                for key, value in zip(batch, answers, strict=True)
                if value is not None
            }
        return fetched

    def keys(
        self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
    ) -> list[int]:
        vectors, key_list = self._set_names(space)
        with self._server.client() as client:
            if after == 0:
                self._restore_consistency(client, vectors, key_list)
            keys = [
                int(key)
                for key in client.execute_command(
                    "ZRANGEBYSCORE", key_list, f"({after}", "+inf", "LIMIT", 0, limit
                )
            ]
            groups.proceed(client, space, vectors, after, keys, is_last=len(keys) < limit)
        return keys

    def count(self, tx: Transaction | None, space: Space) -> int:
        with self._server.client() as client:
            return int(client.execute_command("VCARD", self._set_names(space)[0]))

    def drop(self, tx: Transaction | None, space: Space) -> None:
        vectors, key_list = self._set_names(space)
        with self._server.client() as client:
            groups.drop(client, vectors)
            removing.remove(client, vectors)
            client.execute_command("UNLINK", key_list)

    def erase(self) -> None:
        """Delete everything in the namespace."""
        pattern = f"{{{_GLOB.sub(_ESCAPED, self._namespace)}:vectors:*"
        cursor = 0
        with self._server.client() as client:
            while True:
                cursor, names = client.execute_command(
                    "SCAN", cursor, "MATCH", pattern, "COUNT", READ_BATCH_SIZE
                )
                for name in names:
                    if client.execute_command("TYPE", name) == b"vectorset":
                        removing.remove(client, name.decode())
                    else:
                        client.execute_command("UNLINK", name)
                if int(cursor) == 0:
                    return

    def _set_names(self, space: Space) -> tuple[str, str]:
        """The names of the vector set and of the sorted set of its keys. The braces keep both on
        one node of a cluster."""
        name = f"{{{self._namespace}:vectors:{space.workspace_key}:{space.key}}}"
        return name, f"{name}:keys"

    def _size(self, names: Sequence[str]) -> int:
        with self._server.client() as client, client.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.execute_command("VCARD", name)
            return sum(pipe.execute())

    def _exact(
        self, names: Sequence[str], query_vector: Vector, k: int, index_filter: IndexFilter
    ) -> list[VectorHit]:
        """The nearest rows of these vector sets, by comparing all."""
        filter_expression = expression(index_filter)

        def nearest(number: int) -> list[VectorHit]:
            hits = [
                hit
                for name in names
                for hit in self._similar(name, query_vector, number, filter_expression, "TRUTH")
            ]
            return sorted(hits, key=lambda hit: -hit.score)[:number]

        return stable_top_k(nearest, k)

    def _similar(
        self,
        name: str,
        query_vector: Vector,
        number: int,
        filter_expression: str | None,
        *options: str | int,
    ) -> list[VectorHit]:
        filter_arguments = () if filter_expression is None else ("FILTER", filter_expression)
        arguments = (
            "FP32",
            _bytes(query_vector),
            "WITHSCORES",
            "COUNT",
            number,
            *filter_arguments,
            *options,
        )
        with self._server.client() as client:
            answer = client.execute_command("VSIM", name, *arguments)
        # The server's scores range from 0 to 1.
        return [
            VectorHit(key, score)
            for key, score in pairs(answer, lambda score: 2.0 * float(score) - 1.0)
        ]

    def _exact_among(
        self,
        space: Space,
        query_vector: Vector,
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int],
    ) -> list[VectorHit]:
        """The nearest of the rows `ids`, compared in this process."""
        keys = sorted(set(ids))
        if index_filter != EVERYTHING:
            vectors, _ = self._set_names(space)
            with self._server.client() as client, client.pipeline(transaction=False) as pipe:
                for key in keys:
                    pipe.execute_command("VGETATTR", vectors, key)
                attributes = pipe.execute()
            keys = [
                key
                for key, row_attributes in zip(keys, attributes, strict=True)
                if fits(row_attributes, index_filter)
            ]
        vectors_by_key = self.fetch(None, space, keys)
        if not vectors_by_key:
            return []
        scores = (
            unit(np.stack(list(vectors_by_key.values()))).astype(np.float64)
            @ unit(query_vector[None, :])[0]
        )
        hits = [
            VectorHit(key, min(1.0, max(-1.0, float(score))))
            for key, score in zip(vectors_by_key, scores, strict=True)
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))[:k]

    def _restore_consistency(self, client: Client, vectors: str, key_list: str) -> None:
        """Rebuild the sorted set of keys if it has another size than the vector set: eviction or an
        operator may have deleted either one. Remove the groups of rows that are gone, and let a
        large space have groups."""
        size = int(client.execute_command("VCARD", vectors))
        if size == 0:
            groups.drop(client, vectors)
        elif size > self._exact_up_to:
            groups.start(client, vectors)
        if size == int(client.execute_command("ZCARD", key_list)):
            return
        elements = client.execute_command("VRANDMEMBER", vectors, size) if size else []
        with client.pipeline(transaction=True) as pipe:
            pipe.execute_command("DEL", key_list)
            for batch in _batches([int(key) for key in elements], READ_BATCH_SIZE):
                pipe.execute_command(
                    "ZADD", key_list, *(each for key in batch for each in (key, key))
                )
            pipe.execute()


def _batches(rows: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _walk(number: int, filter_expression: str | None) -> tuple[str | int, ...]:
    """Arguments of a graph search for `number` hits."""
    arguments = ("EF", max(EF_SEARCH, 2 * number))
    return arguments if filter_expression is None else (*arguments, "FILTER-EF", MAX_VISITED)


def _bytes(vector: Vector) -> bytes:
    """The vector as the server reads it: of length one, float32, little-endian."""
    return bytes(unit(vector[None, :])[0].astype("<f4").tobytes())


def _vector(answer: Sequence[Any]) -> Vector:
    """The vector in an answer of `VEMB … RAW`: encoding, numbers of the unit vector, length."""
    return np.frombuffer(answer[1], "<f4").astype(np.float32)


def open_index(settings: Settings, log: logging.Logger) -> RedisVectorIndex:
    """Open the index, even if the server cannot be reached. Raises `ConfigurationError` without a
    URL, and if the server is too old."""
    url = settings["url"]
    if not url:
        raise ConfigurationError(
            "the vector index 'redis' needs VECTOR_STORE_URL, for instance redis://localhost:6379/0"
        )
    password = {"password": settings["api_key"]} if settings["api_key"] else {}
    try:
        client = Redis.from_url(
            url,
            socket_connect_timeout=settings["connect_timeout_seconds"],
            socket_timeout=settings["timeout_seconds"],
            **password,
        )
    except ValueError as error:
        raise ConfigurationError(f"VECTOR_STORE_URL is not a URL of Redis: {error}") from error
    server = Server(client, _shown(url))
    server.check_now(log)
    return RedisVectorIndex(server, settings["namespace"] or NAMESPACE, settings["exact_up_to"])


def _shown(url: str) -> str:
    """The URL without user name and password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
