"""Caches of what is computed of words, bounded in memory: a caller's text can be one long word."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Generic, TypeVar

T = TypeVar("T")
Context = TypeVar("Context")

LONGEST = 64
"""Characters of the longest word whose results are kept. Longer ones, such as encoded data, are
seldom repeated."""
WORDS = 65_536


class cached_words(Generic[Context, T]):  # noqa: N801 - a decorator
    """A function of a word and something else that keeps its last `WORDS` results."""

    def __init__(self, compute: Callable[[str, Context], T]) -> None:
        self._compute = compute
        cached = lru_cache(maxsize=WORDS)(compute)
        self._cached: Callable[[str, Context], T] = cached
        self.cache_clear = cached.cache_clear
        self.cache_info = cached.cache_info

    def __call__(self, word: str, context: Context) -> T:
        compute = self._cached if len(word) <= LONGEST else self._compute
        return compute(word, context)
