"""Finds the dates in a query: 8 May 2023, May 8th, 2023-05-08, May 2023, 8 May, 2023年5月8日."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from msgspec import Struct

from memservice.domain.text.words import MONTHS

_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_NUMBER = (
    {name.lower(): n for n, name in enumerate(MONTHS, 1)}
    | {name[:3].lower(): n for n, name in enumerate(MONTHS, 1)}
    | {"sept": 9}
)

_MONTH = "(?P<month>" + "|".join(sorted(_NUMBER, key=len, reverse=True)) + r")\b\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[12]\d{3})(?!\d)"

_FORMS = tuple(
    re.compile(form, re.IGNORECASE | re.ASCII)
    for form in (
        r"(?<!\d)(?P<year>\d{4})[-/.](?P<number>[01]?\d)[-/.](?P<day>[0-3]?\d)(?!\d)",
        rf"(?<!\d)\b{_DAY}(?:\s+of)?\s+{_MONTH}(?:,?\s+{_YEAR})?",
        rf"\b{_MONTH}\s+(?:the\s+)?{_DAY}\b(?!\d)(?:,?\s+{_YEAR})?",
        rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}",
        r"(?:(?P<year>\d{4})\s*年\s*)?(?P<number>1?\d)\s*月\s*(?P<day>[0-3]?\d)\s*[日号]",
        r"(?P<year>\d{4})\s*年\s*(?P<number>1?\d)\s*月(?!\s*\d)",
        r"(?:(?P<year>\d{4})\s*년\s*)?(?P<number>1?\d)\s*월\s*(?P<day>[0-3]?\d)\s*일",
    )
)
_DIGIT = re.compile("[0-9]")


class NamedDate(Struct, frozen=True):
    """A day, with or without its year, or a month of a year."""

    month: int
    day: int | None = None
    year: int | None = None

    @property
    def words(self) -> str:
        """`4 October 2023`, without what is not named."""
        parts = (self.day, MONTHS[self.month - 1], self.year)
        return " ".join(str(part) for part in parts if part is not None)

    def matches(self, at: datetime) -> bool:
        """Whether `at` falls on it, in UTC."""
        at = at.astimezone(UTC)
        return (
            at.month == self.month and self.day in (None, at.day) and self.year in (None, at.year)
        )


def dates_named(query: str) -> list[NamedDate]:
    """The distinct dates in the first 4,096 characters of a text, in order of appearance, without
    impossible ones (30 February)."""
    dates: list[tuple[int, NamedDate]] = []
    spans: list[tuple[int, int]] = []
    text = query[:4096]
    if _DIGIT.search(text) is None:  # every form has one
        return []
    for form in _FORMS:
        for match in form.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in spans):
                continue
            parts = match.groupdict()
            month = int(parts["number"]) if parts.get("number") else _NUMBER[parts["month"].lower()]
            day = int(parts["day"]) if parts.get("day") else None
            year = int(parts["year"]) if parts.get("year") else None
            if not 1 <= month <= 12 or (day is not None and not 1 <= day <= _LENGTHS[month - 1]):
                continue
            spans.append(match.span())
            dates.append((match.start(), NamedDate(month, day, year)))
    return list(dict.fromkeys(date for _, date in sorted(dates, key=lambda pair: pair[0])))
