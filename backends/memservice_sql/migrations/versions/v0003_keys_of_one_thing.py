"""Bind API keys to the uids of their workspace, peer and session, so that they do not apply to
later objects of the same names.

Revision 0003. Existing keys are bound to the objects that have their names now.
"""

from __future__ import annotations

from alembic import op

from memservice_sql.migrations.words import index, text

revision = "0003"
down_revision = "0002"

_BELONG = """
UPDATE api_keys SET
    workspace_uid = (
        SELECT w.uid FROM workspaces w WHERE w.slug = api_keys.workspace AND w.state <> 'deleting'
    ),
    peer_uid = (
        SELECT p.uid FROM workspaces w JOIN peers p ON p.workspace_key = w.key
        WHERE w.slug = api_keys.workspace AND w.state <> 'deleting' AND p.slug = api_keys.peer
    ),
    session_uid = (
        SELECT s.uid FROM workspaces w JOIN sessions s ON s.workspace_key = w.key
        WHERE w.slug = api_keys.workspace AND w.state <> 'deleting' AND s.slug = api_keys.session
            AND s.state <> 'deleting'
    )
"""


def upgrade() -> None:
    for column in ("workspace_uid", "peer_uid", "session_uid"):
        op.add_column("api_keys", text(column, null=True))
    op.execute(_BELONG)
    index("api_keys", "workspace", "session")
