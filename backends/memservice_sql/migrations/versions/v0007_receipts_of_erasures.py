"""Receipts of erasures.

Revision 0007. Erasures that were requested before have none.
"""

from __future__ import annotations

from memservice_sql.migrations.words import create, index, json, loose, text, time, unique

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    create(
        "erasures",
        text("uid"),
        text("kind"),
        loose("workspace_key", null=True),
        text("workspace"),
        text("workspace_uid"),
        text("session", null=True),
        text("target"),
        text("target_uid", null=True),
        text("requested_by"),
        json("options"),
        text("state"),
        text("task_uid"),
        json("counts"),
        time("created_at"),
        time("finished_at", null=True),
    )
    unique("erasures", "uid")
    index("erasures", "workspace_key", "created_at", "key")
    index("erasures", "created_at", "key")
    index("erasures", "target_uid")
    index("erasures", "task_uid")
