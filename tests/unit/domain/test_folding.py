"""Folding and segmenting take a shorter way for most texts, with the same results."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.domain.text import folding
from memservice.domain.text.folding import fold, segment

ALONE = [chr(code) for first, last in folding._ALONE for code in range(first, last + 1)]
OTHERS = "\u0301\u0327\u0338\u3099\uff9e\u05b0\u0939\u093f\u0e01\u0e31\u0639\u0650\u1161\u11a8"
"""Marks, vowels and endings that join the character before them, and letters that have them."""


def seconds() -> set[str]:
    """Characters that normalising composes with the one before them."""
    decompositions = (unicodedata.decomposition(chr(code)) for code in range(sys.maxunicode + 1))
    parts = [each.split() for each in decompositions if each and not each.startswith("<")]
    listed = {chr(int(part[1], 16)) for part in parts if len(part) == 2}
    return listed | {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}


@pytest.mark.slow
def test_no_character_that_is_folded_alone_joins_the_one_before_it() -> None:
    joining = seconds()
    for char in ALONE:
        for form in ("NFKD", "NFKC"):
            for text in (char.translate(folding._BEFORE), fold(char)):
                first = unicodedata.normalize(form, text)[:1]
                assert first not in joining, hex(ord(char))
                assert not first or unicodedata.combining(first) == 0, hex(ord(char))


@pytest.mark.slow
@pytest.mark.parametrize("before", ["a", "가", "か"])
def test_characters_are_folded_alone_as_together(before: str) -> None:
    wrong = [
        hex(ord(char))
        for char in ALONE
        if fold(f"{before}{char}b") != folding._fold_together(f"{before}{char}b")
        and not f"{before}{char}".isascii()
    ]
    assert wrong == []


@given(st.text(st.sampled_from([*"aZß1'` ", *OTHERS, *ALONE[::97]]) | st.characters(), max_size=12))
def test_any_text_is_folded_alone_as_together(text: str) -> None:
    assert text.isascii() or fold(text) == folding._fold_together(text)


def test_a_character_that_joins_the_one_before_it_is_folded_with_it() -> None:
    assert fold("Cafe\u0301, か\u3099") == "cafe, が"


def by_character(text: str) -> list[str]:
    """Runs of letters and digits with the apostrophes and marks between them."""
    runs = [""]
    for char in text:
        is_inner = bool(runs[-1]) and (char == "'" or unicodedata.category(char)[0] == "M")
        if char.isalnum() or is_inner:
            runs[-1] += char
        elif runs[-1]:
            runs.append("")
    return [stripped for run in runs if (stripped := run.rstrip("'"))]


@given(st.text(st.sampled_from([*"ab1_''. ", *OTHERS, *ALONE[::97]]), max_size=12))
def test_words_are_the_same_with_and_without_marks_in_the_text(text: str) -> None:
    assert folding._runs(text) == by_character(text)


def test_apostrophes_stand_within_words_only() -> None:
    assert segment("l'été, rock''n'roll' 'там' x_y") == [
        *("l'été", "rock''n'roll", "там", "x", "y"),
    ]
