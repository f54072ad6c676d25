"""Index the tasks of a workspace by age, and the failed ones by unit.

Revision 0006.
"""

from __future__ import annotations

from memservice_sql.migrations.words import index

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    index("tasks", "workspace_key", "key")
    index("tasks", "unit", "key", only="failed")
