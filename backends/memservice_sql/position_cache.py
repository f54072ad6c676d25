"""Positions of messages that this process keeps in memory, session by session.

A session's revision tells whether a message that it had has changed, moved or been erased: with the
same revision, its first n messages are the same. So a search reads the state of the sessions that
it needs, and of a session that has grown the new positions.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from threading import Lock
from typing import NamedTuple, Protocol

from memservice.spi.repositories import Position

MAX_MESSAGES = 50_000
"""Positions that are kept, of about 300 bytes."""
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

    def around(self, keys: Sequence[int], distance: int) -> list[Position]:
        """As `Messages.around`."""
        ...

    def states(self, session_keys: Sequence[int]) -> list[SessionState]:
        """The states of active sessions."""
        ...

    def of_sessions(self, after: Mapping[int, int]) -> Mapping[int, list[tuple[Position, int]]]:
        """By key of a session, its positions beyond this one, in order, each with the session's
        revision at the same moment. One statement for all sessions."""
        ...


_SESSION_KEY = itemgetter(1)
_PLACE = itemgetter(1, 3)
"""The session and the seq of a position."""


@dataclass(slots=True)
class _Session:
    uid: str
    revision: int
    positions: list[Position]
    """Position `n` is item `n - 1`. Only ever appended to."""
    read_at: float


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
        self._by_key: dict[int, Position] = {}
        self._read: dict[int, int] = {}
        """Session → the number of its positions that were read one by one lately."""
        self._read_in_all = 0
        self._loading: set[int] = set()

    def around(self, stored: StoredPositions, keys: Sequence[int], distance: int) -> list[Position]:
        """The positions of these messages and of up to `distance` messages before and after each in
        its session, each once."""
        cached = [position for position in map(self._by_key.get, keys) if position is not None]
        cached.sort(key=_PLACE)
        sessions = self._current(stored, {position.session_key for position in cached})
        result: list[Position] = []
        covered: set[int] = set()
        session: Sequence[Position] = ()
        session_key, length, end = -1, 0, 0
        for key, key_of_session, _, seq, *_ in cached:
            if key_of_session != session_key:
                session_key, end = key_of_session, 0
                session, length = sessions.get(session_key, ((), 0))
            if seq <= length and session[seq - 1].key == key:
                covered.add(key)
                start = max(end, seq - 1 - distance)
                end = min(length, seq + distance)
                result += session[start:end]
        missing = [key for key in keys if key not in covered]
        if missing:
            rows = stored.around(missing, distance)
            self._note(stored, rows)
            if not result:
                return rows
            result = list({row.key: row for row in (*result, *rows)}.values())
        return result

    def _current(
        self, stored: StoredPositions, session_keys: Iterable[int]
    ) -> dict[int, tuple[Sequence[Position], int]]:
        """The positions of those sessions that are in memory, and how many of them are in the
        transaction's state: another thread may append later ones at any time."""
        if not session_keys:
            return {}
        current: dict[int, tuple[Sequence[Position], int]] = {}
        remembered: list[tuple[SessionState, _Session]] = []
        for state in stored.states(sorted(session_keys)):
            with self._lock:
                session = self._sessions.get(state.key)
                if session is None:
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
            if len(session.positions) >= state.message_count:
                current[state.key] = session.positions, state.message_count
        return current

    def _extend(
        self, stored: StoredPositions, sessions: Sequence[tuple[SessionState, _Session]]
    ) -> None:
        """Add the positions of messages that were added."""
        lengths = {
            state.key: length
            for state, session in sessions
            if (length := len(session.positions)) < state.message_count
        }
        if not lengths:
            return
        added = stored.of_sessions(lengths)
        for state, session in sessions:
            if state.key not in lengths:
                continue
            length = lengths[state.key]
            if not _are(added[state.key], state, length):
                continue
            positions = [position for position, _ in added[state.key]]
            with self._lock:
                if len(session.positions) == length and self._sessions.get(state.key) is session:
                    session.positions += positions
                    self._by_key.update((position.key, position) for position in positions)
                    self._evict()

    def _note(self, stored: StoredPositions, rows: Sequence[Position]) -> None:
        """Note positions that were read one by one, and read those sessions as a whole for which it
        pays."""
        with self._lock:
            self._read_in_all += len(rows)
            if self._read_in_all > 2 * self._max_messages:
                # In more sessions than there is room for, none is read often enough.
                self._read.clear()
                self._read_in_all = len(rows)
            read = Counter(map(_SESSION_KEY, rows))
            for session_key, number in read.items():
                self._read[session_key] = self._read.get(session_key, 0) + number
            # A session has at least as many messages as the position of each.
            too_long = {row[1] for row in rows if row[3] > self._read[row[1]]}
        possible = sorted(read.keys() - too_long)
        if not possible:
            return
        pays = [
            state
            for state in stored.states(possible)
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
            if not _are(rows[state.key], state, 0):
                continue
            positions = [position for position, _ in rows[state.key]]
            with self._lock:
                self._discard(state.key)
                self._read.pop(state.key, None)
                self._sessions[state.key] = _Session(state.uid, state.revision, positions, now)
                self._by_key.update((position.key, position) for position in positions)
                self._evict()

    def _evict(self) -> None:
        while len(self._by_key) > self._max_messages:
            self._discard(next(iter(self._sessions)))

    def _discard(self, session_key: int) -> None:
        session = self._sessions.pop(session_key, None)
        for position in session.positions if session is not None else ():
            if self._by_key.get(position.key) is position:
                del self._by_key[position.key]


def _are(rows: Sequence[tuple[Position, int]], state: SessionState, after: int) -> bool:
    """Whether these are exactly the positions after one, of the state's revision."""
    return len(rows) == state.message_count - after and all(
        revision == state.revision and position.seq == seq
        for seq, (position, revision) in enumerate(rows, after + 1)
    )
