"""Folding, which gives spellings of one word the same form, and segmenting, which finds words."""

from __future__ import annotations

import re
import unicodedata
from itertools import filterfalse, pairwise

from memservice.domain.text.late_pattern import late_pattern
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
"""Characters of the longest term; a longer run of letters is cut."""

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
"""Makes all apostrophes alike and removes invisible characters and variation selectors. Applied
before normalising, which would turn some of them into blanks."""

_AFTER = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ı": "i"}
)
"""Letters that Unicode does not decompose."""

_ACCENTS = late_pattern(
    "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
"""Accents on Latin, Greek and Cyrillic letters, Hebrew points, Arabic vowel signs. Indic and Thai
vowels are letters and are not removed."""

_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")


_ALONE = (
    (0x0000, 0x02FF),
    (0x0370, 0x0482),
    (0x048A, 0x052F),
    (0x1E00, 0x1EFF),
    (0x2000, 0x206F),
    (0x20A0, 0x20CF),
    (0x2100, 0x2BFF),
    (0x3000, 0x3029),
    (0x3030, 0x303F),
    (0x3041, 0x3096),
    (0x30A0, 0x30FF),
    (0x3400, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0xFE00, 0xFE0F),
    (0xFF01, 0xFF9D),
    (0x1F300, 0x1FAFF),
)
"""Ranges of characters that are folded alone: none joins the one before it. Latin, Cyrillic and
Greek letters with their accents, punctuation, symbols, and what Chinese, Japanese and Korean are
written with."""


class _NotAloneError(Exception):
    """A text has a character that may join the one before it."""


class _FoldedCharacters(dict[int, str | int]):
    """Characters of `_ALONE` and their folded forms, each computed when it is first met: a table
    for `str.translate`."""

    def __missing__(self, code: int) -> str | int:
        if not any(first <= code <= last for first, last in _ALONE):
            raise _NotAloneError
        folded = _fold_together(chr(code))
        # One that stays as it is has the number that is the key, and no text of its own.
        self[code] = code if folded == chr(code) else folded
        return self[code]


_FOLDED = _FoldedCharacters()


def fold(text: str) -> str:
    """The text in NFKC, case-folded, without accents, with digits of every script as 0-9 and every
    apostrophe as `'`."""
    if text.isascii():
        return text.lower().replace("`", "'") if "`" in text else text.lower()
    try:
        return text.translate(_FOLDED)
    except _NotAloneError:
        return _fold_together(text)


def _fold_together(text: str) -> str:
    """`fold` of any text: ten times as slow."""
    text = normalize("NFKC", text.translate(_BEFORE)).casefold().translate(_AFTER)
    text = normalize("NFC", _ACCENTS.sub("", normalize("NFD", text)))
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


UNSPACED = late_pattern(f"[{HAN}{HANGUL}{KANA}{OTHER_UNSPACED}]")
"""One character of a script that is written without spaces, or whose words carry their particles
without one (Korean)."""

_STANDS_ALONE = late_pattern(f"[{HAN}{HANGUL}]")
"""Characters that can be a word of their own."""

SCRIPT_RUN = late_pattern(f"[{HAN}]+|[{HANGUL}]+|[{KATAKANA}]+|[{HIRAGANA}]+|[{OTHER_UNSPACED}]+")
"""A run of one such script."""

HAN_RUN = late_pattern(f"[{HAN}]+")


def is_wordlike(char: str) -> bool:
    """Whether the character is a letter, a digit, or a mark that is part of a letter in Indic and
    South-East Asian scripts."""
    return char.isalnum() or _is_mark(char)


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "M"


def safe(word: str) -> str:
    """The word in letters and digits only. Marks, at which some engines split words, become their
    hexadecimal code points."""
    if not word.isalnum():
        word = "".join(c if c.isalnum() else f"{ord(c):x}" for c in word if is_wordlike(c))
    return word[:MAX_TERM]


def _clusters(run: str) -> list[str]:
    """The characters of a run, each with the marks that follow it."""
    clusters: list[str] = []
    for char in run:
        if clusters and unicodedata.category(char)[0] == "M" and len(clusters[-1]) < 8:
            clusters[-1] += char
        else:
            clusters.append(char)
    return clusters


def grams(run: str) -> list[str]:
    """Overlapping pairs of a run without spaces, and each character that can be a word of its own.
    A run of one character stays as it is.

    The single characters make 猫 match 猫は好き; pairs alone would not.
    """
    if run.isalnum():  # without marks
        clusters = list(run)
    else:
        clusters = [part for cluster in _clusters(run) if (part := safe(cluster))]
    if len(clusters) < 2:
        return clusters
    terms: list[str] = []
    for here, after in pairwise(clusters):
        if _STANDS_ALONE.match(here):
            terms.append(here)
        terms.append((here + after)[:MAX_TERM])
    if _STANDS_ALONE.match(clusters[-1]):
        terms.append(clusters[-1])
    return terms


_ASCII_WORD = re.compile(r"[a-z0-9]+(?:'[a-z0-9]+)*")
_WORD = re.compile(r"[^\W_]+(?:'+[^\W_]+)*")
"""The same for every script, in text without marks."""


def _runs(text: str) -> list[str]:
    """Word-like runs of folded text, with apostrophes inside them."""
    if not any(map(_is_mark, filterfalse(str.isalnum, set(text)))):
        return _WORD.findall(text)
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


_UNSPACED_PART = late_pattern(f"([{HAN}{HANGUL}{KANA}{OTHER_UNSPACED}]+)")


def segment(folded: str) -> list[str]:
    """The words of folded text in order, with repetitions: runs of letters and digits, and `grams`
    for scripts without spaces.

    A word may still contain apostrophes ("caroline's").
    """
    if folded.isascii():
        return _ASCII_WORD.findall(folded)
    segments: list[str] = []
    for run in _runs(folded):
        if run.isascii():
            segments.append(run)
        elif not UNSPACED.search(run):
            segments.append(run if "'" in run else safe(run))
        else:
            for number, part in enumerate(_UNSPACED_PART.split(run)):
                if number % 2:
                    segments.extend(grams(part))
                elif part := part.strip("'"):
                    segments.append(part if "'" in part else safe(part))
    return [word for word in segments if word]
