"""Feature hashing of words, character n-grams and neighbouring words into 384 dimensions.

The vector is a pure function of the text: no statistics of any corpus, no state, no salted
`hash()`. Whoever changes a number or a rule here, or in `memservice.domain.text.analysis.words`,
changes the vectors of every text and has to change `ID`.
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
"""Function words are in every text: at full weight any two sentences would look alike."""
_GRAMS = 0.8
"""Norm of all n-grams of one word together, so that long words weigh no more than short ones."""
_PAIR = 0.5
_GRAM_SIZES = (3, 4)
_MAX_WORDS = 4096
"""Words of a text that are looked at; what comes later changes nothing."""

Features = tuple["NDArray[np.intp]", "NDArray[np.float64]"]


def _slot(feature: str) -> tuple[int, float]:
    """Place and sign of a feature."""
    number = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "little")
    return (number >> 1) % DIMENSION, 1.0 if number & 1 else -1.0


@lru_cache(maxsize=32768)
def _word_features(word: str) -> Features:
    """Places and weights of one word: itself, and the n-grams of `<word>`."""
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


@lru_cache(maxsize=65536)
def _pair_feature(first: str, second: str) -> tuple[int, float]:
    index, sign = _slot(f"p:{first} {second}")
    return index, sign * _PAIR


def _embed(text: str) -> Vector:
    found = words(text)[:_MAX_WORDS]
    if not found:
        return np.zeros(DIMENSION, dtype=np.float32)
    places: list[NDArray[np.intp]] = []
    values: list[NDArray[np.float64]] = []
    for word, times in Counter(found).items():
        at, worth = _word_features(word)
        places.append(at)
        values.append(worth if times == 1 else worth * sqrt(times))
    content = [word for word in found if word not in STOP_WORDS]
    pairs = [_pair_feature(first, second) for first, second in dict.fromkeys(pairwise(content))]
    if pairs:
        places.append(np.array([index for index, _ in pairs], dtype=np.intp))
        values.append(np.array([value for _, value in pairs]))
    vector = np.bincount(
        np.concatenate(places), weights=np.concatenate(values), minlength=DIMENSION
    )
    norm = float(np.sqrt(vector @ vector))
    if norm == 0.0:
        return np.zeros(DIMENSION, dtype=np.float32)
    return (vector / norm).astype(np.float32)


class HashedEmbedder:
    """Deterministic on every machine and in every process; safe to call from several threads."""

    id: str = ID
    dimension: int = DIMENSION
    capabilities: frozenset[Capability] = frozenset({Capability.INLINE})
    duplicate_distance: float | None = None

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        """One vector per text, in order: of length 1, or all zeros for a text without a letter or
        digit. `purpose` changes nothing."""
        return [_embed(text) for text in texts]
