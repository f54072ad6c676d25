"""The first k hits in a stable order, from a source that breaks ties arbitrarily."""

from __future__ import annotations

from collections.abc import Callable

from memservice.spi.vectors import VectorHit

SPARE_HITS = 16
"""Hits to request beyond k, to see whether others share the score of the k-th hit."""
MAX_HITS = 10_000
"""Maximum number of hits to request while looking for equal scores."""


def stable_top_k(query: Callable[[int], list[VectorHit]], k: int) -> list[VectorHit]:
    """The `k` best hits of `query(n)`, best first, ties by key. `query(n)` returns the n nearest
    rows, equal ones in any order.

    Requests more hits while others may share the score of the k-th one. Scores are clipped to
    −1..1, because rounding can exceed it.
    """
    limit = k + SPARE_HITS
    while True:
        hits = sorted(
            (VectorHit(hit.key, min(1.0, max(-1.0, hit.score))) for hit in query(limit)),
            key=lambda hit: (-hit.score, hit.key),
        )
        if (
            len(hits) < limit
            or hits[-1].score < hits[k - 1].score
            or limit >= max(MAX_HITS, k + SPARE_HITS)
        ):
            return hits[:k]
        limit *= 4
