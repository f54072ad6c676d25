"""Time zones as metadata and settings name them: `Europe/Berlin`, `UTC`, `+05:30`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?([0-5]\d))?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,3}")
MAX_NAME = 64


def time_zone(name: str) -> tzinfo | None:
    """The time zone of this name or UTC offset; None for an unknown one. Names are those of the
    IANA database of this machine."""
    # Not within the cached function, which would keep long names.
    return _time_zone(name) if len(name) <= MAX_NAME else None


@lru_cache(maxsize=1_000)
def _time_zone(name: str) -> tzinfo | None:
    if offset := _OFFSET.fullmatch(name):
        sign, hours, minutes = offset.groups()
        size = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(-size if sign == "-" else size) if size <= timedelta(hours=14) else None
    if not _NAME.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # a folder of the database, or no such file
        return UTC if name.upper() in ("UTC", "GMT", "Z") else None


def first_known(*names: object) -> str | None:
    """The first of these that names a time zone; None if none does."""
    for name in names:
        if isinstance(name, str) and time_zone(name.strip()) is not None:
            return name.strip()
    return None


# Cached, because the messages of a batch are shown, and their tokens counted, several times.
@lru_cache(maxsize=2_000)
def local_stamp(at: datetime, name: str | None) -> str:
    """Weekday, day, time and UTC offset in a time zone: `Fri 2024-05-17 14:30 +02:00`. In UTC,
    the offset is `UTC`."""
    zone = (time_zone(name) if name else None) or UTC
    try:
        local = at.astimezone(zone)
    except (OverflowError, ValueError):  # at the first or the last day of all times
        local = at.astimezone(UTC)
    offset = local.utcoffset() or timedelta()
    minutes = round(offset.total_seconds() / 60)
    sign = "-" if minutes < 0 else "+"
    offset_text = f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}" if minutes else "UTC"
    day_and_time = local.isoformat(sep=" ", timespec="minutes")[:16]
    return f"{WEEKDAYS[local.weekday()]} {day_and_time} {offset_text}"


WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
"""In English, whatever the locale of the process says."""
