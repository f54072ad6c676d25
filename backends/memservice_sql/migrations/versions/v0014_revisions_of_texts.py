"""Give the indexed texts of each kind in a workspace two random numbers: of their last change, and
of the last one that removed texts.

Revision 0014. Only differences count, so existing texts begin with 0.
"""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    for column in ("revision", "removal"):
        op.execute(f"ALTER TABLE text_statistics ADD COLUMN {column} BIGINT NOT NULL DEFAULT 0")
