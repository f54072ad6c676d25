"""Count the positions of each session that have no message.

Revision 0013. Only sessions whose messages are being erased can have such positions, so without
such work the column begins with 0 and no message is read.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column(
        "sessions",
        sa.Column("free_positions", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    )
    tasks = sa.table("tasks", sa.column("kind"), sa.column("state"))
    sessions = sa.table("sessions", *map(sa.column, ("key", "message_count", "free_positions")))
    messages = sa.table("messages", sa.column("session_key"))
    opens_gaps = tasks.c.kind.in_(("repack", "erase"))
    stored = (
        sa.select(sa.func.count())
        .select_from(messages)
        .where(messages.c.session_key == sessions.c.key)
        .scalar_subquery()
    )
    op.execute(
        sessions.update()
        .where(sa.exists().where(opens_gaps, tasks.c.state != "done"))
        .values(free_positions=sessions.c.message_count - stored)
    )
