"""Positions of messages in memory, while other threads read the same sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memservice.spi.repositories import Position
from memservice_sql.position_cache import PositionCache, SessionState


def position(session: int, seq: int) -> Position:
    return Position(session * 100 + seq, session, 1, seq, 1, None)


class Snapshot:
    """Two sessions as one transaction sees them."""

    def __init__(self, messages: int) -> None:
        self._messages = messages

    def around(self, keys: Sequence[int], distance: int) -> list[Position]:
        return [position(key // 100, key % 100) for key in keys]

    def states(self, session_keys: Sequence[int]) -> list[SessionState]:
        return [SessionState(key, self._messages, 1, f"s{key}") for key in session_keys]

    def of_sessions(self, after: Mapping[int, int]) -> Mapping[int, list[tuple[Position, int]]]:
        return {
            session: [(position(session, seq), 1) for seq in range(start + 1, self._messages + 1)]
            for session, start in after.items()
        }


class AppendsMeanwhile(list[Position]):
    """Positions to which another thread appends after their number was compared twice: with that
    of the transaction before what is missing is read, and after."""

    compared = 0

    def __len__(self) -> int:
        length = super().__len__()
        self.compared += 1
        if self.compared == 2:
            self.append(position(1, 4))
        return length


def test_what_another_thread_appends_is_not_in_the_state_of_an_older_transaction() -> None:
    cache = PositionCache()
    cache.around(Snapshot(3), [101, 102, 103], 0)
    cache._sessions[1].positions = AppendsMeanwhile(cache._sessions[1].positions)
    assert [each.seq for each in cache.around(Snapshot(3), [103], 1)] == [2, 3]


class Noting(Snapshot):
    """Notes the sessions whose states or positions are read as a whole."""

    def __init__(self, messages: int) -> None:
        super().__init__(messages)
        self.states_read: list[int] = []
        self.loaded: list[int] = []

    def states(self, session_keys: Sequence[int]) -> list[SessionState]:
        self.states_read += session_keys
        return super().states(session_keys)

    def of_sessions(self, after: Mapping[int, int]) -> Mapping[int, list[tuple[Position, int]]]:
        self.loaded += after
        return super().of_sessions(after)


def test_a_session_is_not_asked_for_before_so_many_of_its_positions_were_read() -> None:
    stored = Noting(3)
    cache = PositionCache()
    cache.around(stored, [103], 0)
    cache.around(stored, [103], 0)
    assert stored.states_read == []
    cache.around(stored, [103], 0)
    assert (stored.states_read, stored.loaded) == ([1], [1])


def test_sessions_that_are_read_seldom_among_many_are_not_loaded() -> None:
    """They would take each other's place in memory."""
    stored = Noting(4)
    cache = PositionCache(max_messages=8)
    for _ in range(5):
        for session in range(1, 20):
            cache.around(stored, [session * 100 + 1], 0)
    assert stored.loaded == []
    for _ in range(8):
        cache.around(stored, [101], 0)
    assert stored.loaded == [1]
