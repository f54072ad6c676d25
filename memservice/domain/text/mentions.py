"""Mentions of a name in texts, and their replacement."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memservice.domain.text.folding import UNSPACED
from memservice.domain.text.normal_forms import normalize

MARK = "[erased]"
"""Stands in a text where a name was."""

_ACCENT = "\u0300-\u036f"


class Mentions:
    """Finds names as whole words, in any case. A name of several words is found as a whole phrase
    only, with any white space between its words. In a script without spaces, such as Chinese, a
    name is found anywhere."""

    def __init__(self, names: Iterable[str]) -> None:
        forms = {
            normalize(form, stripped)
            for name in names
            if (stripped := name.strip())
            for form in ("NFC", "NFD")
        }
        # The longest first: at one place, the whole of a name is replaced.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        patterns = [f"(?-i:{re.escape(MARK)})", *map(_pattern, ordered)]
        self._pattern = re.compile("|".join(patterns), re.IGNORECASE)

    def are_in(self, text: str) -> bool:
        return any(match[0] != MARK for match in self._pattern.finditer(text))

    def replaced(self, text: str) -> str:
        """The text with `MARK` in place of each mention. A repetition changes nothing."""
        before = None
        while text != before:  # again, as a name can begin where another one was
            before, text = text, self._pattern.sub(MARK, text)
        return text


def _pattern(name: str) -> str:
    words = r"\s+".join(map(re.escape, name.split()))
    before = "" if UNSPACED.match(name[0]) else r"(?<!\w)"
    after = "" if UNSPACED.match(name[-1]) else rf"(?![\w{_ACCENT}])"
    return before + words + after
