"""Workspaces: all that a request names in one statement, and the times of last messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memservice.domain.records import (
    ACTIVE,
    ERASED_PREFIX,
    Message,
    Peer,
    Session,
    Space,
    Workspace,
)
from memservice.spi import repositories as base
from memservice_sql import tables as t
from memservice_sql.rows import SqlRows
from memservice_sql.statements import Slots

_AFTER_ERASED = ERASED_PREFIX[:-1] + chr(ord(ERASED_PREFIX[-1]) + 1)
"""The first text after all that begin with the prefix."""


def _has_erased_peers() -> sa.ColumnElement[bool]:
    """Whether a peer of the workspace is being erased: by its slug, which has an index."""
    peers = t.peers.alias("erased")
    first: sa.ColumnElement[str] = sa.literal_column(f"'{ERASED_PREFIX}'")
    last: sa.ColumnElement[str] = sa.literal_column(f"'{_AFTER_ERASED}'")
    of_workspace = peers.c.workspace_key == t.workspaces.c.key
    return sa.exists().where(of_workspace, peers.c.slug >= first, peers.c.slug < last)


class SqlWorkspaces(base.Workspaces):
    rows: SqlRows

    def __init__(self, rows: SqlRows) -> None:
        super().__init__(rows)

    def locate(
        self,
        slug: str,
        session_id: str | None = None,
        peer_id: str | None = None,
        message_uid: str | None = None,
    ) -> base.Located:
        if session_id is None:
            message_uid = None

        def write(slots: Slots) -> sa.Executable:
            columns, joined = [*t.workspaces.c], t.workspaces
            for table, name in ((t.sessions, session_id), (t.peers, peer_id)):
                if name is not None:
                    columns += table.c
                    same_workspace = (table.c.workspace_key == t.workspaces.c.key) & (
                        table.c.slug == slots.take(table.c.slug.type)
                    )
                    joined = joined.outerjoin(table, same_workspace)  # type: ignore[assignment]
            if message_uid is not None:
                columns += t.messages.c
                of_session = (t.messages.c.session_key == t.sessions.c.key) & (
                    t.messages.c.uid == slots.take(t.messages.c.uid.type)
                )
                joined = joined.outerjoin(t.messages, of_session)  # type: ignore[assignment]
            same_slug = t.workspaces.c.slug == slots.take(t.workspaces.c.slug.type)
            return (
                sa.select(*columns, _has_erased_peers())
                .select_from(joined)
                .where(same_slug, t.workspaces.c.state == sa.literal_column(f"'{ACTIVE}'"))
            )

        names = [name for name in (session_id, peer_id, message_uid, slug) if name is not None]
        statement_key = "locate", session_id is None, peer_id is None, message_uid is None
        row = self.rows.run(statement_key, write, names).fetchone()
        if row is None:
            return base.Located()
        records: list[Any] = []
        start = 0
        for record, name_given in (
            (Workspace, slug),
            (Session, session_id),
            (Peer, peer_id),
            (Message, message_uid),
        ):
            mapping: Any = self.rows.mapping(record)
            if name_given is None or row[start] is None:
                records.append(None)
            else:
                records.append(mapping.one(row[start : start + mapping.width]))
            start += mapping.width if name_given is not None else 0
        workspace, session, peer, message = records
        return base.Located(workspace, session, peer, message, bool(row[start]))

    def with_spaces(self, slug: str) -> tuple[Workspace | None, list[Space]]:
        def write(slots: Slots) -> sa.Executable:
            is_wanted = t.workspaces.c.slug == slots.take(t.workspaces.c.slug.type)
            joined = t.workspaces.outerjoin(
                t.spaces, t.spaces.c.workspace_key == t.workspaces.c.key
            )
            return (
                sa.select(*t.workspaces.c, *t.spaces.c)
                .select_from(joined)
                .where(is_wanted, t.workspaces.c.state == sa.literal_column(f"'{ACTIVE}'"))
                .order_by(t.spaces.c.key)
            )

        rows = self.rows.run(("with_spaces",), write, [slug]).fetchall()
        if not rows:
            return None, []
        of_workspace: Any = self.rows.mapping(Workspace)
        of_space: Any = self.rows.mapping(Space)
        start = of_workspace.width
        spaces = [of_space.one(row[start:]) for row in rows if row[start] is not None]
        return of_workspace.one(rows[0][:start]), spaces

    def last_messages(self, keys: Sequence[int]) -> dict[int, datetime]:
        if not keys:
            return {}
        dialect = self.rows.store.dialect

        def write(slots: Slots) -> sa.Executable:
            newest = (
                sa.select(t.messages.c.created_at)
                .where(t.messages.c.workspace_key == t.workspaces.c.key)
                .order_by(t.messages.c.key.desc())
                .limit(1)
                .correlate(t.workspaces)
                .scalar_subquery()
            )
            one_of = dialect.one_of(t.workspaces.c.key, slots)
            return sa.select(t.workspaces.c.key, newest).where(one_of)

        rows = self.rows.run(("last messages",), write, [dialect.list_value(keys)]).fetchall()
        read_time = self.rows.store.read_time
        return {key: read_time(at) for key, at in rows if at is not None}
