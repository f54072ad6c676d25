"""Scores and orders: pure functions of what the indexes found. Higher is better; ties go by key,
ascending, so order is total."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

K1 = 1.2
"""How soon repetitions of a term stop counting."""
B = 0.75
"""How far a long text is held against it, 0 to 1."""
WINDOW = 2
"""How many messages before and after a hit share in it."""
NEIGHBOUR_WEIGHT = 0.5
"""How much of a hit's score each of them gets."""
RRF_K = 20
"""Smoothing of reciprocal ranks: small trusts the first places more."""

Scores = dict[int, float]


@dataclass(frozen=True, slots=True)
class TextHit:
    """One candidate: how often each query term occurs in it, and how many terms it has."""

    key: int
    terms: Mapping[str, int]
    length: int


@dataclass(frozen=True, slots=True)
class TextMatches:
    """Candidates in no particular order, with the workspace's own statistics for this kind of row.

    `documents` and `mean_length` describe all rows of the workspace, `frequencies` how many of them
    hold each term; none of them changes with `where`, nor with other workspaces' text.
    """

    documents: int
    mean_length: float
    frequencies: Mapping[str, int] = field(default_factory=dict)
    hits: Sequence[TextHit] = ()


def idf(documents: int, frequency: int) -> float:
    """What a term is worth that `frequency` of `documents` texts hold. Never negative, also where
    the counts are a little stale."""
    return math.log1p(max(0.0, documents - frequency + 0.5) / (max(0, frequency) + 0.5))


def bm25(matches: TextMatches, k1: float = K1, b: float = B) -> Scores:
    """Score of each hit, by the workspace's own statistics. A term without a known frequency counts
    as held by its hits alone."""
    mean = matches.mean_length if matches.mean_length > 0 else 1.0
    weights: dict[str, float] = {}
    for term, frequency in matches.frequencies.items():
        weights[term] = idf(matches.documents, frequency) * (k1 + 1)
    unknown = idf(matches.documents, 1) * (k1 + 1)
    scores: Scores = {}
    for hit in matches.hits:
        norm = k1 * (1 - b + b * hit.length / mean)
        scores[hit.key] = sum(
            weights.get(term, unknown) * tf / (tf + norm)
            for term, tf in hit.terms.items()
            if tf > 0
        )
    return scores


class Placed(Protocol):
    """Where a message stands, and how long it is."""

    @property
    def session_key(self) -> int: ...
    @property
    def seq(self) -> int: ...
    @property
    def tokens(self) -> int: ...


_SESSION = 1 << 32
"""Apart by more than any session is long."""

NO_HEADER_TERMS: Mapping[int, Collection[str]] = {}


def bm25_with_neighbours(
    matches: TextMatches,
    positions: Mapping[int, Placed],
    header_terms: Mapping[int, Collection[str]] = NO_HEADER_TERMS,
    reach: int = WINDOW,
    share: float = NEIGHBOUR_WEIGHT,
    k1: float = K1,
    b: float = B,
) -> Scores:
    """BM25 in which each hit lends `share` of its term counts to the messages up to `reach` places
    before and after it.

    This is what a stored field of the neighbours' text would score, without storing one: counts are
    shared before repetitions saturate, and a text is as long as itself and its neighbours together.
    `positions` holds the hits and the messages around them; one that is missing has the mean
    length, and gains nothing. `header_terms` are the terms of a hit that only say who spoke and
    when: they count for the hit itself, once each, and are not lent.
    """
    import numpy as np

    if not matches.hits:
        return {}
    mean = matches.mean_length if matches.mean_length > 0 else 1.0
    terms = sorted({term for hit in matches.hits for term in hit.terms})
    column = {term: number for number, term in enumerate(terms)}
    # Rows: every message with a place, ordered by (session, seq) and found by one number each; then
    # hits without a place.
    codes = {
        key: position.session_key * _SESSION + position.seq for key, position in positions.items()
    }
    keys = sorted(codes, key=codes.__getitem__)
    at = np.array([codes[key] for key in keys], dtype=np.int64)
    row = {key: number for number, key in enumerate(keys)}
    for hit in matches.hits:
        if hit.key not in row:
            row[hit.key] = len(keys)
            keys.append(hit.key)
    counts = np.zeros((len(keys), len(terms)))
    said = np.zeros_like(counts)
    lengths = np.full(len(keys), mean)
    for hit in matches.hits:
        here, head = row[hit.key], header_terms.get(hit.key, ())
        for term, tf in hit.terms.items():
            counts[here, column[term]] = tf
            said[here, column[term]] = tf - (term in head)
    placed = len(at)
    sizes = np.array([max(positions[key].tokens, 1) for key in keys[:placed]], dtype=np.float64)
    hit_rows = [row[hit.key] for hit in matches.hits]
    known = [
        (length.length, sizes[here])
        for here, length in zip(hit_rows, matches.hits, strict=True)
        if here < placed
    ]
    measured = float(sum(size for _, size in known))
    lengths[:placed] = sizes * (sum(length for length, _ in known) / measured) if measured else mean
    lengths[hit_rows] = [hit.length for hit in matches.hits]
    around = lengths + 2 * reach * mean
    for step in range(-reach, reach + 1):
        if step and placed:
            other = np.minimum(np.searchsorted(at, at + step), placed - 1)
            found = np.flatnonzero(at[other] == at + step)
            counts[found] += share * said[other[found]]
            around[found] += lengths[other[found]] - mean
    norm = k1 * (1 - b + b * around / ((2 * reach + 1) * mean))
    unknown = idf(matches.documents, 1)
    scored = np.zeros(len(keys))
    for term in terms:
        # Column by column, not as one matrix product: that may round equal rows differently, and
        # ties have to stay ties.
        weight = (
            idf(matches.documents, matches.frequencies[term])
            if term in matches.frequencies
            else unknown
        ) * (k1 + 1)
        held = counts[:, column[term]]
        scored += weight * (held / (held + norm))
    return {keys[here]: float(scored[here]) for here in np.flatnonzero(counts.any(axis=1))}


def normalise(scores: Mapping[int, float]) -> Scores:
    """Scores as shares of the best one; all zero where nothing scored above zero."""
    best = max(scores.values(), default=0.0)
    return {key: max(0.0, score) / best if best > 0 else 0.0 for key, score in scores.items()}


def ranked(scores: Mapping[int, float], limit: int | None = None) -> list[int]:
    """Keys, best first, ties by key."""
    return sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:limit]


def fuse(lists: Iterable[Sequence[int]], k: int = RRF_K, limit: int | None = None) -> list[int]:
    """One order out of several: each key scores the sum of 1 / (k + rank) over the lists that hold
    it, ranks from 1.

    The sum does not depend on the order of the lists. Within a list a key counts at its first
    place.
    """
    shares: dict[int, list[float]] = {}
    for ranking in lists:
        for rank, key in enumerate(dict.fromkeys(ranking), 1):
            shares.setdefault(key, []).append(1.0 / (k + rank))
    return ranked({key: math.fsum(parts) for key, parts in shares.items()}, limit)
