"""Queries of the vector index. A query of an index outside the storage has a time limit, and a
circuit breaker skips it while the index is unavailable."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memservice.domain.records import Space
from memservice.runtime import Runtime
from memservice.spi.index_filter import IndexFilter
from memservice.spi.storage import Transaction
from memservice.spi.vectors import VectorHit
from memservice.timed_calls import CircuitOpen

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

log = logging.getLogger("memservice.recall")

INDEX = "the vector index"
"""Its name in `Runtime.vector_calls`."""


def query(
    rt: Runtime,
    tx: Transaction,
    space: Space,
    vector: Vector,
    k: int,
    index_filter: IndexFilter,
    ids: Sequence[int] | None = None,
) -> list[VectorHit] | None:
    """Like `VectorIndex.query`; None if the index is outside the storage and did not answer (which
    is logged), now or a moment ago."""
    if rt.vectors_transactional:
        return rt.vectors.query(tx, space, vector, k, index_filter, ids)
    seconds = rt.settings.vector_store.query_timeout_seconds
    try:
        with tx.released():
            return rt.vector_calls.call(
                INDEX,
                seconds,
                lambda: rt.vectors.query(None, space, vector, k, index_filter, ids),
            )
    except CircuitOpen:
        return None
    except TimeoutError:
        log.warning("the vector index did not answer within %s s: searching by text alone", seconds)
    except Exception as error:  # a search works without vectors
        log.warning("the vector index failed on a query (%s): searching by text alone", error)
    return None
