"""Count the tokens of reasoning in the ledger of usage.

Revision 0005. Calls that were recorded before have 0 of them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column(
        "usage",
        sa.Column("reasoning_tokens", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    )
