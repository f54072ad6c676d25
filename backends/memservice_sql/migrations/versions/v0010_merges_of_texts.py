"""Merge the text index in small steps, where the database merged much of it in one transaction.

Revision 0010. Takes milliseconds.
"""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.get_context().config.attributes["spread_merges"](op.get_bind())  # type: ignore[union-attr]
