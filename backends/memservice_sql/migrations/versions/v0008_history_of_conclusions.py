"""Record when conclusions are superseded and restored, and when messages are stored.

Revision 0008. A conclusion that was superseded before gets the time of its successor, if that is
newer: usually both were stored at once. Otherwise the time is unknown, and stays null. Older
messages have none either: reads then use their `created_at`.
"""

from __future__ import annotations

from alembic import op

from memservice_sql.migrations.words import index, time

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("messages", time("stored_at", null=True))
    op.add_column("conclusions", time("superseded_at", null=True))
    op.add_column("conclusions", time("restored_at", null=True))
    op.execute(
        """
        UPDATE conclusions SET superseded_at = (
            SELECT successors.created_at FROM conclusions AS successors
            WHERE successors.key = conclusions.superseded_by
                AND successors.created_at > conclusions.created_at
        )
        WHERE state = 'superseded' AND superseded_by IS NOT NULL
        """
    )
    index("conclusions", "workspace_key", "restored_at", filled="restored_at")
