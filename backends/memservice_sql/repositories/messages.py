"""Messages: pages with their total, positions, neighbours and renumbering."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from memservice.domain.filters.ast import Condition, all_of, equals
from memservice.domain.positions import PositionTable
from memservice.domain.records import ACTIVE, Message
from memservice.spi import repositories as base
from memservice.spi.rows import Order
from memservice_sql import tables as t
from memservice_sql.rows import SqlRows, ordering, window, window_values
from memservice_sql.statements import Slots
from memservice_sql.types import KEY

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memservice_sql.position_cache import SessionState


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
            page = window(tested.order_by(*order), slots, limit, offset).subquery()
            joined = page.join(t.messages, t.messages.c.key == page.c.key)
            columns = self.rows.mapping(Message).columns
            return sa.select(*columns, page.c.total).select_from(joined).order_by(*order)

        rows = self.rows.run(
            ("page and total", shape_, reverse, offset > 0),
            write,
            [*values, *window_values(limit, offset)],
        ).fetchall()
        if not rows:
            return [], self.count(session_key, condition) if offset else 0
        return self.rows.mapping(Message).records([row[:-1] for row in rows]), int(rows[0][-1])

    def counted(self, session_key: int, condition: Condition) -> base.Counted | None:
        # In one statement, which sees one state outside transactions, too.
        values: list[Any] = [session_key]
        matching = all_of(equals(session_key=session_key), condition)
        shape_ = self.rows.shape(Message, matching, values)

        def write(slots: Slots) -> sa.Executable:
            same_session = t.sessions.c.key == slots.take(KEY)
            total = (
                sa.select(sa.func.count())
                .select_from(t.messages)
                .where(self.rows.condition(Message, shape_, slots))
                .scalar_subquery()
            )
            state = (t.sessions.c.message_count, t.sessions.c.revision)
            return sa.select(total, *state).where(same_session)

        row = self.rows.run(("counted", shape_), write, values).fetchone()
        return None if row is None else base.Counted(*map(int, row))

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
        rows = self._around(("around", times), _position(times), keys, distance)
        # Python finds the duplicates in half of the time of DISTINCT.
        return self._positions(list({row[0]: row for row in rows}.values()), times)

    def _columns_around(self, keys: Sequence[int], distance: int) -> NDArray[np.int64]:
        """As `around`, without times: the columns of a `PositionTable`."""
        import numpy as np

        rows = self._around(("columns around",), _position(times=False)[:-1], keys, distance)
        numbers = np.fromiter(chain.from_iterable(rows), np.int64, 5 * len(rows))
        columns = numbers.reshape(-1, 5).T
        return columns[:, np.unique(columns[0], return_index=True)[1]]

    def _around(
        self,
        statement_key: tuple[Hashable, ...],
        columns: Sequence[sa.ColumnElement[Any]],
        keys: Sequence[int],
        distance: int,
    ) -> list[Any]:
        """Rows of these messages and of those around them, some of them several times."""
        dialect = self.rows.store.dialect

        def write(slots: Slots) -> sa.Executable:
            hits = t.messages.alias("hits")
            before, after = slots.take(KEY), slots.take(KEY)
            near = (t.messages.c.session_key == hits.c.session_key) & t.messages.c.seq.between(
                hits.c.seq - before, hits.c.seq + after
            )
            query = sa.select(*columns).select_from(hits.join(t.messages, near))
            query = query.where(dialect.one_of(hits.c.key, slots))
            return dialect.by_index(query, hits, "messages_places")

        values = [distance, distance, dialect.list_value(keys)]
        return self.rows.run(statement_key, write, values).fetchall()

    def neighbourhood(self, keys: Sequence[int], distance: int) -> PositionTable:
        if not self.rows.read_only:
            return super().neighbourhood(keys, distance)
        return self.rows.store.positions.around(_StoredPositions(self), keys, distance)

    def _states(self, session_keys: Sequence[int]) -> list[SessionState]:
        """Those of active sessions, read once in a snapshot."""
        from memservice_sql.position_cache import SessionState

        dialect = self.rows.store.dialect
        sessions = t.sessions

        def write(slots: Slots) -> sa.Executable:
            columns = [sessions.c[name] for name in SessionState._fields]
            active = sessions.c.state == sa.literal_column(f"'{ACTIVE}'")
            return sa.select(*columns).where(dialect.one_of(sessions.c.key, slots), active)

        states: dict[int, SessionState | None] = self.rows.once("states of sessions", dict)
        missing = [key for key in session_keys if key not in states]
        if missing:
            values = [dialect.list_value(missing)]
            rows = self.rows.run(("states of sessions",), write, values).fetchall()
            states.update(dict.fromkeys(missing))
            states.update({state.key: state for state in map(SessionState._make, rows)})
        return [state for key in session_keys if (state := states[key]) is not None]

    def _positions_of(self, after: Mapping[int, int]) -> NDArray[np.int64]:
        """The columns of a `PositionTable`, and one more: the session's revision. By session and
        seq."""
        import numpy as np

        dialect = self.rows.store.dialect

        def write(slots: Slots) -> sa.Executable:
            starts = dialect.value_rows(slots, (KEY, KEY))
            later = (t.messages.c.session_key == starts.c.v0) & (t.messages.c.seq > starts.c.v1)
            joined = starts.join(t.sessions, t.sessions.c.key == starts.c.v0)
            columns = (*_position(times=False)[:-1], t.sessions.c.revision)
            query = sa.select(*columns).select_from(joined.join(t.messages, later))
            return query.order_by(t.messages.c.session_key, t.messages.c.seq)

        values = [dialect.list_value(list(after.items()))]
        rows = self.rows.run(("positions of sessions",), write, values).fetchall()
        numbers = np.fromiter(chain.from_iterable(rows), np.int64, 6 * len(rows))
        return numbers.reshape(-1, 6).T

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

    def contents(self, workspace_key: int, keys: Sequence[int]) -> dict[int, str]:
        if not keys:
            return {}
        dialect = self.rows.store.dialect

        def write(slots: Slots) -> sa.Executable:
            of_workspace = t.messages.c.workspace_key == slots.take(KEY)
            chosen = dialect.one_of(t.messages.c.key, slots)
            return sa.select(t.messages.c.key, t.messages.c.content).where(of_workspace, chosen)

        values = [workspace_key, dialect.list_value(keys)]
        return dict(self.rows.run(("contents",), write, values).fetchall())

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
        self.revise(session_key)
        messages = t.messages
        # Positions are unique at every moment. If the new ones are all below the old ones, which
        # is so once the gap is larger than a batch, one statement sets them; else they are
        # negative first.
        sign = 1 if seq + limit <= after else -1

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
                        messages.c.seq: sign * (seq_before + numbered.c.number),
                        messages.c.tokens_through: tokens_before + numbered.c.sum,
                    }
                )
                .where(messages.c.key == numbered.c.key)
            )

        window_ = window_values(limit, 0)
        self.rows.run(("renumber", sign), move, [seq, tokens, session_key, after, *window_])
        if sign < 0:
            self._settle(session_key)

    def move_up(self, session_key: int, after: int, last: int, by: int, tokens: int) -> None:
        self.revise(session_key)
        messages = t.messages

        def move(slots: Slots) -> sa.Executable:
            moved = {
                messages.c.seq: -(messages.c.seq + slots.take(KEY)),
                messages.c.tokens_through: messages.c.tokens_through + slots.take(KEY),
            }
            same_session = messages.c.session_key == slots.take(KEY)
            within = (messages.c.seq > slots.take(KEY)) & (messages.c.seq <= slots.take(KEY))
            return sa.update(messages).values(moved).where(same_session, within)

        self.rows.run(("move up",), move, [by, tokens, session_key, after, last])
        self._settle(session_key)

    def _settle(self, session_key: int) -> None:
        """Give the messages with negative positions, which are unique while others still have
        their old ones, the positive ones."""
        messages = t.messages

        def settle(slots: Slots) -> sa.Executable:
            same_session = messages.c.session_key == slots.take(KEY)
            moved = messages.c.seq < 0
            return sa.update(messages).values(seq=-messages.c.seq).where(same_session, moved)

        self.rows.run(("settle",), settle, [session_key])

    def _positions(self, rows: Sequence[Sequence[Any]], times: bool) -> list[base.Position]:
        if not times:
            return list(map(_as_position, rows))
        read_time = self.rows.store.read_time
        return [
            base.Position(key, session, author, seq, tokens, read_time(at))
            for key, session, author, seq, tokens, at in rows
        ]


class _StoredPositions:
    """See `memservice_sql.position_cache.StoredPositions`."""

    def __init__(self, messages: SqlMessages) -> None:
        self._messages = messages

    def around(self, keys: Sequence[int], distance: int) -> NDArray[np.int64]:
        return self._messages._columns_around(keys, distance)

    def states(self, session_keys: Sequence[int]) -> list[SessionState]:
        return self._messages._states(session_keys)

    def of_sessions(self, after: Mapping[int, int]) -> NDArray[np.int64]:
        return self._messages._positions_of(after)


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
