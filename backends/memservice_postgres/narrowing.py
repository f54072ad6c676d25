"""Code that the two indexes share: the transaction's connection, and `IndexFilter` as SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from memservice.spi.index_filter import IndexFilter
from memservice_postgres.connections import Driver, driver_of

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction

CONDITIONS = {
    "sessions": "r.session_key = ANY(%(sessions)s::bigint[])",
    "authors": "r.author_key = ANY(%(authors)s::bigint[])",
    "observers": "r.observer_key = ANY(%(observers)s::bigint[])",
    "observed": "r.observed_key = ANY(%(observed)s::bigint[])",
    "levels": "r.level = ANY(%(levels)s::text[])",
    "since": "r.at >= %(since)s::timestamptz",
    "until": "r.at <= %(until)s::timestamptz",
}


def driver_behind(tx: Transaction | None) -> Driver:
    """The transaction's connection. Raises TypeError for a transaction of another storage, and for
    None."""
    connection = getattr(getattr(tx, "rows", None), "connection", None)
    if not isinstance(connection, Connection) or connection.dialect.name != "postgresql":
        raise TypeError("this index needs a transaction of the PostgreSQL storage")
    return driver_of(connection)


def fitting(
    index_filter: IndexFilter, conditions: Mapping[str, str] = CONDITIONS
) -> tuple[str, dict[str, Any]]:
    """Conditions on the filtered table `r`, each preceded by AND, and their parameters."""
    values = {
        name: value
        for name in index_filter.__struct_fields__
        if (value := getattr(index_filter, name)) is not None
    }
    text = "".join(f" AND {conditions[name]}" for name in values)
    return text, {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }
