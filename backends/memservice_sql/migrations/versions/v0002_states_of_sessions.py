"""Sessions are found by their state: those that are not to be found any more, without a look at all
the others.

Revision 0002.
"""

from __future__ import annotations

from memservice_sql.migrations.words import index

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    index("sessions", "workspace_key", "state")
