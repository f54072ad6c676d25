"""Give the indexed texts of each kind in a workspace two random numbers: of their last change, and
of the last one that removed texts.

Revision 0014. Only differences count, so existing texts begin with 0.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    schema = op.get_context().version_table_schema
    present = {
        column["name"]
        for column in sa.inspect(op.get_bind()).get_columns("text_statistics", schema)
    }
    # A new store has them since revision 0001, which creates the index in its present form.
    for column in ("revision", "removal"):
        if column not in present:
            op.execute(f"ALTER TABLE text_statistics ADD COLUMN {column} BIGINT NOT NULL DEFAULT 0")
