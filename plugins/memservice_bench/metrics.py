"""The quality of a ranking: recall, reciprocal rank, nDCG, and the share of the evidence in a
context with a budget of tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from msgspec import Struct


def recall_at(ranking: Sequence[int], evidence: Collection[int], k: int) -> float:
    """Share of the evidence among the first `k`."""
    return len(set(ranking[:k]) & set(evidence)) / len(set(evidence))


def reciprocal_rank(ranking: Sequence[int], evidence: Collection[int]) -> float:
    """1 / rank of the first piece of evidence; 0 if there is none."""
    relevant = set(evidence)
    return next((1.0 / rank for rank, key in enumerate(ranking, 1) if key in relevant), 0.0)


def ndcg_at(ranking: Sequence[int], evidence: Collection[int], k: int = 10) -> float:
    """Discounted gain of the first `k`, relative to the best possible order."""
    relevant = set(evidence)
    gain = sum(
        1.0 / math.log2(rank + 1)
        for rank, key in enumerate(dict.fromkeys(ranking[:k]), 1)
        if key in relevant
    )
    return gain / sum(1.0 / math.log2(rank + 1) for rank in range(1, min(k, len(relevant)) + 1))


def within(ranking: Sequence[int], sizes: Mapping[int, int], budget: int) -> list[int]:
    """The head of the ranking that fits into `budget` tokens, best first; it ends at the first item
    that does not fit."""
    fitting: list[int] = []
    for key in ranking:
        budget -= sizes[key]
        if budget < 0:
            break
        fitting.append(key)
    return fitting


def coverage(
    ranking: Sequence[int], evidence: Collection[int], sizes: Mapping[int, int], budget: int
) -> float:
    """Share of the evidence in a context of `budget` tokens that is filled best first."""
    return recall_at(within(ranking, sizes, budget), evidence, len(ranking))


class Figure(Struct, frozen=True):
    """A mean with its 95 % interval, all in percent, over `n` questions."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:5.1f} ±{(self.high - self.low) / 2:3.1f}"


def figure(values: Sequence[float], seed: int = 0, rounds: int = 1000) -> Figure:
    """The mean of per-question values with a bootstrap interval; deterministic for a seed. Raises
    ValueError without values."""
    if not values:
        raise ValueError("a figure needs at least one question")
    data = np.asarray(values, dtype=np.float64)
    samples = np.random.default_rng(seed).integers(0, len(data), size=(rounds, len(data)))
    low, high = np.percentile(data[samples].mean(axis=1), (2.5, 97.5))
    return Figure(100 * float(data.mean()), 100 * float(low), 100 * float(high), len(data))


def difference(first: Sequence[float], second: Sequence[float], seed: int = 0) -> Figure:
    """The paired difference `second` - `first` with its interval. Both have values of the same
    questions, in the same order."""
    if len(first) != len(second):
        raise ValueError("paired values must be of the same questions")
    return figure([b - a for a, b in zip(first, second, strict=True)], seed)


Measure = Callable[[Sequence[int], Collection[int], Mapping[int, int]], float]

MEASURES: dict[str, Measure] = {
    "r@5": lambda ranking, evidence, sizes: recall_at(ranking, evidence, 5),
    "r@10": lambda ranking, evidence, sizes: recall_at(ranking, evidence, 10),
    "r@20": lambda ranking, evidence, sizes: recall_at(ranking, evidence, 20),
    "MRR": lambda ranking, evidence, sizes: reciprocal_rank(ranking, evidence),
    "nDCG@10": lambda ranking, evidence, sizes: ndcg_at(ranking, evidence, 10),
    "cov@2k": lambda ranking, evidence, sizes: coverage(ranking, evidence, sizes, 2000),
    "cov@4k": lambda ranking, evidence, sizes: coverage(ranking, evidence, sizes, 4000),
}
"""Name in reports → measure. `sizes` has the tokens of each turn."""
