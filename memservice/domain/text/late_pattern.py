"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re
from typing import Any, cast


class _LatePattern:
    """Has each method of the compiled pattern from its first use on, as an attribute of its own."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._text), name)
        setattr(self, name, method)
        return method


def late_pattern(text: str) -> re.Pattern[str]:
    """The pattern of a regular expression with large sets of characters, or many words: each takes
    several milliseconds to compile, and most processes never need it."""
    return cast("re.Pattern[str]", _LatePattern(text))
