"""Index the texts of each workspace by their ids in SQLite too, to find its newest ones.

Revision 0017. Stores on PostgreSQL have the index since revision 0016.
"""

from __future__ import annotations

from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.get_context().config.attributes["order_texts"](op.get_bind())  # type: ignore[union-attr]
