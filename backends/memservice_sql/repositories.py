"""Repositories with methods where one SQL statement replaces several calls of the primitives, or
reads fewer rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from memservice.domain.filters.ast import TRUE, Condition, all_of, equals
from memservice.domain.records import (
    ACTIVE,
    DELETING,
    ERASED_PREFIX,
    FAILED,
    NEVER,
    PEER,
    PENDING,
    SCOPE,
    ApiKey,
    BrowserSession,
    Conclusion,
    ConsoleMember,
    Lease,
    Message,
    Peer,
    Session,
    Task,
    Workspace,
)
from memservice.spi import repositories as base
from memservice.spi.repositories.base import CREATED
from memservice.spi.rows import Order
from memservice_sql import tables as t
from memservice_sql.rows import SqlRows, ordering, window, window_values
from memservice_sql.statements import Slots
from memservice_sql.types import KEY

_PENDING, _FAILED = (
    t.tasks.c.state == sa.literal_column(f"'{state}'") for state in (PENDING, FAILED)
)
"""Written like the condition of the partial indexes."""


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
        self, slug: str, session_id: str | None = None, peer_id: str | None = None
    ) -> base.Located:
        def write(slots: Slots) -> sa.Executable:
            columns, joined = [*t.workspaces.c], t.workspaces
            for table, name in ((t.sessions, session_id), (t.peers, peer_id)):
                if name is not None:
                    columns += table.c
                    same_workspace = (table.c.workspace_key == t.workspaces.c.key) & (
                        table.c.slug == slots.take(table.c.slug.type)
                    )
                    joined = joined.outerjoin(table, same_workspace)  # type: ignore[assignment]
            same_slug = t.workspaces.c.slug == slots.take(t.workspaces.c.slug.type)
            return (
                sa.select(*columns, _has_erased_peers())
                .select_from(joined)
                .where(same_slug, t.workspaces.c.state == sa.literal_column(f"'{ACTIVE}'"))
            )

        names = [name for name in (session_id, peer_id, slug) if name is not None]
        row = self.rows.run(
            ("locate", session_id is None, peer_id is None), write, names
        ).fetchone()
        if row is None:
            return base.Located()
        records: list[Any] = []
        start = 0
        for record, name_given in ((Workspace, slug), (Session, session_id), (Peer, peer_id)):
            mapping: Any = self.rows.mapping(record)
            if name_given is None or row[start] is None:
                records.append(None)
            else:
                records.append(mapping.one(row[start : start + mapping.width]))
            start += mapping.width if name_given is not None else 0
        workspace, session, peer = records
        return base.Located(workspace, session, peer, bool(row[start]))

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
            existing = (
                uid_column.is_(None) | sa.exists().where(table.c.uid == uid_column, alive)
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


class SqlPeers(base.Peers):
    rows: SqlRows

    def __init__(self, rows: SqlRows) -> None:
        super().__init__(rows)

    def page_of_session(
        self, session_key: int, reverse: bool = False, limit: int = 50, offset: int = 0
    ) -> tuple[list[Peer], int]:
        active = (t.members.c.left_at.is_(None)) & (t.members.c.kind == PEER)

        def page(slots: Slots) -> sa.Executable:
            joined = t.members.join(t.peers, t.peers.c.key == t.members.c.peer_key)
            query = (
                sa.select(*t.peers.c)
                .select_from(joined)
                .where(t.members.c.session_key == slots.take(KEY), active)
            )
            order = (Order("joined_at", reverse), Order("key", reverse))
            return window(query.order_by(*ordering(t.members, order)), slots, limit, offset)

        def count(slots: Slots) -> sa.Executable:
            return sa.select(sa.func.count()).where(
                t.members.c.session_key == slots.take(KEY), active
            )

        rows = self.rows.run(
            ("peers of session", reverse, offset > 0),
            page,
            [session_key, *window_values(limit, offset)],
        ).fetchall()
        total = self.rows.run(("count peers of session",), count, [session_key]).fetchone()[0]
        return self.rows.mapping(Peer).records(rows), total

    def named(self, workspace_key: int, tokens: Sequence[str]) -> dict[str, list[Peer]]:
        if not tokens:
            return {}
        dialect = self.rows.store.dialect

        def write(slots: Slots) -> sa.Executable:
            joined = t.peer_names.join(t.peers, t.peers.c.key == t.peer_names.c.peer_key)
            same_workspace = t.peer_names.c.workspace_key == slots.take(KEY)
            same_token = dialect.one_of(t.peer_names.c.token, slots)
            query = (
                sa.select(t.peer_names.c.token, *t.peers.c)
                .select_from(joined)
                .where(same_workspace, same_token, t.peers.c.kind != SCOPE)
            )
            return query.order_by(t.peer_names.c.key)

        rows = self.rows.run(
            ("named",), write, [workspace_key, dialect.list_value(tokens)]
        ).fetchall()
        peers = self.rows.mapping(Peer).records([row[1:] for row in rows])
        peers_by_name: dict[str, list[Peer]] = {}
        for row, peer in zip(rows, peers, strict=True):
            peers_by_name.setdefault(row[0], []).append(peer)
        return peers_by_name


class SqlSessions(base.Sessions):
    rows: SqlRows

    def __init__(self, rows: SqlRows) -> None:
        super().__init__(rows)

    def page_of_peer(
        self,
        peer_key: int,
        condition: Condition = TRUE,
        order: Sequence[Order] = CREATED,
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[Session], int]:
        values: list[Any] = [peer_key]
        shape_ = self.rows.shape(Session, condition, values)

        def matching(slots: Slots) -> sa.ColumnElement[bool]:
            joined = sa.select(t.members.c.session_key).where(
                t.members.c.peer_key == slots.take(KEY)
            )
            return t.sessions.c.key.in_(joined) & self.rows.condition(Session, shape_, slots)

        def page(slots: Slots) -> sa.Executable:
            return window(
                sa.select(*t.sessions.c)
                .where(matching(slots))
                .order_by(*ordering(t.sessions, order)),
                slots,
                limit,
                offset,
            )

        def count(slots: Slots) -> sa.Executable:
            return sa.select(sa.func.count()).select_from(t.sessions).where(matching(slots))

        statement_key = ("sessions of peer", shape_, tuple(order), offset > 0)
        rows = self.rows.run(
            statement_key, page, [*values, *window_values(limit, offset)]
        ).fetchall()
        total = self.rows.run(("count sessions of peer", shape_), count, values).fetchone()[0]
        return self.rows.mapping(Session).records(rows), total

    def page_of_scope(
        self,
        scope_key: int,
        condition: Condition = TRUE,
        reverse: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[Session], int]:
        values: list[Any] = [scope_key]
        shape_ = self.rows.shape(Session, condition, values)
        joined = t.members.join(t.sessions, t.sessions.c.key == t.members.c.session_key)

        def matching(slots: Slots) -> sa.ColumnElement[bool]:
            active = (t.members.c.peer_key == slots.take(KEY)) & t.members.c.left_at.is_(None)
            return active & self.rows.condition(Session, shape_, slots)

        def page(slots: Slots) -> sa.Executable:
            query = sa.select(*t.sessions.c).select_from(joined).where(matching(slots))
            order = (Order("joined_at", reverse), Order("key", reverse))
            return window(query.order_by(*ordering(t.members, order)), slots, limit, offset)

        def count(slots: Slots) -> sa.Executable:
            return sa.select(sa.func.count()).select_from(joined).where(matching(slots))

        statement_key = ("sessions of scope", shape_, reverse, offset > 0)
        rows = self.rows.run(
            statement_key, page, [*values, *window_values(limit, offset)]
        ).fetchall()
        total = self.rows.run(("count sessions of scope", shape_), count, values).fetchone()[0]
        return self.rows.mapping(Session).records(rows), total


class SqlMessages(base.Messages):
    rows: SqlRows

    def __init__(self, rows: SqlRows) -> None:
        super().__init__(rows)

    def page_and_total(
        self, session_key: int, condition: Condition, reverse: bool, limit: int, offset: int
    ) -> tuple[list[Message], int]:
        # One pass tests the condition and counts; only the rows of the page are read whole.
        values: list[Any] = []
        matching = all_of(equals(session_key=session_key), condition)
        shape_ = self.rows.shape(Message, matching, values)
        order = ordering(t.messages, (Order("seq", reverse),))

        def write(slots: Slots) -> sa.Executable:
            tested = sa.select(t.messages.c.key, sa.func.count().over().label("total")).where(
                self.rows.condition(Message, shape_, slots)
            )
            listed = window(tested.order_by(*order), slots, limit, offset).subquery()
            joined = listed.join(t.messages, t.messages.c.key == listed.c.key)
            columns = self.rows.mapping(Message).columns
            return sa.select(*columns, listed.c.total).select_from(joined).order_by(*order)

        rows = self.rows.run(
            ("page and total", shape_, reverse, offset > 0),
            write,
            [*values, *window_values(limit, offset)],
        ).fetchall()
        if not rows:
            return [], self.count(session_key, condition) if offset else 0
        return self.rows.mapping(Message).records([row[:-1] for row in rows]), int(rows[0][-1])

    def positions(self, keys: Sequence[int], *, times: bool = True) -> list[base.Position]:
        if not keys:
            return []
        dialect = self.rows.store.dialect

        def write(slots: Slots) -> sa.Executable:
            return sa.select(*_position(times)).where(dialect.one_of(t.messages.c.key, slots))

        rows = self.rows.run(("positions", times), write, [dialect.list_value(keys)]).fetchall()
        return self._positions(rows, times)

    def around(
        self, keys: Sequence[int], distance: int, *, times: bool = True
    ) -> list[base.Position]:
        if not keys:
            return []
        dialect = self.rows.store.dialect

        def write(slots: Slots) -> sa.Executable:
            hits = t.messages.alias("hits")
            before, after = slots.take(KEY), slots.take(KEY)
            near = (t.messages.c.session_key == hits.c.session_key) & t.messages.c.seq.between(
                hits.c.seq - before, hits.c.seq + after
            )
            joined = hits.join(t.messages, near)
            query = sa.select(*_position(times)).select_from(joined)
            return query.where(dialect.one_of(hits.c.key, slots))

        values = [distance, distance, dialect.list_value(keys)]
        rows = self.rows.run(("around", times), write, values).fetchall()
        # Python finds the duplicates in half of the time of DISTINCT.
        return self._positions(list({row[0]: row for row in rows}.values()), times)

    def per_day(self, after: int, through: int) -> dict[str, int]:
        dialect = self.rows.store.dialect

        def write(slots: Slots) -> sa.Executable:
            later = t.messages.c.key > slots.take(KEY)
            in_range = t.messages.c.key <= slots.take(KEY)
            day = dialect.day(t.messages.c.created_at).label("day")
            days = sa.select(day).where(later, in_range).subquery()
            return sa.select(days.c.day, sa.func.count()).group_by(days.c.day)

        rows = self.rows.run(("messages per day",), write, [after, through]).fetchall()
        return {day: int(number) for day, number in rows}

    def newest_key(self) -> int:
        def write(slots: Slots) -> sa.Executable:
            # The condition makes every database look up the end of the index.
            return sa.select(sa.func.max(t.messages.c.key)).where(t.messages.c.key > 0)

        return int(self.rows.run(("newest key",), write, []).fetchone()[0] or 0)

    def seq_reaching(self, session_key: int, tokens: int) -> int | None:
        def write(slots: Slots) -> sa.Executable:
            same_session = t.messages.c.session_key == slots.take(KEY)
            enough = t.messages.c.tokens_through >= slots.take(KEY)
            return (
                sa.select(t.messages.c.seq)
                .where(same_session, enough)
                .order_by(t.messages.c.tokens_through, t.messages.c.seq)
                .limit(1)
            )

        row = self.rows.run(("seq reaching",), write, [session_key, tokens]).fetchone()
        return None if row is None else int(row[0])

    def span(self, session_key: int, after: int, limit: int) -> base.Span:
        def write(slots: Slots) -> sa.Executable:
            tail = _after(slots, limit).subquery()
            return sa.select(
                sa.func.count(),
                sa.func.coalesce(sa.func.max(tail.c.seq), 0),
                sa.func.coalesce(sa.func.sum(tail.c.tokens), 0),
            )

        row = self.rows.run(
            ("span",), write, [session_key, after, *window_values(limit, 0)]
        ).fetchone()
        return base.Span(*(int(value) for value in row))

    def renumber(self, session_key: int, after: int, limit: int, seq: int, tokens: int) -> None:
        self.rows.writable()
        messages = t.messages

        def move(slots: Slots) -> sa.Executable:
            seq_before, tokens_before = slots.take(KEY), slots.take(KEY)
            tail = _after(slots, limit).subquery()
            numbered = sa.select(
                tail.c.key,
                sa.func.row_number().over(order_by=tail.c.seq).label("number"),
                sa.func.sum(tail.c.tokens).over(order_by=tail.c.seq).label("sum"),
            ).subquery()
            return (
                sa.update(messages)
                .values(
                    {
                        # Negative for now: positions are unique at every moment.
                        messages.c.seq: -(seq_before + numbered.c.number),
                        messages.c.tokens_through: tokens_before + numbered.c.sum,
                    }
                )
                .where(messages.c.key == numbered.c.key)
            )

        def settle(slots: Slots) -> sa.Executable:
            same_session = messages.c.session_key == slots.take(KEY)
            moved = messages.c.seq < 0
            return sa.update(messages).values(seq=-messages.c.seq).where(same_session, moved)

        window_ = window_values(limit, 0)
        self.rows.run(("renumber",), move, [seq, tokens, session_key, after, *window_])
        self.rows.run(("settle",), settle, [session_key])

    def _positions(self, rows: Sequence[Sequence[Any]], times: bool) -> list[base.Position]:
        if not times:
            return list(map(_as_position, rows))
        read_time = self.rows.store.read_time
        return [
            base.Position(key, session, author, seq, tokens, read_time(at))
            for key, session, author, seq, tokens, at in rows
        ]


def _after(slots: Slots, limit: int) -> sa.Select[Any]:
    """The next messages of a session after a position."""
    columns = (t.messages.c.key, t.messages.c.seq, t.messages.c.tokens)
    same_session = t.messages.c.session_key == slots.take(KEY)
    query = sa.select(*columns).where(same_session, t.messages.c.seq > slots.take(KEY))
    return window(query.order_by(t.messages.c.seq), slots, limit, 0)


_as_position = partial(tuple.__new__, base.Position)
"""Half of the time of `Position._make`."""


def _position(times: bool) -> list[sa.ColumnElement[Any]]:
    names = ("key", "session_key", "author_key", "seq", "tokens")
    last = t.messages.c.created_at if times else sa.literal_column("NULL")
    return [*(t.messages.c[name] for name in names), last]


class SqlConclusions(base.Conclusions):
    rows: SqlRows

    def __init__(self, rows: SqlRows) -> None:
        super().__init__(rows)

    def of_messages(self, workspace_key: int, keys: Sequence[int]) -> list[Conclusion]:
        return self._citing(workspace_key, t.conclusion_messages, keys)

    def based_on(self, workspace_key: int, uids: Sequence[str]) -> list[Conclusion]:
        return self._citing(workspace_key, t.conclusion_sources, uids)

    def _citing(
        self, workspace_key: int, cited: t.ListTable, items: Sequence[Any]
    ) -> list[Conclusion]:
        """Conclusions whose list has one of the items: a look-up in the index of the list table."""
        if not items:
            return []
        dialect = self.rows.store.dialect

        def write(slots: Slots) -> sa.Executable:
            own = t.conclusions.c.workspace_key == slots.take(KEY)
            citing = sa.select(cited.parent).where(dialect.one_of(cited.item, slots))
            query = sa.select(*t.conclusions.c).where(own, t.conclusions.c.key.in_(citing))
            return query.order_by(t.conclusions.c.key)

        values = [workspace_key, dialect.list_value(items)]
        rows = self.rows.run(("citing", cited.table.name), write, values).fetchall()
        return self.rows.mapping(Conclusion).records(rows)


class SqlTasks(base.Tasks):
    rows: SqlRows

    def __init__(self, rows: SqlRows) -> None:
        super().__init__(rows)

    def ready(
        self,
        now: datetime,
        limit: int,
        latest: datetime = NEVER,
        without: Sequence[str] = (),
    ) -> list[str]:
        def write(slots: Slots) -> sa.Executable:
            oldest = (
                sa.select(sa.func.min(t.tasks.c.key).label("key"))
                .where(_PENDING)
                .group_by(t.tasks.c.unit)
                .subquery()
            )
            not_before, time = t.tasks.c.not_before, t.tasks.c.not_before.type
            due = (not_before <= slots.take(time)) | (
                (not_before > slots.take(time)) & (not_before < slots.take(time))
            )
            leased = sa.exists().where(
                t.leases.c.unit == t.tasks.c.unit,
                t.leases.c.expires_at > slots.take(t.leases.c.expires_at.type),
            )
            turn = (
                sa.func.row_number()
                .over(partition_by=t.tasks.c.workspace_key, order_by=t.tasks.c.key)
                .label("turn")
            )
            units = sa.select(t.tasks.c.unit, t.tasks.c.key, turn).select_from(
                oldest.join(t.tasks, t.tasks.c.key == oldest.c.key)
            )
            kinds = [slots.take(t.tasks.c.kind.type) for _ in without]
            others = [t.tasks.c.kind.not_in(kinds)] if kinds else []
            ready = units.where(due, ~leased, *others).subquery()
            return window(
                sa.select(ready.c.unit).order_by(ready.c.turn, ready.c.key), slots, limit, 0
            )

        values = [now, latest, NEVER, now, *without, limit]
        return [row[0] for row in self.rows.run(("ready", len(without)), write, values).fetchall()]

    def claim(self, unit: str, owner: str, now: datetime, seconds: float) -> Lease | None:
        self.rows.writable()

        def write(slots: Slots) -> sa.Executable:
            # Skip a lease that another transaction is changing: it cannot be claimed now.
            query = sa.select(*t.leases.c).where(
                t.leases.c.unit == slots.take(t.leases.c.unit.type)
            )
            return query.with_for_update(key_share=True, skip_locked=True)

        return self.take(
            unit,
            self.rows.mapping(Lease).one(self.rows.run(("lease",), write, [unit]).fetchone()),
            owner,
            now,
            seconds,
        )

    def begin(self, lease: Lease) -> Lease | None:
        # Another worker may be faster. That is normal, so it must not be an error in the database's
        # log.
        key = self.rows.put_unless_there(lease)
        return None if key is None else replace(lease, key=key)

    def next_due(self) -> datetime | None:
        def write(slots: Slots) -> sa.Executable:
            return (
                sa.select(t.tasks.c.not_before)
                .where(_PENDING)
                .order_by(t.tasks.c.not_before)
                .limit(1)
            )

        row = self.rows.run(("next due",), write, []).fetchone()
        return None if row is None else self.rows.store.read_time(row[0])

    def counts(
        self, workspace_key: int, kinds: tuple[str, ...], now: datetime, condition: Condition = TRUE
    ) -> list[base.QueueCount]:
        values: list[Any] = [now]
        shape_ = self.rows.shape(
            Task, all_of(equals(workspace_key=workspace_key, kind=kinds), condition), values
        )

        def write(slots: Slots) -> sa.Executable:
            leased = sa.exists().where(
                t.leases.c.unit == t.tasks.c.unit,
                t.leases.c.expires_at > slots.take(t.leases.c.expires_at.type),
            )
            working = sa.case((_PENDING & leased, 1), else_=0).label("working")
            tasks = (
                sa.select(t.tasks.c.session_key, t.tasks.c.state, working)
                .where(self.rows.condition(Task, shape_, slots))
                .subquery()
            )
            return sa.select(*tasks.c, sa.func.count()).group_by(*tasks.c)

        rows = self.rows.run(("queue counts", shape_), write, values).fetchall()
        return [
            base.QueueCount(session, state, bool(working), number)
            for session, state, working, number in rows
        ]

    def backlog(self, now: datetime, limit: int) -> list[base.KindCount]:
        tasks = t.tasks.c
        time = tasks.not_before.type
        since = sa.case(
            (tasks.not_before > tasks.created_at, tasks.not_before), else_=tasks.created_at
        ).label("since")

        def write(slots: Slots) -> sa.Executable:
            due = sa.case((tasks.not_before <= slots.take(time), 1), else_=0).label("due")
            leased = sa.exists().where(
                t.leases.c.unit == tasks.unit,
                t.leases.c.expires_at > slots.take(t.leases.c.expires_at.type),
            )
            working = sa.case((leased, 1), else_=0).label("working")
            pending = window(
                sa.select(tasks.kind, tasks.state, due, working, since)
                .where(_PENDING)
                .order_by(tasks.not_before, tasks.key),
                slots,
                limit,
                0,
            ).subquery()
            return _counted(pending)

        def write_failed(slots: Slots) -> sa.Executable:
            nothing: sa.ColumnClause[int] = sa.literal_column("0")
            failed = window(
                sa.select(
                    tasks.kind,
                    tasks.state,
                    nothing.label("due"),
                    nothing.label("working"),
                    since,
                )
                .where(_FAILED)
                .order_by(tasks.finished_at),
                slots,
                limit,
                0,
            ).subquery()
            return _counted(failed)

        rows = [
            *self.rows.run(("backlog",), write, [now, now, limit]).fetchall(),
            *self.rows.run(("failed by kind",), write_failed, [limit]).fetchall(),
        ]
        return [
            base.KindCount(
                kind, state, bool(due), bool(working), number, self.rows.store.read_time(oldest)
            )
            for kind, state, due, working, number, oldest in rows
        ]


def _counted(tasks: sa.Subquery) -> sa.Select[Any]:
    """Number and oldest time by kind, state and the two flags."""
    flags = (tasks.c.kind, tasks.c.state, tasks.c.due, tasks.c.working)
    return sa.select(*flags, sa.func.count(), sa.func.min(tasks.c.since)).group_by(*flags)
