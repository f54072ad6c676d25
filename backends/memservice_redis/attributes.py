"""Filterable attributes of a vector, as JSON, and the filter expressions over them.

Each value of an any-of condition is stored and queried as `<…>` with only decimal or hexadecimal
digits inside. So no value can be read as syntax, and no value is a substring of another. Times are
whole microseconds, which a double represents exactly until the year 2255.
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
    """The row's attributes as JSON. Missing attributes are omitted: a condition on them is
    false."""
    values: dict[str, Any] = {
        name: key(row_key)
        for name, row_key in (
            ("s", row.session),
            ("a", row.author),
            ("r", row.observer),
            ("d", row.observed),
        )
        if row_key is not None
    }
    if row.level is not None:
        values["l"] = word(row.level)
    if row.at is not None:
        values["t"] = micros(row.at)
    return json.dumps({"uid": row.uid, **values}, separators=(",", ":"))


def expression(index_filter: IndexFilter) -> str | None:
    """The filter expression for `index_filter`; None if it has no condition. No any-of condition
    may be empty."""
    any_of = (
        ("s", index_filter.sessions),
        ("a", index_filter.authors),
        ("r", index_filter.observers),
        ("d", index_filter.observed),
    )
    parts = [_any_of(name, map(key, values)) for name, values in any_of if values is not None]
    if index_filter.levels is not None:
        parts.append(_any_of("l", map(word, index_filter.levels)))
    if index_filter.since is not None:
        parts.append(f".t >= {micros(index_filter.since)}")
    if index_filter.until is not None:
        parts.append(f".t <= {micros(index_filter.until)}")
    return " and ".join(parts) or None


def _any_of(name: str, values: Iterable[str]) -> str:
    quoted = ",".join(f"'{value}'" for value in values)
    return f".{name} in [{quoted}]"


def fits(attributes_json: bytes | None, index_filter: IndexFilter) -> bool:
    """Whether a row with these attributes matches the filter. For rows whose attributes are read
    here and not filtered by the server."""
    if attributes_json is None:
        return False
    values = json.loads(attributes_json)
    any_of = (
        ("s", index_filter.sessions),
        ("a", index_filter.authors),
        ("r", index_filter.observers),
        ("d", index_filter.observed),
    )
    return (
        all(allowed is None or values.get(name) in map(key, allowed) for name, allowed in any_of)
        and (index_filter.levels is None or values.get("l") in map(word, index_filter.levels))
        and (
            index_filter.since is None
            or ("t" in values and values["t"] >= micros(index_filter.since))
        )
        and (
            index_filter.until is None
            or ("t" in values and values["t"] <= micros(index_filter.until))
        )
    )
