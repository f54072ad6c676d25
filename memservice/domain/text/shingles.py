"""How much of one text another text repeats: the measure that detects echoes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memservice.domain.text.normal_forms import normalize
from memservice.domain.text.scripts import UNSPACED_LETTERS

_TOKEN = re.compile(rf"([{UNSPACED_LETTERS}]+)|[^\W_{UNSPACED_LETTERS}]+")
_WORDS = 3
_CHARACTERS = 2

Shingle = tuple[str, ...]


def shingles_overlap(a: str, b: str) -> float:
    """The share of `a`'s shingles that also occur in `b`, from 0.0 to 1.0. Not symmetric; 0.0 if
    `a` has no words.

    A shingle is three successive words, or two successive characters of a script without spaces. A
    shorter text (or run of characters) is one shingle. Case, width, white space and punctuation do
    not count.
    """
    shingles = _shingles_of(a)
    return len(shingles & _present(b)) / len(shingles) if shingles else 0.0


def shingle_count(text: str) -> int:
    """The number of distinct shingles of a text."""
    return len(_shingles_of(text))


class ShingleIndex:
    """Finds which of many texts repeat a text: as `shingles_overlap` with each of them, but
    faster."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._shingles: list[set[Shingle]] = []
        self._holding: dict[Shingle, list[int]] = {}
        for number, text in enumerate(texts):
            present = _present(text)
            self._shingles.append(present)
            for shingle in present:
                self._holding.setdefault(shingle, []).append(number)

    def repeating(self, text: str, share: float) -> list[int]:
        """The numbers of the texts that contain at least this share (above 0) of the text's
        shingles, in order."""
        shingles = _shingles_of(text)
        if not shingles:
            return []
        # A text that lacks at most n shingles contains at least one of the n + 1 rarest ones.
        lacking = int(len(shingles) * (1 - share) + 1e-9)
        rarest = sorted(shingles, key=lambda shingle: len(self._holding.get(shingle, ())))[
            : lacking + 1
        ]
        candidates = {number for shingle in rarest for number in self._holding.get(shingle, ())}
        return sorted(
            number
            for number in candidates
            if len(shingles & self._shingles[number]) / len(shingles) >= share
        )


def _shingles_of(text: str) -> set[Shingle]:
    """The shingles of a text."""
    words, runs = _parts(text)
    shingles = _grams(words, min(_WORDS, len(words)))
    for run in runs:
        shingles |= _grams(list(run), min(_CHARACTERS, len(run)))
    return shingles


def _present(text: str) -> set[Shingle]:
    """Everything in a text that may be a shingle of another text, with shorter ones."""
    words, runs = _parts(text)
    shingles = {gram for size in range(1, _WORDS + 1) for gram in _grams(words, size)}
    return shingles | {
        gram
        for run in runs
        for size in range(1, _CHARACTERS + 1)
        for gram in _grams(list(run), size)
    }


def _parts(text: str) -> tuple[list[str], list[str]]:
    """Words, and runs of characters of scripts without spaces, each in order."""
    words: list[str] = []
    runs: list[str] = []
    for match in _TOKEN.finditer(normalize("NFKC", text).casefold()):
        (runs if match.group(1) else words).append(match.group())
    return words, runs


def _grams(parts: list[str], size: int) -> set[Shingle]:
    return {tuple(parts[i : i + size]) for i in range(len(parts) - size + 1)} if size else set()
