"""Folding and segmenting: what two spellings of one word have in common, and where words begin and
end."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

from memservice.domain.text.normal_forms import normalize
from memservice.domain.text.scripts import (
    HAN,
    HANGUL,
    HIRAGANA,
    KANA,
    KATAKANA,
    OTHER_UNSPACED,
)

MAX_TERM = 64
"""Longest term, in characters; the rest of a longer run of letters is dropped."""

_BEFORE = {ord(c): "'" for c in "\u2018\u2019\u201b\u02bc\u02b9\u00b4\u0060\u2032\uff07"} | {
    0x00AD: None,
    0x180E: None,
    0x200B: " ",
    0x200C: None,
    0x200D: None,
    0x2060: None,
    0xFEFF: None,
    **dict.fromkeys(range(0xFE00, 0xFE10)),
    **dict.fromkeys(range(0xE0100, 0xE01F0)),
}
"""Every apostrophe as one; invisible characters and variation selectors away. Before normalising,
which would make blanks of some."""

_AFTER = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ı": "i"}
)
"""Letters that Unicode does not take apart."""

_ACCENTS = re.compile(
    "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
"""Accents on Latin, Greek and Cyrillic letters, Hebrew points, Arabic vowel signs. Indic and Thai
vowels are letters, and stay."""

_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")


def fold(text: str) -> str:
    """NFKC, case-folded, without accents, digits of every script as 0-9, every apostrophe as
    `'`."""
    if text.isascii():
        return text.lower().replace("`", "'") if "`" in text else text.lower()
    text = normalize("NFKC", text.translate(_BEFORE)).casefold().translate(_AFTER)
    text = normalize("NFC", _ACCENTS.sub("", normalize("NFD", text)))
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


UNSPACED = re.compile(f"[{HAN}{HANGUL}{KANA}{OTHER_UNSPACED}]")
"""One character of a script that is written without spaces, or whose words carry their particles
without one (Korean)."""

_STANDS_ALONE = re.compile(f"[{HAN}{HANGUL}]")
"""Characters that can be a word of their own."""

SCRIPT_RUN = re.compile(f"[{HAN}]+|[{HANGUL}]+|[{KATAKANA}]+|[{HIRAGANA}]+|[{OTHER_UNSPACED}]+")
"""A run of one such script."""

HAN_RUN = re.compile(f"[{HAN}]+")


def is_wordlike(char: str) -> bool:
    """Letters, digits, and the marks that are part of a letter in Indic and South-East Asian
    scripts."""
    return char.isalnum() or unicodedata.category(char)[0] == "M"


def safe(word: str) -> str:
    """The word in letters and digits only: marks, which some engines split at, are written as their
    code point."""
    if not word.isalnum():
        word = "".join(c if c.isalnum() else f"{ord(c):x}" for c in word if is_wordlike(c))
    return word[:MAX_TERM]


def _clusters(run: str) -> list[str]:
    """Characters, each with the marks that follow it."""
    clusters: list[str] = []
    for char in run:
        if clusters and unicodedata.category(char)[0] == "M" and len(clusters[-1]) < 8:
            clusters[-1] += char
        else:
            clusters.append(char)
    return clusters


def grams(run: str) -> list[str]:
    """Overlapping pairs of a run without spaces, and each character that can be a word of its own;
    a lone character as it is.

    The single characters are what finds 猫 in 猫は好き; pairs alone would not.
    """
    clusters = [safe(c) for c in _clusters(run)]
    clusters = [c for c in clusters if c]
    if len(clusters) < 2:
        return clusters
    found: list[str] = []
    for here, after in pairwise(clusters):
        if _STANDS_ALONE.match(here):
            found.append(here)
        found.append((here + after)[:MAX_TERM])
    if _STANDS_ALONE.match(clusters[-1]):
        found.append(clusters[-1])
    return found


_ASCII_WORD = re.compile(r"[a-z0-9]+(?:'[a-z0-9]+)*")


def _runs(text: str) -> list[str]:
    """Word-like runs of folded text, apostrophes inside kept."""
    runs: list[str] = []
    current: list[str] = []
    for char in text:
        if char.isalnum() or (current and (char == "'" or is_wordlike(char))):
            current.append(char)
        elif current:
            runs.append("".join(current))
            current = []
    if current:
        runs.append("".join(current))
    return [stripped for run in runs if (stripped := run.rstrip("'"))]


_UNSPACED_PART = re.compile(f"([{HAN}{HANGUL}{KANA}{OTHER_UNSPACED}]+)")


def segment(folded: str) -> list[str]:
    """Words of folded text in order, with repetitions: runs of letters and digits, scripts without
    spaces as `grams`.

    A word may still have apostrophes inside ("caroline's").
    """
    if folded.isascii():
        return _ASCII_WORD.findall(folded)
    found: list[str] = []
    for run in _runs(folded):
        if run.isascii():
            found.append(run)
        elif not UNSPACED.search(run):
            found.append(run if "'" in run else safe(run))
        else:
            for number, part in enumerate(_UNSPACED_PART.split(run)):
                if number % 2:
                    found.extend(grams(part))
                elif part := part.strip("'"):
                    found.append(part if "'" in part else safe(part))
    return [word for word in found if word]
