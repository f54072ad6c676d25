"""Code that the two indexes share: the transaction's connection, `IndexFilter` as SQL, and times as
integers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from memservice.spi.index_filter import IndexFilter

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

# One constant text for every `IndexFilter`, so that SQLite compiles it once. `r` is the filtered
# table; see `parameters`.
FITS = """
    (:sessions IS NULL OR r.session_key IN (SELECT value FROM json_each(:sessions)))
    AND (:authors IS NULL OR r.author_key IN (SELECT value FROM json_each(:authors)))
    AND (:observers IS NULL OR r.observer_key IN (SELECT value FROM json_each(:observers)))
    AND (:observed IS NULL OR r.observed_key IN (SELECT value FROM json_each(:observed)))
    AND (:levels IS NULL OR r.level IN (SELECT value FROM json_each(:levels)))
    AND (:since IS NULL OR r.at >= :since)
    AND (:until IS NULL OR r.at <= :until)
"""


def connection_of(tx: Transaction | None) -> Connection:
    """The transaction's connection. Raises TypeError for a transaction of another storage, and for
    None."""
    connection = getattr(getattr(tx, "rows", None), "connection", None)
    if not isinstance(connection, Connection):
        raise TypeError("this index needs a transaction of the SQLite storage")
    return connection


def micros(at: datetime | None) -> int | None:
    """Whole microseconds since 1970 (exact). Raises TypeError for a naive time."""
    return None if at is None else (at - EPOCH) // MICROSECOND


def parameters(index_filter: IndexFilter) -> dict[str, Any]:
    """The parameters of `FITS`."""
    return {
        "sessions": array(index_filter.sessions),
        "authors": array(index_filter.authors),
        "observers": array(index_filter.observers),
        "observed": array(index_filter.observed),
        "levels": array(index_filter.levels),
        "since": micros(index_filter.since),
        "until": micros(index_filter.until),
    }


def array(values: Iterable[int | str] | None) -> str | None:
    """Values as a parameter of `json_each`: any number of values in one statement text."""
    return None if values is None else json.dumps(list(values))
