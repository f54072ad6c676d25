"""Asking the vector index for neighbours. One outside the storage is waited for a bounded time, and
left alone while it is away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from memservice.domain.records import Space
from memservice.runtime import Runtime
from memservice.services.retrieval import circuit_breaker
from memservice.spi.index_filter import IndexFilter
from memservice.spi.storage import Transaction
from memservice.spi.vectors import VectorHit

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

log = logging.getLogger("memservice.recall")

INDEX = "the vector index"
"""Under this name the index rests (`services.retrieval.circuit_breaker`)."""
_THREADS = 8

T = TypeVar("T")


@cache
def _executor() -> ThreadPoolExecutor:
    """Made at first use, so that it belongs to the process that uses it."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="nearest")


def query(
    rt: Runtime,
    tx: Transaction,
    space: Space,
    vector: Vector,
    k: int,
    index_filter: IndexFilter,
    ids: Sequence[int] | None = None,
) -> list[VectorHit] | None:
    """As `VectorIndex.query`; None if the index is outside the storage and did not answer, now or a
    moment ago (which is logged)."""
    if rt.vectors_transactional:
        return rt.vectors.query(tx, space, vector, k, index_filter, ids)
    rest = circuit_breaker.of(rt)
    if not rest.allow(INDEX):
        return None
    seconds = rt.settings.vector_store.query_timeout_seconds
    with tx.released():
        hits = _hits(seconds, lambda: rt.vectors.query(None, space, vector, k, index_filter, ids))
    if hits is None:
        rest.record_failure(INDEX)
    else:
        rest.record_success(INDEX)
    return hits


def within(seconds: float, ask: Callable[[], T]) -> T:
    """What an index outside the storage says. Raises TimeoutError if it takes longer than
    `seconds`, and whatever the index raises."""
    future = _executor().submit(ask)
    try:
        return future.result(seconds)
    except Late:
        future.cancel()
        raise


def _hits(seconds: float, query: Callable[[], list[VectorHit]]) -> list[VectorHit] | None:
    try:
        return within(seconds, query)
    except Late:
        log.warning("the vector index did not answer within %s s: searching by text alone", seconds)
    except Exception as error:  # whatever an index raises, a search still answers
        log.warning("the vector index failed on a query (%s): searching by text alone", error)
    return None
