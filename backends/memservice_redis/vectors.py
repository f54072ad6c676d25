"""Vectors in Redis: a vector set for each space, and beside it a sorted set of the rows' keys, so
that they can be listed in order.

Both change in one transaction of the server. A filtered query compares every vector of a space that
is small enough; in a larger one it follows the graph, and compares all of them where the graph does
not offer enough rows that fit, so that a filter loses nothing.
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
from memservice_redis.attributes import attributes, expression, fits
from memservice_redis.server import Client, Server, pairs

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction
    from memservice.spi.vectors import Vector

T = TypeVar("T")

NAMESPACE = "memservice"
"""Where the settings name none."""

BATCH_SIZE = 100
"""Rows in one exchange that writes: adding to the graph takes the server about a millisecond a row,
and it does one thing at a time."""
READ_BATCH_SIZE = 500
_GLOB = re.compile(r"[*?\[\]\\^-]")
"""What has a meaning in the patterns of SCAN …"""
_ESCAPED = r"\\\g<0>"
"""… and what takes it away."""
EF_BUILD = "200"
EF_SEARCH = 200
"""Candidates that a walk through the graph keeps, at least; more than is asked for."""
MAX_VISITED = 20_000
"""Rows that a walk offers to a filter before all vectors are compared instead."""


class RedisVectorIndex:
    """The `VectorIndex` of a Redis. Safe for threads and processes: all state is in the server."""

    capabilities = frozenset({Capability.SHARED})

    def __init__(
        self, server: Server, namespace: str = NAMESPACE, exact_up_to: int = 20_000
    ) -> None:
        self._server = server
        self._namespace = namespace
        self._exact_up_to = exact_up_to

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
        """Store vectors, replacing those of the same rows. A row whose vector is zero has none from
        then on.

        Raises ValueError for another dimension than the space's, and for numbers that are not
        finite.
        """
        unique = {row.key: (row, checked(space, row.vector)) for row in rows}
        vectors, keys = self._places(space)
        for portion in _portions(list(unique.values()), BATCH_SIZE):
            with self._server.asked() as client, client.pipeline(transaction=True) as pipe:
                for row, vector in portion:
                    pipe.execute_command("VREM", vectors, row.key)
                    if vector.any():
                        given = (
                            "FP32",
                            _bytes(vector),
                            row.key,
                            "NOQUANT",
                            "EF",
                            EF_BUILD,
                            "SETATTR",
                            attributes(row),
                        )
                        pipe.execute_command("VADD", vectors, *given)
                        pipe.execute_command("ZADD", keys, row.key, row.key)
                    else:
                        pipe.execute_command("ZREM", keys, row.key)
                pipe.execute()

    def delete(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> None:
        vectors, listed = self._places(space)
        for portion in _portions(keys, READ_BATCH_SIZE):
            with self._server.asked() as client, client.pipeline(transaction=True) as pipe:
                for key in portion:
                    pipe.execute_command("VREM", vectors, key)
                pipe.execute_command("ZREM", listed, *portion)
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
        """As the protocol says. A zero vector is near to nothing. Raises ValueError as `upsert`
        does."""
        asked = checked(space, vector)
        if k <= 0 or not asked.any() or matches_nothing(index_filter):
            return []
        if ids is not None:
            return self._among(space, asked, k, index_filter, ids)
        number = self.count(None, space)
        if number == 0:
            return []
        narrowed = expression(index_filter)
        if number <= self._exact_up_to:
            return stable_top_k(lambda n: self._similar(space, asked, n, narrowed, "TRUTH"), k)
        hits = stable_top_k(
            lambda n: self._similar(space, asked, n, narrowed, *_walk(n, narrowed)), k
        )
        if len(hits) < k and narrowed is not None:
            hits = stable_top_k(lambda n: self._similar(space, asked, n, narrowed, "TRUTH"), k)
        return hits

    def fetch(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> dict[int, Vector]:
        vectors, _ = self._places(space)
        found: dict[int, Vector] = {}
        for portion in _portions(sorted(set(keys)), READ_BATCH_SIZE):
            with self._server.asked() as client, client.pipeline(transaction=False) as pipe:
                for key in portion:
                    pipe.execute_command("VEMB", vectors, key, "RAW")
                answers = pipe.execute()
            found |= {
                key: _vector(stored)
                for key, stored in zip(portion, answers, strict=True)
                if stored is not None
            }
        return found

    def keys(
        self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
    ) -> list[int]:
        vectors, listed = self._places(space)
        with self._server.asked() as client:
            if after == 0:
                self._relist(client, vectors, listed)
            found = client.execute_command(
                "ZRANGEBYSCORE", listed, f"({after}", "+inf", "LIMIT", 0, limit
            )
        return [int(key) for key in found]

    def count(self, tx: Transaction | None, space: Space) -> int:
        with self._server.asked() as client:
            return int(client.execute_command("VCARD", self._places(space)[0]))

    def drop(self, tx: Transaction | None, space: Space) -> None:
        with self._server.asked() as client:
            client.execute_command("UNLINK", *self._places(space))

    def erase(self) -> None:
        """Forget everything in the namespace."""
        pattern = f"{{{_GLOB.sub(_ESCAPED, self._namespace)}:vectors:*"
        cursor = 0
        with self._server.asked() as client:
            while True:
                cursor, found = client.execute_command(
                    "SCAN", cursor, "MATCH", pattern, "COUNT", READ_BATCH_SIZE
                )
                if found:
                    client.execute_command("UNLINK", *found)
                if int(cursor) == 0:
                    return

    def _places(self, space: Space) -> tuple[str, str]:
        """The names of the vector set and of its list of keys. The braces keep both on one node of
        a cluster."""
        location = f"{{{self._namespace}:vectors:{space.workspace_key}:{space.key}}}"
        return location, f"{location}:keys"

    def _similar(
        self, space: Space, asked: Vector, number: int, narrowed: str | None, *how: str | int
    ) -> list[VectorHit]:
        filtered = () if narrowed is None else ("FILTER", narrowed)
        given = ("FP32", _bytes(asked), "WITHSCORES", "COUNT", number, *filtered, *how)
        with self._server.asked() as client:
            answer = client.execute_command("VSIM", self._places(space)[0], *given)
        # The server's scores go from 0 to 1.
        return [
            VectorHit(key, score)
            for key, score in pairs(answer, lambda score: 2.0 * float(score) - 1.0)
        ]

    def _among(
        self, space: Space, asked: Vector, k: int, index_filter: IndexFilter, ids: Sequence[int]
    ) -> list[VectorHit]:
        """The nearest of these rows, compared here."""
        wanted = sorted(set(ids))
        if index_filter != EVERYTHING:
            vectors, _ = self._places(space)
            with self._server.asked() as client, client.pipeline(transaction=False) as pipe:
                for key in wanted:
                    pipe.execute_command("VGETATTR", vectors, key)
                stored = pipe.execute()
            wanted = [
                key for key, about in zip(wanted, stored, strict=True) if fits(about, index_filter)
            ]
        found = self.fetch(None, space, wanted)
        if not found:
            return []
        scores = unit(np.stack(list(found.values()))).astype(np.float64) @ unit(asked[None, :])[0]
        hits = [
            VectorHit(key, min(1.0, max(-1.0, float(score))))
            for key, score in zip(found, scores, strict=True)
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))[:k]

    def _relist(self, client: Client, vectors: str, listed: str) -> None:
        """Make the list of keys anew if a server that evicts, or somebody's hand, took one of the
        two away."""
        number = int(client.execute_command("VCARD", vectors))
        if number == int(client.execute_command("ZCARD", listed)):
            return
        there = client.execute_command("VRANDMEMBER", vectors, number) if number else []
        with client.pipeline(transaction=True) as pipe:
            pipe.execute_command("DEL", listed)
            for portion in _portions([int(key) for key in there], READ_BATCH_SIZE):
                pipe.execute_command(
                    "ZADD", listed, *(each for key in portion for each in (key, key))
                )
            pipe.execute()


def _portions(rows: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _walk(number: int, narrowed: str | None) -> tuple[str | int, ...]:
    """How the graph is followed for so many hits."""
    breadth = ("EF", max(EF_SEARCH, 2 * number))
    return breadth if narrowed is None else (*breadth, "FILTER-EF", MAX_VISITED)


def _bytes(vector: Vector) -> bytes:
    """As the server reads it: of length one, float32, little-endian."""
    return bytes(unit(vector[None, :])[0].astype("<f4").tobytes())


def _vector(stored: Sequence[Any]) -> Vector:
    """From what `VEMB … RAW` answers: the form, the numbers of a vector of length one, its
    length."""
    return np.frombuffer(stored[1], "<f4").astype(np.float32)


def open_index(settings: Settings, log: logging.Logger) -> RedisVectorIndex:
    """Open it, whether the server is there or not. Raises `ConfigurationError` without a URL, and
    for a server that is too old."""
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
        raise ConfigurationError(
            f"VECTOR_STORE_URL is not one that Redis is reached by: {error}"
        ) from error
    server = Server(client, _shown(url))
    server.check_now(log)
    return RedisVectorIndex(server, settings["namespace"] or NAMESPACE, settings["exact_up_to"])


def _shown(url: str) -> str:
    """The URL without who enters by it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
