"""Count the changes of stored messages of each session.

Revision 0012. Only differences count, so existing sessions begin with 0.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column(
        "sessions",
        sa.Column("revision", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    )
