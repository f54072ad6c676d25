"""API keys: a key, and whether what it names still exists, in one statement."""

from __future__ import annotations

import sqlalchemy as sa

from memservice.domain.records import ACTIVE, DELETING, ApiKey
from memservice.spi import repositories as base
from memservice_sql import tables as t
from memservice_sql.rows import SqlRows
from memservice_sql.statements import Slots


class SqlKeys(base.Keys):
    rows: SqlRows

    def __init__(self, rows: SqlRows) -> None:
        super().__init__(rows)

    def recognised(self, uid: str) -> tuple[ApiKey, bool] | None:
        def write(slots: Slots) -> sa.Executable:
            references = (
                (
                    t.workspaces,
                    t.api_keys.c.workspace_uid,
                    t.workspaces.c.state == sa.literal_column(f"'{ACTIVE}'"),
                ),
                (t.peers, t.api_keys.c.peer_uid, sa.true()),
                (
                    t.sessions,
                    t.api_keys.c.session_uid,
                    t.sessions.c.state != sa.literal_column(f"'{DELETING}'"),
                ),
            )
            # Not EXISTS: PostgreSQL may read the whole table for that, while it is small.
            existing = (
                uid_column.is_(None)
                | sa.select(table.c.uid)
                .where(table.c.uid == uid_column, alive)
                .limit(1)
                .scalar_subquery()
                .is_not(None)
                for table, uid_column, alive in references
            )
            same_uid = t.api_keys.c.uid == slots.take(t.api_keys.c.uid.type)
            return sa.select(*t.api_keys.c, sa.and_(*existing)).where(same_uid)

        row = self.rows.run(("recognised",), write, [uid]).fetchone()
        if row is None:
            return None
        mapping = self.rows.mapping(ApiKey)
        key = mapping.one(row[: mapping.width])
        assert key is not None
        return key, bool(row[mapping.width])
