"""Feature hashing of words, character n-grams and pairs of adjacent words into 384 dimensions.

The vector is a pure function of the text: no corpus statistics, no state, no salted `hash()`. A
change of a number or a rule here, or in `memservice.domain.text.analysis.words`, changes the
vectors of every text: then change `ID` too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from memservice.domain.text.analysis import words
from memservice.domain.text.words import STOP_WORDS
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Purpose

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memservice.spi.vectors import Vector

DIMENSION = 384
ID = f"hashed-v1-{DIMENSION}"

_WORD = 1.0
_STOP_WORD = 0.3
"""Function words are in every text: at full weight any two sentences would be similar."""
_GRAMS = 0.8
"""Norm of all n-grams of one word together, so that long words weigh as much as short ones."""
_PAIR = 0.5
_GRAM_SIZES = (3, 4)
_MAX_WORDS = 4096
"""Maximum words of a text; the rest is ignored."""

Features = tuple["NDArray[np.intp]", "NDArray[np.float64]"]


def _slot(feature: str) -> tuple[int, float]:
    """Index and sign of a feature."""
    number = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "little")
    return (number >> 1) % DIMENSION, 1.0 if number & 1 else -1.0


@lru_cache(maxsize=16_384)
def _word_features(word: str) -> Features:
    """Indexes and weights of one word: the word itself, and the n-grams of `<word>`."""
    weight = _STOP_WORD if word in STOP_WORDS else _WORD
    index, sign = _slot("w:" + word)
    indexes, values = [index], [sign * weight]
    if len(word) > 2:
        padded = f"<{word}>"
        grams = [padded[i : i + n] for n in _GRAM_SIZES for i in range(len(padded) - n + 1)]
        share = weight * _GRAMS / sqrt(len(grams))
        for gram in grams:
            index, sign = _slot("g:" + gram)
            indexes.append(index)
            values.append(sign * share)
    return np.array(indexes, dtype=np.intp), np.array(values)


@lru_cache(maxsize=4_096)  # pairs are seldom repeated
def _pair_feature(first: str, second: str) -> tuple[int, float]:
    index, sign = _slot(f"p:{first} {second}")
    return index, sign * _PAIR


def _embed(text: str) -> Vector:
    tokens = words(text)[:_MAX_WORDS]
    if not tokens:
        return np.zeros(DIMENSION, dtype=np.float32)
    indexes: list[NDArray[np.intp]] = []
    values: list[NDArray[np.float64]] = []
    for word, count in Counter(tokens).items():
        word_indexes, word_values = _word_features(word)
        indexes.append(word_indexes)
        values.append(word_values if count == 1 else word_values * sqrt(count))
    content = [word for word in tokens if word not in STOP_WORDS]
    pairs = [_pair_feature(first, second) for first, second in dict.fromkeys(pairwise(content))]
    if pairs:
        indexes.append(np.array([index for index, _ in pairs], dtype=np.intp))
        values.append(np.array([value for _, value in pairs]))
    vector = np.bincount(
        np.concatenate(indexes), weights=np.concatenate(values), minlength=DIMENSION
    )
    norm = float(np.sqrt(vector @ vector))
    if norm == 0.0:
        return np.zeros(DIMENSION, dtype=np.float32)
    return (vector / norm).astype(np.float32)


class HashedEmbedder:
    """Deterministic on every machine and in every process. Safe for threads."""

    id: str = ID
    dimension: int = DIMENSION
    capabilities: frozenset[Capability] = frozenset({Capability.INLINE})
    duplicate_distance: float | None = None

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        """One vector per text, in order: of length 1, or zeros for a text without a letter or
        digit. `purpose` has no effect."""
        return [_embed(text) for text in texts]
