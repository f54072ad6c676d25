"""Positions of messages that this process keeps in memory, session by session.

A session's revision tells whether a message that it had has changed, moved or been erased: with the
same revision, its first n messages are the same. So a search reads the state of the sessions that
it needs, and of a session that has grown the new positions.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from msgspec import Struct

from memservice.domain.positions import KEY, SEQ, SESSION, PositionTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

MAX_MESSAGES = 50_000
"""Positions that are kept, of 56 bytes."""
SECONDS = 600.0
"""How long a session is kept. No process hears that the store was replaced by an older copy, in
which a revision may have had other messages."""


class SessionState(NamedTuple):
    """The state of a session in a transaction."""

    key: int
    message_count: int
    revision: int
    uid: str
    """Another one, if a new store has this key again."""


class StoredPositions(Protocol):
    """The positions of messages in the database, in one transaction that only reads."""

    def around(self, keys: Sequence[int], distance: int) -> NDArray[np.int64]:
        """As `Messages.around`, without times: the columns of a `PositionTable`."""
        ...

    def states(self, session_keys: Sequence[int]) -> list[SessionState]:
        """The states of active sessions."""
        ...

    def of_sessions(self, after: Mapping[int, int]) -> NDArray[np.int64]:
        """The positions of these sessions beyond a seq each, by session and seq: the columns of a
        `PositionTable`, and one more, the session's revision at the same moment. One statement for
        all sessions."""
        ...


_REVISION = 5


class _Session(Struct):
    number: int
    """No other session that this process has read has it, nor this one when it is read again."""
    key: int
    uid: str
    revision: int
    columns: NDArray[np.int64]
    """See `PositionTable`; position `n` is column `n - 1`. Replaced by longer ones only."""
    read_at: float

    @property
    def length(self) -> int:
        return len(self.columns[KEY])


class _Index(Struct, frozen=True):
    """Where the messages in memory are. Never changes."""

    keys: NDArray[np.int64]
    """Of messages, ascending."""
    numbers: NDArray[np.int32]
    """Of their sessions."""
    seqs: NDArray[np.int32]

    def find(self, keys: NDArray[np.int64]) -> tuple[Mask, NDArray[np.int32], NDArray[np.int32]]:
        """Which of these are here; the sessions and seqs of those."""
        at = np.searchsorted(self.keys, keys)
        at[at == len(self.keys)] = 0
        is_here = self.keys[at] == keys if len(self.keys) else np.zeros(len(keys), np.bool_)
        return is_here, self.numbers[at[is_here]], self.seqs[at[is_here]]

    def plus(self, columns: NDArray[np.int64], number: int) -> _Index:
        keys = np.concatenate([self.keys, columns[KEY]])
        numbers = np.concatenate([self.numbers, np.full(columns.shape[1], number, np.int32)])
        seqs = np.concatenate([self.seqs, columns[SEQ].astype(np.int32)])
        order = np.argsort(keys, kind="stable")
        return _Index(keys[order], numbers[order], seqs[order])

    def without(self, number: int) -> _Index:
        others = self.numbers != number
        return _Index(self.keys[others], self.numbers[others], self.seqs[others])


def _nothing() -> _Index:
    return _Index(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))


class PositionCache:
    """Safe for threads: SQL runs outside of its lock. A session is read as a whole once as many of
    its positions were read one by one."""

    def __init__(
        self, max_messages: int = MAX_MESSAGES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_messages = max_messages
        self._clock = clock
        self._lock = Lock()
        self._sessions: OrderedDict[int, _Session] = OrderedDict()
        self._by_number: dict[int, _Session] = {}
        self._numbers = count()
        self._index = _nothing()
        self._read: dict[int, int] = {}
        """Session → the number of its positions that were read one by one lately."""
        self._lengths: dict[int, int] = {}
        """Session → the number of its messages when its state was read. It is not read again before
        as many of its positions were."""
        self._read_in_all = 0
        self._loading: set[int] = set()

    def around(self, stored: StoredPositions, keys: Sequence[int], distance: int) -> PositionTable:
        """The positions of these messages and of up to `distance` messages before and after each in
        its session, each once."""
        key_array = np.array(keys, np.int64)
        covered, numbers, seqs = self._index.find(key_array)
        numbers, of_hit = np.unique(numbers, return_inverse=True)
        sessions = self._current(stored, numbers.tolist())
        # The messages of these sessions, one after the other: `starts` says where each begins.
        lengths = np.array([sessions[number][1] for number in numbers.tolist()], np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        length_of_hit, start_of_hit = lengths[of_hit], starts[of_hit]
        has_hit = seqs <= length_of_hit
        near = np.zeros(starts[-1], np.bool_)
        for step in range(-distance, distance + 1):
            nearby = seqs - 1 + step
            exist = has_hit & (nearby >= 0) & (nearby < length_of_hit)
            near[(start_of_hit + nearby)[exist]] = True
        chosen = np.flatnonzero(near)
        ends = np.searchsorted(chosen, starts).tolist()
        parts = [
            sessions[number][0][:, chosen[ends[n] : ends[n + 1]] - starts[n]]
            for n, number in enumerate(numbers.tolist())
            if ends[n] < ends[n + 1]
        ]
        covered[covered] = has_hit
        missing = key_array[~covered].tolist()
        if missing:
            columns = stored.around(missing, distance)
            self._note(stored, columns)
            if not parts:
                return PositionTable(columns)
            parts.append(columns)
            joined = np.concatenate(parts, axis=1)
            return PositionTable(joined[:, np.unique(joined[KEY], return_index=True)[1]])
        return PositionTable(np.concatenate(parts, axis=1) if parts else np.empty((5, 0), np.int64))

    def _current(
        self, stored: StoredPositions, numbers: Sequence[int]
    ) -> dict[int, tuple[NDArray[np.int64], int]]:
        """The positions of these sessions, and how many of them are in the transaction's state:
        none, if they cannot be used."""
        current = dict.fromkeys(numbers, (np.empty((5, 0), np.int64), 0))
        sessions = [self._by_number.get(number) for number in numbers]
        by_key = {session.key: session for session in sessions if session is not None}
        if not by_key:
            return current
        remembered: list[tuple[SessionState, _Session]] = []
        for state in stored.states(sorted(by_key)):
            session = by_key[state.key]
            with self._lock:
                if self._sessions.get(state.key) is not session:
                    continue
                if (session.uid, session.revision) != (
                    state.uid,
                    state.revision,
                ) or self._clock() >= session.read_at + SECONDS:
                    self._discard(state.key)
                    continue
                self._sessions.move_to_end(state.key)
            remembered.append((state, session))
        self._extend(stored, remembered)
        for state, session in remembered:
            if session.length >= state.message_count:
                current[session.number] = session.columns, state.message_count
        return current

    def _extend(
        self, stored: StoredPositions, sessions: Sequence[tuple[SessionState, _Session]]
    ) -> None:
        """Add the positions of messages that were added."""
        lengths = {
            state.key: length
            for state, session in sessions
            if (length := session.length) < state.message_count
        }
        if not lengths:
            return
        added = stored.of_sessions(lengths)
        for state, session in sessions:
            if state.key not in lengths:
                continue
            length = lengths[state.key]
            columns = _columns(added, state, length)
            if columns is None:
                continue
            with self._lock:
                if session.length == length and self._sessions.get(state.key) is session:
                    session.columns = np.concatenate([session.columns, columns], axis=1)
                    self._index = self._index.plus(columns, session.number)
                    self._evict()

    def _note(self, stored: StoredPositions, columns: NDArray[np.int64]) -> None:
        """Note positions that were read one by one, and read those sessions as a whole for which it
        pays."""
        number = columns.shape[1]
        session_keys, of_position, counts = np.unique(
            columns[SESSION], return_inverse=True, return_counts=True
        )
        # A session has at least as many messages as the position of each.
        least = np.zeros(len(session_keys), np.int64)
        np.maximum.at(least, of_position, columns[SEQ])
        possible: list[int] = []
        with self._lock:
            self._read_in_all += number
            if self._read_in_all > 2 * self._max_messages:
                # In more sessions than there is room for, none is read often enough.
                self._read.clear()
                self._lengths.clear()
                self._read_in_all = number
            for session_key, count_read, length in zip(
                session_keys.tolist(), counts.tolist(), least.tolist(), strict=True
            ):
                read = self._read[session_key] = self._read.get(session_key, 0) + count_read
                if max(length, self._lengths.get(session_key, 0)) <= read:
                    possible.append(session_key)
        if not possible:
            return
        states = stored.states(possible)
        with self._lock:
            self._lengths.update({state.key: state.message_count for state in states})
        pays = [
            state
            for state in states
            if 0 < state.message_count <= min(self._read.get(state.key, 0), self._max_messages)
        ]
        if pays:
            self._load(stored, pays)

    def _load(self, stored: StoredPositions, sessions: Sequence[SessionState]) -> None:
        with self._lock:  # without those that another thread reads
            states = [state for state in sessions if state.key not in self._loading]
            self._loading.update(state.key for state in states)
        if not states:
            return
        now = self._clock()
        try:
            rows = stored.of_sessions({state.key: 0 for state in states})
        finally:
            with self._lock:
                self._loading.difference_update(state.key for state in states)
        for state in states:
            columns = _columns(rows, state, 0)
            if columns is None:
                continue
            with self._lock:
                self._discard(state.key)
                self._read.pop(state.key, None)
                self._lengths.pop(state.key, None)
                number = next(self._numbers)
                session = _Session(number, state.key, state.uid, state.revision, columns, now)
                self._sessions[state.key] = self._by_number[number] = session
                self._index = self._index.plus(columns, number)
                self._evict()

    def _evict(self) -> None:
        while len(self._index.keys) > self._max_messages:
            self._discard(next(iter(self._sessions)))

    def _discard(self, session_key: int) -> None:
        session = self._sessions.pop(session_key, None)
        if session is not None:
            del self._by_number[session.number]
            self._index = self._index.without(session.number)


def _columns(rows: NDArray[np.int64], state: SessionState, after: int) -> NDArray[np.int64] | None:
    """What `StoredPositions.of_sessions` has read of this session, if these are exactly the
    positions after one, of the state's revision."""
    of_session = rows[:, rows[SESSION] == state.key]
    if (
        np.array_equal(of_session[SEQ], np.arange(after + 1, state.message_count + 1))
        and (of_session[_REVISION] == state.revision).all()
    ):
        return of_session[:_REVISION]
    return None
