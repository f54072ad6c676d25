"""Vectors of queries. A query waits a limited time for a remote embedder; without a vector, only
the text is searched.

A process remembers the vectors by remote embedders for a while: an agent often asks for several
things about the same message, for instance for the context of a session and an answer."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from memservice.domain.records import Space
from memservice.runtime import RememberedVector, Runtime
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Embedder
from memservice.spi.llm import ModelFailure
from memservice.timed_calls import CircuitOpen

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

log = logging.getLogger("memservice.recall")

Remote = Mapping[str, "Vector"]
"""Vectors of one query by remote embedders, which must not be called while a transaction is open,
by the id of the embedder."""
NO_VECTORS: Remote = MappingProxyType({})

SECONDS = 300.0
"""How long a vector is remembered."""
MAX_REMEMBERED = 300
"""Vectors; of 1,536 dimensions, they take 2 MB."""


def query_vector(rt: Runtime, embedder: Embedder, text: str) -> Vector | None:
    """The query's vector; None if it has no content, or the embedder failed or timed out (which is
    logged), now or a moment ago."""
    if not text.strip():
        return None
    if Capability.INLINE in embedder.capabilities:
        return _content(embedder.embed([text], "query")[0])
    name = embedder.id, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    remembered = rt.query_vectors.get(name)
    if remembered is not None and time.monotonic() < remembered.read_at + SECONDS:
        return _content(remembered.vector)
    seconds = rt.settings.search.embed_timeout_seconds
    try:
        vectors = rt.embedder_calls.call(
            embedder.id,
            seconds,
            lambda: embedder.embed([text], "query"),
            _is_outage,
            is_timed=Capability.TIMED in embedder.capabilities,
        )
    except CircuitOpen:
        return None
    except TimeoutError:
        log.warning(
            "the embedder %s did not answer a query within %s s: searching by text alone",
            embedder.id,
            seconds,
        )
        return None
    except Exception as error:  # a search works without a vector
        log.warning(
            "the embedder %s failed on a query (%s): searching by text alone",
            embedder.id,
            type(error).__name__,
        )
        return None
    if len(rt.query_vectors) >= MAX_REMEMBERED and name not in rt.query_vectors:
        rt.query_vectors.clear()
    rt.query_vectors[name] = RememberedVector(vectors[0], time.monotonic())
    return _content(vectors[0])


def _is_outage(error: Exception) -> bool:
    """Whether the embedder would fail on other queries too."""
    return isinstance(error, ModelFailure) and error.retryable


def remote_vectors(rt: Runtime, embedders: Iterable[str], text: str) -> Remote:
    """The query's vectors by those of these embedders that can be opened here and are not inline.
    Call it with no transaction open."""
    vectors: dict[str, Vector] = {}
    for name in sorted(set(embedders)):
        embedder = rt.embedder_of(name)
        if embedder is not None and Capability.INLINE not in embedder.capabilities:
            vector = query_vector(rt, embedder, text)
            if vector is not None:
                vectors[name] = vector
    return vectors


def vector_in(rt: Runtime, space: Space | None, text: str, remote: Remote) -> Vector | None:
    """The query's vector by the embedder of the space: an inline one is called now, a remote one
    was called before (`remote`). None if there is none."""
    if space is None:
        return None
    vector = remote.get(space.embedder)
    if vector is None:
        embedder = rt.embedder_of(space.embedder)
        if embedder is None or Capability.INLINE not in embedder.capabilities:
            return None
        vector = query_vector(rt, embedder, text)
    return vector if vector is not None and len(vector) == space.dimension else None


def understands(rt: Runtime, space: Space | None) -> bool:
    """Whether the vectors of this space represent meaning. Without a space: those of the configured
    embedder."""
    embedder = rt.embedder if space is None else rt.embedder_of(space.embedder)
    return embedder is not None and Capability.SEMANTIC in embedder.capabilities


def _content(vector: Vector) -> Vector | None:
    return vector if vector.any() else None
