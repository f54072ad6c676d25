"""Sign-ins at the console: a session and its member in one statement."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from memservice.domain.records import BrowserSession, ConsoleMember
from memservice.spi import repositories as base
from memservice_sql import tables as t
from memservice_sql.rows import SqlRows
from memservice_sql.statements import Slots


class SqlSignIns(base.SignIns):
    rows: SqlRows

    def __init__(self, rows: SqlRows) -> None:
        super().__init__(rows)

    def recognised(
        self, digests: Sequence[str]
    ) -> tuple[BrowserSession, ConsoleMember | None] | None:
        if not digests:
            return None
        dialect = self.rows.store.dialect
        sessions, members = t.browser_sessions, t.console_members

        def write(slots: Slots) -> sa.Executable:
            joined = sessions.outerjoin(members, members.c.uid == sessions.c.member_uid)
            same_digest = dialect.one_of(sessions.c.digest, slots)
            query = sa.select(*sessions.c, *members.c).select_from(joined).where(same_digest)
            return query.order_by(sessions.c.key).limit(1)

        row = self.rows.run(
            ("recognised session",), write, [dialect.list_value(digests)]
        ).fetchone()
        if row is None:
            return None
        mapping = self.rows.mapping(BrowserSession)
        session = mapping.one(row[: mapping.width])
        assert session is not None
        has_member = row[mapping.width] is not None
        member_columns = row[mapping.width :] if has_member else None
        return session, self.rows.mapping(ConsoleMember).one(member_columns)
