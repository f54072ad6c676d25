"""Parses durations such as `90d`."""

from __future__ import annotations

import re
from datetime import timedelta

from memservice.domain.values import shown

_SECONDS = {
    1: ("s", "sec", "secs", "second", "seconds"),
    60: ("m", "min", "mins", "minute", "minutes"),
    3_600: ("h", "hr", "hrs", "hour", "hours"),
    86_400: ("d", "day", "days"),
    604_800: ("w", "week", "weeks"),
    365 * 86_400: ("y", "year", "years"),
}
_BY_UNIT = {unit: seconds for seconds, units in _SECONDS.items() for unit in units}
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([a-z]+)\s*", re.ASCII)


def parse_duration(text: str) -> timedelta:
    """`90d`, `1h30m`, `2 weeks`, `1 day 12 hours`: numbers with units from seconds to years (of 365
    days), added up.

    There are no months: `m` means minutes, and months differ in length. Raises ValueError, whose
    text describes the format.
    """
    remaining, total = text.strip().lower(), 0.0
    while remaining:
        match = _PART.match(remaining)
        if match is None or match[2] not in _BY_UNIT:
            raise _wrong(text)
        total += float(match[1]) * _BY_UNIT[match[2]]
        remaining = remaining[match.end() :]
    try:
        span = timedelta(seconds=total)
    except OverflowError:
        raise _wrong(text) from None
    if not span:
        raise _wrong(text)
    return span


def _wrong(text: str) -> ValueError:
    return ValueError(
        f"{shown(text)!r} is not a duration: write for instance 90d, 1h30m or '2 weeks' "
        "(units: s, m, h, d, w, y)"
    )
