"""Unicode normal forms: ordinary texts are unchanged, and no run of marks is sorted as a whole."""

from __future__ import annotations

import re
import sys
import unicodedata
from pathlib import Path

import pytest

from memservice.domain import ids
from memservice.domain.text import shingles
from memservice.domain.text.folding import fold
from memservice.domain.text.normal_forms import MAX_MARKS, is_mark, normalize

ROOT = Path(__file__).parents[3]
GRAVE_ACUTE = "\u0316\u0301"
SAMPLES = (
    "",
    "Grüße aus Ångström, ﬁne",
    "e\u0301" * 50,
    "a" + GRAVE_ACUTE * (MAX_MARKS // 2),
    "Việt Nam, שָׁלוֹם, हिन्दी, ไทย, ｶﾞｷﾞｸﾞ, 한국어",
    "—" * 100 + "\u0301",
)


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("text", SAMPLES)
def test_texts_with_at_most_thirty_successive_marks_are_normalised_as_usual(
    form: str, text: str
) -> None:
    assert normalize(form, text) == unicodedata.normalize(form, text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pair", ["\u0301\u0316", "\uff9e\u0301", "\u0f73\u0301", "\u05b0\u0301", "\u20d0\u20e8"]
)
def test_longer_runs_are_divided_and_none_of_their_marks_is_lost(pair: str) -> None:
    text = "a" + pair * 500
    normalized = normalize("NFKD", text)
    longest = max(
        len(run)
        for run in re.split(
            "[^\u0300-\u034e\u0350-\u036f\u0591-\u05c7\u0f71-\u0f84\u20d0-\u20ff\u3099]", normalized
        )
    )
    assert longest <= 2 * MAX_MARKS  # a mark of Tibetan is two
    assert sorted(normalized.replace("\u034f", "")) == sorted(unicodedata.normalize("NFKD", text))


@pytest.mark.slow
def test_every_mark_of_this_unicode_version_is_matched() -> None:
    marks = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if not 0xD800 <= code < 0xE000 and is_mark(chr(code))
    ]
    assert len(marks) > 900
    assert all(
        normalize("NFD", "a" + mark * (MAX_MARKS + 1)).count("\u034f") == 1 for mark in marks
    )


def test_texts_that_differ_after_the_thirtieth_mark_stay_different() -> None:
    one, other = ("a" + "\u0301" * 40 + end for end in "bc")
    assert ids.fingerprint(one) != ids.fingerprint(other)
    assert shingles.shingles_overlap(one, other) == 0.0
    assert fold(one) == "ab"


@pytest.mark.slow
def test_no_other_module_calls_unicodedata_normalize() -> None:
    sources = [
        path
        for folder in ("memservice", "backends", "plugins")
        for path in (ROOT / folder).rglob("*.py")
    ]
    assert len(sources) > 100
    callers = [
        path.name
        for path in sources
        if re.search(r"unicodedata\.normalize|from unicodedata import", path.read_text("utf-8"))
    ]
    assert callers == ["normal_forms.py"]
