"""The first k of a ranking whose source breaks ties in its own way."""

from __future__ import annotations

from collections.abc import Callable

from memservice.spi.vectors import VectorHit

SPARE_HITS = 16
"""How many hits are asked for beyond k, to see whether the last place is shared."""
MAX_HITS = 10_000
"""Equal hits are not followed further than this."""


def stable_top_k(ask: Callable[[int], list[VectorHit]], k: int) -> list[VectorHit]:
    """The `k` best of `ask(n)`, which answers with the n nearest in whatever order of equals: best
    first, ties by key.

    Asks for more as long as rows that it has not seen may share the score of the last place. Scores
    are cut to −1..1, which rounding leaves.
    """
    wanted = k + SPARE_HITS
    while True:
        hits = sorted(
            (VectorHit(hit.key, min(1.0, max(-1.0, hit.score))) for hit in ask(wanted)),
            key=lambda hit: (-hit.score, hit.key),
        )
        if (
            len(hits) < wanted
            or hits[-1].score < hits[k - 1].score
            or wanted >= max(MAX_HITS, k + SPARE_HITS)
        ):
            return hits[:k]
        wanted *= 4
