"""Scores and orders: pure functions of what the indexes found. Higher is better; ties go by key, ascending, so order is total."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memservice.spi.text import TextMatches

K1 = 1.2
"""How soon repetitions of a term stop counting."""
B = 0.75
"""How far a long text is held against it, 0 to 1."""
REACH = 2
"""How many messages before and after a hit share in it."""
SHARE = 0.5
"""How much of a hit's score each of them gets."""
RRF_K = 20
"""Smoothing of reciprocal ranks: small trusts the first places more."""

Scores = dict[int, float]


def idf(documents: int, frequency: int) -> float:
    """What a term is worth that `frequency` of `documents` texts hold. Never negative, also where the counts are a little stale."""
    return math.log1p(max(0.0, documents - frequency + 0.5) / (max(0, frequency) + 0.5))


def bm25(matches: TextMatches, k1: float = K1, b: float = B) -> Scores:
    """Score of each hit, by the workspace's own statistics. A term without a known frequency counts as held by its hits alone."""
    mean = matches.mean_length if matches.mean_length > 0 else 1.0
    weights: dict[str, float] = {}
    for term, frequency in matches.frequencies.items():
        weights[term] = idf(matches.documents, frequency) * (k1 + 1)
    unknown = idf(matches.documents, 1) * (k1 + 1)
    scores: Scores = {}
    for hit in matches.hits:
        norm = k1 * (1 - b + b * hit.length / mean)
        scores[hit.key] = sum(weights.get(term, unknown) * tf / (tf + norm) for term, tf in hit.terms.items() if tf > 0)
    return scores


def spread(scores: Mapping[int, float], positions: Mapping[int, tuple[int, int]], reach: int = REACH, share: float = SHARE) -> Scores:
    """Scores after each hit has given `share` of its own to the messages up to `reach` places before and after it.

    `positions` maps keys to (session, seq), for the hits and for every message that may gain. A message adds up what it is given;
    what is given is not passed on. Neighbours without a position gain nothing, hits without one keep their score and give none.
    """
    at = {place: key for key, place in positions.items()}
    total: Scores = dict(scores)
    for key in sorted(scores):
        place = positions.get(key)
        if place is None:
            continue
        session, seq = place
        gift = scores[key] * share
        for step in range(-reach, reach + 1):
            neighbour = at.get((session, seq + step)) if step else None
            if neighbour is not None:
                total[neighbour] = total.get(neighbour, 0.0) + gift
    return total


def normalise(scores: Mapping[int, float]) -> Scores:
    """Scores as shares of the best one; all zero where nothing scored above zero."""
    best = max(scores.values(), default=0.0)
    return {key: max(0.0, score) / best if best > 0 else 0.0 for key, score in scores.items()}


def ranked(scores: Mapping[int, float], limit: int | None = None) -> list[int]:
    """Keys, best first, ties by key."""
    return sorted(scores, key=lambda key: (-scores[key], key))[:limit]


def fuse(lists: Iterable[Sequence[int]], k: int = RRF_K, limit: int | None = None) -> list[int]:
    """One order out of several: each key scores the sum of 1 / (k + rank) over the lists that hold it, ranks from 1.

    The sum does not depend on the order of the lists. Within a list a key counts at its first place.
    """
    shares: dict[int, list[float]] = {}
    for ranking in lists:
        for rank, key in enumerate(dict.fromkeys(ranking), 1):
            shares.setdefault(key, []).append(1.0 / (k + rank))
    return ranked({key: math.fsum(parts) for key, parts in shares.items()}, limit)
