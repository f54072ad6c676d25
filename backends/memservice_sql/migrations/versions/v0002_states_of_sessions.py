"""Index sessions by their state, to find archived and deleted ones without reading all others.

Revision 0002.
"""

from __future__ import annotations

from memservice_sql.migrations.words import index

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    index("sessions", "workspace_key", "state")
