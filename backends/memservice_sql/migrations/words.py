"""Helpers for migrations: columns, tables and indexes."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from memservice_sql.types import JSON, KEY, TEXT, UtcDateTime


def create(table: str, *columns: sa.Column[Any]) -> None:
    for column in columns:
        for foreign in column.foreign_keys:
            foreign.name = f"fk_{table}_{column.name}"
    op.create_table(
        table,
        sa.Column("key", KEY, primary_key=True, autoincrement=True),
        *columns,
        sqlite_autoincrement=True,
    )


def unique(table: str, *fields: str, but: str | None = None) -> None:
    """A unique index on the fields; rows in the state `but` are exempt."""
    condition = None if but is None else sa.text(f"(state NOT IN ('{but}'))")
    name = f"uq_{table}_{'_'.join(fields)}"
    op.create_index(
        name, table, [*fields], unique=True, sqlite_where=condition, postgresql_where=condition
    )


def index(table: str, *fields: str, only: str | None = None, filled: str | None = None) -> None:
    """An index on the fields; with `only`, of the rows in that state; with `filled`, of the rows
    with a value in that column."""
    condition = None if only is None else sa.text(f"state = '{only}'")
    if filled is not None:
        condition = sa.text(f"{filled} IS NOT NULL")
    name = f"ix_{table}_{'' if only is None else only + '_'}{'_'.join(fields)}"
    op.create_index(name, table, [*fields], sqlite_where=condition, postgresql_where=condition)


def text(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, TEXT, nullable=null)


def integer(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger, nullable=null)


def boolean(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean, nullable=null)


def json(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, JSON, nullable=null)


def time(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, UtcDateTime, nullable=null)


def ref(name: str, table: str, *, null: bool = False) -> sa.Column[Any]:
    """A reference to a row that exists as long as the referring row."""
    return sa.Column(
        name,
        KEY,
        sa.ForeignKey(f"{table}.key", deferrable=True, initially="DEFERRED"),
        nullable=null,
    )


def loose(name: str, *, null: bool = False) -> sa.Column[Any]:
    """A reference to a row that may be erased first."""
    return sa.Column(name, KEY, nullable=null)
