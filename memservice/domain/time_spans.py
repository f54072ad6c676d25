"""Spans of time in ISO 8601, as exact as they are known: `2024`, `2024-05`, `2024-05-25`,
`2024-05-25T15:00`, `2024-05-25/2024-05-27`. `..` is an open end."""

from __future__ import annotations

import re
from datetime import datetime

_MOMENT = re.compile(
    r"(\d{4})(?:-(\d{2})(?:-(\d{2})(?:[T ](\d{2}):(\d{2})(?::\d{2})?)?)?)?", re.ASCII
)
OPEN = ("", "..")


def parse_span(text: str) -> tuple[str | None, str | None] | None:
    """Start and end of a span, the end included; None for an open one. None if the text is not a
    span. A single moment is its own end."""
    start, separator, end = text.strip().partition("/")
    if not separator:
        moment = _moment(start)
        return None if moment is None else (moment, moment)
    parts = [None if part.strip() in OPEN else _moment(part) for part in (start, end)]
    moments = [part for part in parts if part is not None]
    unreadable = any(
        part is None and part_text.strip() not in OPEN
        for part, part_text in zip(parts, (start, end), strict=True)
    )
    if unreadable or not moments:
        return None
    if len(moments) == 2:
        size = min(map(len, moments))
        if moments[0][:size] > moments[1][:size]:
            return None
    return parts[0], parts[1]


def _moment(text: str) -> str | None:
    """A date, or a date and time, that exists; None for any other text."""
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute = (int(part) if part else None for part in match.groups())
    try:
        datetime(year or 0, month or 1, day or 1, hour or 0, minute or 0)  # noqa: DTZ001
    except ValueError:
        return None
    date = "-".join(part for part in match.groups()[:3] if part)
    return date if hour is None else f"{date}T{match[4]}:{match[5]}"
