"""Messages and the summaries of sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from memservice.domain.filters.ast import TRUE, All, Any_, Compare, Condition, all_of, equals
from memservice.domain.positions import Position as Position
from memservice.domain.positions import PositionTable
from memservice.domain.records import Message, Session, Summary
from memservice.domain.times import day_of
from memservice.spi.repositories.base import Repository
from memservice.spi.rows import Order


class Span(NamedTuple):
    """A series of messages of one session, by position."""

    messages: int
    last: int
    """Position of the last one; 0 if there is none."""
    tokens: int


class Counted(NamedTuple):
    """Messages that match a condition, and the state of their session in which they were
    counted."""

    total: int
    through: int
    """The session's number of messages."""
    revision: int
    """As in `Session`."""


class Messages(Repository):
    def by_uid(self, session_key: int, uid: str) -> Message | None:
        return self.rows.get(Message, equals(uid=uid, session_key=session_key))

    def by_keys(self, keys: Sequence[int]) -> dict[int, Message]:
        if not keys:
            return {}
        return {
            message.key: message for message in self.rows.page(Message, equals(key=tuple(keys)))
        }

    def append(self, messages: Sequence[Message]) -> list[Message]:
        """Store new messages. The caller sets `seq` and `tokens_through` while it holds the
        session's lock."""
        return self.rows.put(messages)

    def save(self, message: Message) -> Message:
        """Replace a stored message, with a new revision of its session."""
        self.revise(message.session_key)
        return self.rows.put([message])[0]

    def revise(self, session_key: int, *, freed: int = 0) -> None:
        """Give a session its next revision, and add `freed` to its `free_positions`: the number of
        messages that were erased, negative for positions that were filled or closed. Whoever
        changes, moves or erases stored messages in another way than by the methods of this class
        calls this in the same transaction, while it holds the session's lock."""
        self.rows.increase(Session, equals(key=session_key), revision=1, free_positions=freed)

    def run(self, session_key: int, first: int, last: int, reverse: bool = False) -> list[Message]:
        """Messages with `first` ≤ seq ≤ `last`, by seq. An index range: its cost does not depend on
        its position."""
        condition = All(
            (
                *_parts(equals(session_key=session_key)),
                Compare("seq", "gte", first),
                Compare("seq", "lte", last),
            )
        )
        return self.rows.page(Message, condition, (Order("seq", reverse),))

    def span(self, session_key: int, after: int, limit: int) -> Span:
        """The next messages of a session after a position: at most `limit`."""
        messages = self._next(session_key, after, limit)
        tokens = sum(message.tokens for message in messages)
        return Span(len(messages), messages[-1].seq if messages else 0, tokens)

    def renumber(self, session_key: int, after: int, limit: int, seq: int, tokens: int) -> None:
        """Give the messages of `span` the dense positions after `seq`, which is not beyond `after`,
        and `tokens_through` from `tokens` on; the session gets a new revision. The caller holds the
        session's lock, and no other message has one of these positions."""
        self.revise(session_key)
        messages = self._next(session_key, after, limit)
        moved: list[Message] = []
        for message in messages:
            seq, tokens = seq + 1, tokens + message.tokens
            moved.append(replace(message, seq=seq, tokens_through=tokens))
        if seq > after:
            # In two steps, since positions are unique at every moment.
            self.rows.put([replace(message, seq=-message.seq) for message in moved])
        self.rows.put(moved)

    def move_up(self, session_key: int, after: int, last: int, by: int, tokens: int) -> None:
        """Add `by`, which is positive, to the positions of the messages with `after` < seq ≤ `last`
        of a session, and `tokens` to their `tokens_through`; the session gets a new revision. The
        caller holds the session's lock, and no other message has one of the new positions."""
        self.revise(session_key)
        moved = [
            replace(message, seq=message.seq + by, tokens_through=message.tokens_through + tokens)
            for message in self.run(session_key, after + 1, last)
        ]
        # In two steps, since positions are unique at every moment.
        self.rows.put([replace(message, seq=-message.seq) for message in moved])
        self.rows.put(moved)

    def _next(self, session_key: int, after: int, limit: int) -> list[Message]:
        condition = all_of(equals(session_key=session_key), Compare("seq", "gt", after))
        return self.rows.page(Message, condition, (Order("seq"),), limit)

    def page(
        self,
        session_key: int,
        condition: Condition = TRUE,
        reverse: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> list[Message]:
        """Matching messages of a session, by seq."""
        return self.rows.page(
            Message,
            all_of(equals(session_key=session_key), condition),
            (Order("seq", reverse),),
            limit,
            offset,
        )

    def page_and_total(
        self, session_key: int, condition: Condition, reverse: bool, limit: int, offset: int
    ) -> tuple[list[Message], int]:
        """A page of the matching messages of a session, by seq, and the number of all that
        match."""
        messages = self.page(session_key, condition, reverse, limit, offset)
        return messages, self.count(session_key, condition)

    def count(self, session_key: int, condition: Condition = TRUE) -> int:
        return self.rows.count(Message, all_of(equals(session_key=session_key), condition))

    def counted(self, session_key: int, condition: Condition) -> Counted | None:
        """How many messages of a session match, with the session's state; all are read in one state
        of the store. None if there is no such session."""
        session = self.rows.get(Session, equals(key=session_key))
        if session is None:
            return None
        total = self.count(session_key, condition)
        return Counted(total, session.message_count, session.revision)

    def matching(
        self, workspace_key: int, keys: Sequence[int], condition: Condition
    ) -> dict[int, Message]:
        """The matching messages among these keys, by key."""
        if not keys:
            return {}
        messages = self.rows.page(
            Message, all_of(equals(workspace_key=workspace_key, key=tuple(keys)), condition)
        )
        return {message.key: message for message in messages}

    def contents(self, workspace_key: int, keys: Sequence[int]) -> dict[int, str]:
        """The texts of these messages, by key; others than the workspace's are left out."""
        return {
            key: message.content
            for key, message in self.matching(workspace_key, keys, TRUE).items()
        }

    def seq_reaching(self, session_key: int, tokens: int) -> int | None:
        """The first seq whose `tokens_through` is at least `tokens`; None if there is none. An
        index look-up."""
        messages = self.rows.page(
            Message,
            all_of(equals(session_key=session_key), Compare("tokens_through", "gte", tokens)),
            (Order("seq"),),
            limit=1,
        )
        return messages[0].seq if messages else None

    def positions(self, keys: Sequence[int], *, times: bool = True) -> list[Position]:
        """Positions of the messages with these keys, in no particular order; `times`: whether
        `created_at` is needed."""
        return [_position(message) for message in self.by_keys(keys).values()]

    def per_day(self, after: int, through: int) -> dict[str, int]:
        """How many messages with `after` < key ≤ `through` there are, by the UTC day of their
        `created_at` (`2024-05-17`), in no particular order. Reads these messages only."""
        messages = self.rows.page(
            Message, all_of(Compare("key", "gt", after), Compare("key", "lte", through))
        )
        return dict(Counter(day_of(message.created_at) for message in messages))

    def newest_key(self) -> int:
        """The greatest key; 0: there is no message."""
        messages = self.rows.page(Message, order=(Order("key", descending=True),), limit=1)
        return messages[0].key if messages else 0

    def around(self, keys: Sequence[int], distance: int, *, times: bool = True) -> list[Position]:
        """Positions of these messages and of those up to `distance` before and after each in its
        session, each once, in no particular order; `times` as in `positions`."""
        near = Any_(
            tuple(
                All(
                    (
                        *_parts(equals(session_key=session_key)),
                        Compare("seq", "gte", first),
                        Compare("seq", "lte", last),
                    )
                )
                for session_key, first, last in _ranges(self.positions(keys), distance)
            )
        )
        return [_position(message) for message in self.rows.page(Message, near)]

    def neighbourhood(self, keys: Sequence[int], distance: int) -> PositionTable:
        """As `around` without times, for a search, which ranks thousands."""
        return PositionTable.of(self.around(keys, distance, times=False))


class Summaries(Repository):
    def of_session(self, session_key: int) -> dict[str, Summary]:
        """The newest summary of each kind, by kind."""
        return {
            summary.kind: summary
            for summary in self.rows.page(Summary, equals(session_key=session_key))
        }

    def save(self, summary: Summary) -> Summary:
        """Store the summary. It replaces the session's previous one of that kind."""
        self.rows.delete(Summary, equals(session_key=summary.session_key, kind=summary.kind))
        return self.rows.put([summary])[0]


def _ranges(positions: Iterable[Position], distance: int) -> list[tuple[int, int, int]]:
    """Session, first and last position of what is up to `distance` from each position. Adjacent
    ranges are one: a storage without an index compares every message with each of them."""
    ranges: list[tuple[int, int, int]] = []
    for session_key, seq in sorted((each.session_key, each.seq) for each in positions):
        first, last = seq - distance, seq + distance
        if ranges and ranges[-1][0] == session_key and first <= ranges[-1][2] + 1:
            first = ranges.pop()[1]
        ranges.append((session_key, first, last))
    return ranges


def _position(message: Message) -> Position:
    return Position(
        message.key,
        message.session_key,
        message.author_key,
        message.seq,
        message.tokens,
        message.created_at,
    )


def _parts(condition: Condition) -> tuple[Condition, ...]:
    return condition.parts if isinstance(condition, All) else (condition,)
