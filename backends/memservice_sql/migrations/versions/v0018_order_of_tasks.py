"""Index the pending tasks of each kind in a workspace in the order in which they become due.

Revision 0018.
"""

from __future__ import annotations

from memservice_sql.migrations.words import index

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    index("tasks", "workspace_key", "kind", "not_before", "key", only="pending")
