"""Store the metadata of messages a second time, where that makes filters faster.

Revision 0009. PostgreSQL writes the whole table anew, in about twenty seconds for a million short
messages; meanwhile it can be neither read nor written.
"""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.get_context().config.attributes["copy_metadata"](op.get_bind())  # type: ignore[union-attr]
