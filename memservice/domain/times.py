"""Parses times of callers and formats times for answers. Inside, every time is a timezone-aware UTC
datetime."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

from memservice.domain.values import shown

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# datetime.fromisoformat alone also accepts week dates, any separator, and digits of other scripts.
_ISO = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?) "
    r"?(?P<zone>[Zz]|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?)?)?"
)


def parse_time(value: object) -> datetime:
    """The UTC time that a caller wrote.

    Accepts ISO 8601 text (`2024-05-01`, `2024-05-01 10:00:00.5`, `2024-05-01T10:00:00Z`, any
    offset), Unix seconds as a number, and datetimes. Without an offset the time is UTC; it is cut
    to microseconds. Raises ValueError for anything else, and for times outside the years 1 to 9999
    of UTC.
    """
    if isinstance(value, datetime):
        return _utc(value, value)
    if isinstance(value, str):
        return parse_iso(value)
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and not (isinstance(value, float) and math.isnan(value))
    ):
        try:
            return _EPOCH + timedelta(seconds=value)
        except OverflowError:
            raise ValueError(
                f"Time out of range (Unix seconds, years 1 to 9999): {shown(value)}"
            ) from None
    raise _invalid(value)


def parse_iso(text: str) -> datetime:
    """As `parse_time`, for text alone."""
    match = _ISO.fullmatch(text)
    if match is None:
        raise _invalid(text)
    iso = match["date"]
    if match["time"]:
        iso += f"T{match['time']}{(match['zone'] or '').upper()}"
    try:
        parsed = datetime.fromisoformat(iso)
    except ValueError:
        raise _invalid(text) from None
    return _utc(parsed, text)


def wire(time: datetime) -> str:
    """ISO 8601 in UTC with suffix `Z`, with microseconds unless they are zero: the format of every
    answer."""
    return (time if time.tzinfo is UTC else time.astimezone(UTC)).isoformat()[:-6] + "Z"


def wire_seconds(time: datetime) -> str:
    """ISO 8601 in UTC, cut to the second, with suffix `Z`: the times of summaries and webhooks."""
    return time.astimezone(UTC).isoformat(timespec="seconds")[:-6] + "Z"


def stamp(time: datetime) -> str:
    """`YYYY-MM-DD HH:MM:SS` in UTC, cut to the second: the times inside texts."""
    return time.astimezone(UTC).isoformat(sep=" ", timespec="seconds")[:-6]


def _utc(time: datetime, value: object) -> datetime:
    if time.tzinfo is None:
        return time.replace(tzinfo=UTC)
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"Time out of range (years 1 to 9999): {shown(value)}") from None


def _invalid(value: object) -> ValueError:
    return ValueError(f"Invalid datetime value: {shown(value)}")


def day_of(time: datetime) -> str:
    """The UTC day of a time: `2024-05-17`."""
    return time.astimezone(UTC).date().isoformat()
