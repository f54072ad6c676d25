"""How much of one text is found again in another: the measure by which repeated words are known for an echo."""

from __future__ import annotations

import re
import unicodedata

# Scripts written without spaces: Thai, Lao, Myanmar, Khmer, kana, bopomofo, Han.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3105-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff々〇"
)
_TOKEN = re.compile(rf"([{_UNSPACED}]+)|[^\W_{_UNSPACED}]+")
_WORDS = 3
_CHARACTERS = 2

Shingle = tuple[str, ...]


def shingles_overlap(a: str, b: str) -> float:
    """The share of `a`'s shingles that also occur in `b`, from 0.0 to 1.0. Not symmetric; 0.0 if `a` has no words.

    A shingle is three successive words, or two successive characters of a script without spaces; a text (or a run of characters) that is
    shorter is one shingle of its whole length. Case, width, white space and punctuation do not count.
    """
    words_a, runs_a = _parts(a)
    words_b, runs_b = _parts(b)
    wide = min(_WORDS, len(words_a))
    wanted = _grams(words_a, wide)
    present = _grams(words_b, wide)
    for size in {min(_CHARACTERS, len(run)) for run in runs_a}:
        wanted |= {gram for run in runs_a if min(_CHARACTERS, len(run)) == size for gram in _grams(list(run), size)}
        present |= {gram for run in runs_b for gram in _grams(list(run), size)}
    return len(wanted & present) / len(wanted) if wanted else 0.0


def _parts(text: str) -> tuple[list[str], list[str]]:
    """Words, and runs of characters of scripts without spaces, each in order."""
    words: list[str] = []
    runs: list[str] = []
    for found in _TOKEN.finditer(unicodedata.normalize("NFKC", text).casefold()):
        (runs if found.group(1) else words).append(found.group())
    return words, runs


def _grams(parts: list[str], size: int) -> set[Shingle]:
    return {tuple(parts[i : i + size]) for i in range(len(parts) - size + 1)} if size else set()
