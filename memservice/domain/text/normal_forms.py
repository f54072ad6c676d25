"""Unicode normal forms of untrusted text, in linear time.

`unicodedata.normalize` sorts each run of combining characters by insertion: a run of 300,000 marks
of different classes took 100 seconds, during which no other thread ran. So no other module calls it
(a test checks this).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

MAX_MARKS = 30
"""Maximum number of successive combining characters that are normalised together, as in the
Stream-Safe Text Format (UAX #15). No language needs nearly as many."""

_JOINER = "\u034f"
"""COMBINING GRAPHEME JOINER: invisible, and marks are not sorted across it."""

_SUSPECTS = re.compile(rf"[\W\uff9e\uff9f]{{{MAX_MARKS + 1},}}+")
"""Runs that may contain too many marks: all marks are `\\W`, except two half-width Japanese ones,
which become marks in NFKC and NFKD."""


def normalize(form: Form, text: str) -> str:
    """`unicodedata.normalize` of the text, in which runs of more than 30 combining characters are
    divided by a grapheme joiner.

    For every other text the result is the same.
    """
    if text.isascii():
        return text
    return unicodedata.normalize(form, _SUSPECTS.sub(_divided, text))


def is_mark(char: str) -> bool:
    """Whether normalising sorts this character (or what it turns into) together with those before
    it."""
    return (
        unicodedata.combining(char) > 0
        or unicodedata.combining(unicodedata.normalize("NFKD", char)[0]) > 0
    )


def _divided(run: re.Match[str]) -> str:
    all_marks = {char for char in set(run[0]) if is_mark(char)}
    if not all_marks:
        return run[0]
    parts: list[str] = []
    marks = 0
    for char in run[0]:
        marks = marks + 1 if char in all_marks else 0
        if marks > MAX_MARKS:
            parts.append(_JOINER)
            marks = 1
        parts.append(char)
    return "".join(parts)
