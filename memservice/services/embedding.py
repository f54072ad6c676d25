"""Vectors of queries. A query may wait a bounded time for a remote embedder; without a vector, text alone answers."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from threading import Lock
from typing import TYPE_CHECKING

from memservice.runtime import Runtime
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Embedder

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

log = logging.getLogger("memservice.recall")

_THREADS = 8
_pool: ThreadPoolExecutor | None = None
_pool_lock = Lock()


def _executor() -> ThreadPoolExecutor:
    """Made at first use, so that it belongs to the process that uses it."""
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="embed-query")
        return _pool


def query_vector(rt: Runtime, embedder: Embedder, text: str) -> Vector | None:
    """The query's vector; None if it has no content, or the embedder failed or took too long (which is logged)."""
    if not text.strip():
        return None
    if Capability.INLINE in embedder.capabilities:
        return _content(embedder.embed([text], "query")[0])
    seconds = rt.settings.search.embed_timeout_seconds
    future = _executor().submit(embedder.embed, [text], "query")
    try:
        return _content(future.result(seconds)[0])
    except Late:
        future.cancel()
        log.warning("the embedder %s did not answer a query within %s s: searching by text alone", embedder.id, seconds)
    except Exception as error:  # whatever a provider raises, a search still answers
        log.warning("the embedder %s failed on a query (%s): searching by text alone", embedder.id, type(error).__name__)
    return None


def _content(vector: Vector) -> Vector | None:
    return vector if vector.any() else None
