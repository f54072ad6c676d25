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
