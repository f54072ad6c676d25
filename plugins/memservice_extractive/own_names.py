"""Names of the subject in a question: in forms that are not those of its record."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from memservice.domain.text.folding import fold

_MIN_STEM = 4
_MAX_ENDING = 3
"""A word that goes on after a name of at least four letters by at most three is a form of it:
"Kaluanã" for `kalu`. A shorter name has only the "s" of its genitive."""


def is_form_of(word: str, names: Iterable[str]) -> bool:
    """Whether a folded word is one of the folded names, or a form of it."""
    return any(
        word == name
        or word == f"{name}s"
        or (
            len(name) >= _MIN_STEM
            and word.startswith(name)
            and len(word) - len(name) <= _MAX_ENDING
        )
        for name in names
    )


def forms_pattern(names: Collection[str]) -> re.Pattern[str] | None:
    """The pattern of the forms of folded names in text with spaces; None without names."""
    if not names:
        return None
    alternatives = "|".join(
        re.escape(name) + (f"[^\\W_]{{0,{_MAX_ENDING}}}" if len(name) >= _MIN_STEM else "s?")
        for name in sorted(names, key=len, reverse=True)
    )
    return re.compile(rf"(?<![^\W_])(?:{alternatives})(?![^\W_])")


_INTRODUCTIONS = {
    "zh": (r"(?:我(?:的名字)?(?:是|叫)|叫我)\w?", ""),
    "ja": ("", "(?:です|だよ|といいます|と言います|と申します|って呼)"),
}
"""What stands before and after the name of the speaker."""
_MAX_NAME = 8


def introduced_at_start(question: str, sentences: Sequence[str], language: str) -> str:
    """The beginning of a question in Chinese or Japanese, in folded text, by which the speaker of
    the sentences introduces itself; "" if there is none."""
    before, after = _INTRODUCTIONS[language]
    text = " ".join(map(fold, sentences))
    for length in range(min(_MAX_NAME, len(question)), 1, -1):
        name = question[:length]
        if name.isalpha() and re.search(f"{before}{re.escape(name)}{after}", text):
            return name
    return ""
