"""Index the messages of each author in a session.

Revision 0011. Takes about two seconds for a million messages, which cannot be written to meanwhile.
"""

from __future__ import annotations

from memservice_sql.migrations.words import index

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    index("messages", "session_key", "author_key", "key")
