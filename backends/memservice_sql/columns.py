"""The kinds of column that the tables have."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column

from memservice_sql.types import JSON, KEY, TEXT, UtcDateTime


def text(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, TEXT, nullable=null)


def integer(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, sa.BigInteger, nullable=null)


def boolean(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, sa.Boolean, nullable=null)


def json(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, JSON, nullable=null)


def time(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, UtcDateTime, nullable=null)


def reference(name: str, table: str, *, null: bool = False) -> Column[Any]:
    """A reference to a row that exists as long as the referring row."""
    return Column(
        name,
        KEY,
        sa.ForeignKey(f"{table}.key", deferrable=True, initially="DEFERRED"),
        nullable=null,
    )


def loose_reference(name: str) -> Column[Any]:
    """A reference to a row that may be erased first."""
    return Column(name, KEY, nullable=True)


def workspace_reference() -> Column[Any]:
    return reference("workspace_key", "workspaces")
