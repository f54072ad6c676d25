"""What the server may be asked of a row besides its vector: JSON attributes, and the expressions
that filter by them.

Every value of an any-of condition is stored and asked for as `<…>` with nothing but digits or
hexadecimal digits inside. So no value can be taken for syntax, and none is part of another. Times
are whole microseconds, which a double holds exactly until the year 2255.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from memservice.spi.index_filter import IndexFilter
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
    """The row's attributes as JSON; those that it does not have are left out, and no condition on
    them holds."""
    found: dict[str, Any] = {
        name: key(value)
        for name, value in (
            ("s", row.session),
            ("a", row.author),
            ("r", row.observer),
            ("d", row.observed),
        )
        if value is not None
    }
    if row.level is not None:
        found["l"] = word(row.level)
    if row.at is not None:
        found["t"] = micros(row.at)
    return json.dumps({"uid": row.uid, **found}, separators=(",", ":"))


def expression(index_filter: IndexFilter) -> str | None:
    """The filter of `index_filter`, no any-of of which is empty; None if it has no condition."""
    several = (
        ("s", index_filter.sessions),
        ("a", index_filter.authors),
        ("r", index_filter.observers),
        ("d", index_filter.observed),
    )
    parts = [_any_of(name, map(key, values)) for name, values in several if values is not None]
    if index_filter.levels is not None:
        parts.append(_any_of("l", map(word, index_filter.levels)))
    if index_filter.since is not None:
        parts.append(f".t >= {micros(index_filter.since)}")
    if index_filter.until is not None:
        parts.append(f".t <= {micros(index_filter.until)}")
    return " and ".join(parts) or None


def _any_of(name: str, values: Iterable[str]) -> str:
    listed = ",".join(f"'{value}'" for value in values)
    return f".{name} in [{listed}]"


def fits(stored: bytes | None, index_filter: IndexFilter) -> bool:
    """Does a row with these attributes fit? For the few whose attributes are read here instead of
    being filtered there."""
    if stored is None:
        return False
    found = json.loads(stored)
    several = (
        ("s", index_filter.sessions),
        ("a", index_filter.authors),
        ("r", index_filter.observers),
        ("d", index_filter.observed),
    )
    return (
        all(values is None or found.get(name) in map(key, values) for name, values in several)
        and (index_filter.levels is None or found.get("l") in map(word, index_filter.levels))
        and (
            index_filter.since is None
            or ("t" in found and found["t"] >= micros(index_filter.since))
        )
        and (
            index_filter.until is None
            or ("t" in found and found["t"] <= micros(index_filter.until))
        )
    )
