"""What the server may be asked of a row besides its vector: JSON attributes, and the expressions that filter by them.

Every value of an any-of condition is stored and asked for as `<…>` with nothing but digits or hexadecimal digits inside. So no value
can be taken for syntax, and none is part of another. Times are whole microseconds, which a double holds exactly until the year 2255.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from memservice.spi.index_filter import Where
from memservice.spi.vectors import VectorRow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def key(number: int) -> str:
    return f"<{number}>"


def word(text: str) -> str:
    return f"<{text.encode('utf-8', 'surrogatepass').hex()}>"


def attributes(row: VectorRow) -> str:
    """The row's attributes as JSON; those that it does not have are left out, and no condition on them holds."""
    found: dict[str, Any] = {
        name: key(value)
        for name, value in (("s", row.session), ("a", row.author), ("r", row.observer), ("d", row.observed))
        if value is not None
    }
    if row.level is not None:
        found["l"] = word(row.level)
    if row.at is not None:
        found["t"] = micros(row.at)
    return json.dumps({"uid": row.uid, **found}, separators=(",", ":"))


def expression(where: Where) -> str | None:
    """The filter of `where`, no any-of of which is empty; None if it has no condition."""
    several = (("s", where.sessions), ("a", where.authors), ("r", where.observers), ("d", where.observed))
    parts = [_any_of(name, map(key, values)) for name, values in several if values is not None]
    if where.levels is not None:
        parts.append(_any_of("l", map(word, where.levels)))
    if where.since is not None:
        parts.append(f".t >= {micros(where.since)}")
    if where.until is not None:
        parts.append(f".t <= {micros(where.until)}")
    return " and ".join(parts) or None


def _any_of(name: str, values: Iterable[str]) -> str:
    listed = ",".join(f"'{value}'" for value in values)
    return f".{name} in [{listed}]"


def fits(stored: bytes | None, where: Where) -> bool:
    """Does a row with these attributes fit? For the few whose attributes are read here instead of being filtered there."""
    if stored is None:
        return False
    found = json.loads(stored)
    several = (("s", where.sessions), ("a", where.authors), ("r", where.observers), ("d", where.observed))
    return (
        all(values is None or found.get(name) in map(key, values) for name, values in several)
        and (where.levels is None or found.get("l") in map(word, where.levels))
        and (where.since is None or ("t" in found and found["t"] >= micros(where.since)))
        and (where.until is None or ("t" in found and found["t"] <= micros(where.until)))
    )
