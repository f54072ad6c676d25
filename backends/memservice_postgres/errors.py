"""Translation of PostgreSQL's errors to memservice's."""

from __future__ import annotations

import psycopg

from memservice.domain.errors import Conflict, Damaged, SchemaVersionError, Unavailable
from memservice.spi.base import TransientConflict

_RETRY = {
    "40001": "serialization failure",
    "40P01": "deadlock",
    "0A000": "a prepared statement was made before the schema changed",
}
_DAMAGED = {"XX001", "XX002"}
"""Corrupted data, corrupted index."""
_MISSING = {"42P01", "42703", "3F000", "42883"}
"""No such table, column, schema, function."""
NO_DATABASE = "3D000"
_UNAVAILABLE = {
    "55P03": "stayed locked by another transaction",
    "57014": "took too long to answer",
    "25P03": "ended a transaction that had been left idle",
    "25006": "may only be read",
    "42501": "may not be used by this user",
    "28P01": "refused the password",
    "28000": "refused this user",
    NO_DATABASE: "does not exist",
    "53300": "has no free connections",
    "53100": "cannot grow: the disk is full",
    "53200": "could not be used for lack of memory",
}
_UNAVAILABLE_CLASSES = {
    "08": "cannot be reached",
    "53": "lacks resources",
    "57": "is being shut down or started",
    "58": "met an error of its system",
    "XX": "met an error of its own",
}


def meaning(error: Exception, location: str) -> Exception | None:
    """See `SqlDialect.translate`."""
    if not isinstance(error, psycopg.Error):
        return None
    code = error.sqlstate or ""
    if code in _RETRY and (code != "0A000" or "cached plan" in str(error)):
        return TransientConflict(f"{_RETRY[code]}: {_first_line(error)}")
    if code == "23503":
        return Conflict("an object that this refers to was deleted at the same time")
    if code in _DAMAGED:
        return Damaged(f"The database {location} is damaged ({_first_line(error)})")
    if code in _MISSING:
        return SchemaVersionError(
            f"The database {location} lacks tables ({_first_line(error)}). Create them "
            "with: memservice db upgrade"
        )
    problem = _UNAVAILABLE.get(code) or _UNAVAILABLE_CLASSES.get(code[:2])
    if problem is None and not code and isinstance(error, psycopg.OperationalError):
        problem = "cannot be reached"
    if problem is None:
        return None
    advice = ""
    if code == NO_DATABASE:
        advice = f". Create it, for instance with: createdb {location.partition(' on ')[0]}"
    return Unavailable(f"the database {location} {problem} ({_first_line(error)}){advice}")


def _first_line(error: Exception) -> str:
    """The first line of the message. The others may contain values."""
    return str(error).partition("\n")[0].strip()
