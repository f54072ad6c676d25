"""How much of one text is found again in another: the measure by which repeated words are known for
an echo."""

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

    A shingle is three successive words, or two successive characters of a script without spaces; a
    text (or a run of characters) that is shorter is one shingle of its whole length. Case, width,
    white space and punctuation do not count.
    """
    wanted = _wanted(a)
    return len(wanted & _present(b)) / len(wanted) if wanted else 0.0


class ShingleIndex:
    """Many texts, to find whether one of them repeats another text; as `shingles_overlap` with each
    of them tells, only faster."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._shingles: list[set[Shingle]] = []
        self._holding: dict[Shingle, list[int]] = {}
        for number, text in enumerate(texts):
            present = _present(text)
            self._shingles.append(present)
            for shingle in present:
                self._holding.setdefault(shingle, []).append(number)

    def repeating(self, text: str, share: float) -> list[int]:
        """The places of the texts in which at least this share (above 0) of the text's shingles is
        found again."""
        wanted = _wanted(text)
        if not wanted:
            return []
        # A text that lacks at most so many shingles holds at least one of the rarest so many and
        # one.
        lacking = int(len(wanted) * (1 - share) + 1e-9)
        rarest = sorted(wanted, key=lambda shingle: len(self._holding.get(shingle, ())))[
            : lacking + 1
        ]
        candidates = {number for shingle in rarest for number in self._holding.get(shingle, ())}
        return sorted(
            number
            for number in candidates
            if len(wanted & self._shingles[number]) / len(wanted) >= share
        )


def _wanted(text: str) -> set[Shingle]:
    """The shingles by which a text is known."""
    words, runs = _parts(text)
    found = _grams(words, min(_WORDS, len(words)))
    for run in runs:
        found |= _grams(list(run), min(_CHARACTERS, len(run)))
    return found


def _present(text: str) -> set[Shingle]:
    """Everything in a text that may be a shingle of another one, shorter ones included."""
    words, runs = _parts(text)
    found = {gram for size in range(1, _WORDS + 1) for gram in _grams(words, size)}
    return found | {
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
