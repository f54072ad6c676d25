"""Index the positions of messages with what a search needs of them, and merge the text index of
SQLite to fewer blocks. PostgreSQL indexes the terms of all texts again, with their sessions.

Revision 0020. SQLite takes two seconds for a million short messages, PostgreSQL about ten, in which
it can be read, but not written.
"""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    steps = op.get_context().config.attributes  # type: ignore[union-attr]
    steps["spread_merges"](op.get_bind())
    steps["index_positions"](op.get_bind())
    steps["index_terms"](op.get_bind())
