"""Positions of messages in memory, while other threads read the same sessions."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memservice.domain.positions import Position, PositionTable
from memservice_sql.position_cache import PositionCache, SessionState


def position(session: int, seq: int) -> Position:
    return Position(session * 100 + seq, session, 1, seq, 1, None)


class Snapshot:
    """Sessions as one transaction sees them, all of the same length."""

    def __init__(self, messages: int, revision: int = 1) -> None:
        self._messages = messages
        self._revision = revision

    def around(self, keys: Sequence[int], distance: int) -> NDArray[np.int64]:
        near = {
            (key // 100, seq)
            for key in keys
            for seq in range(key % 100 - distance, key % 100 + distance + 1)
            if 1 <= seq <= self._messages
        }
        return PositionTable.of(position(*each) for each in near).columns

    def states(self, session_keys: Sequence[int]) -> list[SessionState]:
        return [
            SessionState(key, self._messages, self._revision, f"s{key}") for key in session_keys
        ]

    def of_sessions(self, after: Mapping[int, int]) -> NDArray[np.int64]:
        rows = [
            (*position(session, seq)[:5], self._revision)
            for session, start in sorted(after.items())
            for seq in range(start + 1, self._messages + 1)
        ]
        return np.array(rows, np.int64).reshape(-1, 6).T


class Interrupted(Snapshot):
    """Another thread acts once, just after the states of sessions were read."""

    def __init__(self, messages: int, act: Callable[[], object]) -> None:
        super().__init__(messages)
        self._act: Callable[[], object] | None = act

    def states(self, session_keys: Sequence[int]) -> list[SessionState]:
        act, self._act = self._act, None
        if act is not None:
            act()
        return super().states(session_keys)


def loaded(messages: int = 3, session: int = 1) -> PositionCache:
    cache = PositionCache()
    cache.around(Snapshot(messages), [session * 100 + n + 1 for n in range(messages)], 0)
    assert session in cache._sessions
    return cache


def seqs(cache: PositionCache, stored: Snapshot, keys: Sequence[int], distance: int) -> list[int]:
    return sorted(each.seq for each in cache.around(stored, keys, distance).values())


def test_what_another_thread_appends_is_not_in_the_state_of_an_older_transaction() -> None:
    cache = loaded()
    stored = Interrupted(3, lambda: cache.around(Snapshot(4), [103], 1))
    assert seqs(cache, stored, [103], 1) == [2, 3]
    assert cache._sessions[1].length == 4
    assert seqs(cache, Snapshot(3), [103], 1) == [2, 3]


def test_a_session_that_another_thread_replaced_meanwhile_is_not_used() -> None:
    cache = loaded()

    def replace() -> None:
        cache.around(Snapshot(3, revision=2), [101], 0)
        cache.around(Snapshot(3, revision=2), [101, 102, 103], 0)
        cache._sessions[1].columns[:] = 0

    assert seqs(cache, Interrupted(3, replace), [102], 1) == [1, 2, 3]


def test_random_sessions_give_the_positions_of_the_database() -> None:
    dice = random.Random(1)
    cache = PositionCache(max_messages=60)
    messages, revision, from_memory = 3, 1, 0
    for _ in range(300):
        messages = min(20, messages + dice.choice((0, 0, 1, 3)))
        revision += dice.random() < 0.05
        stored = Noting(messages, revision)
        sessions = dice.sample(range(1, 7), dice.randint(1, 3))
        keys = [dice.choice(sessions) * 100 + dice.randint(1, messages) for _ in range(9)]
        distance = dice.randint(0, 3)
        table = cache.around(stored, keys, distance)
        from_memory += stored.read == 0
        assert table == PositionTable(stored.around(keys, distance))
        assert len(cache._index.keys) == sum(each.length for each in cache._sessions.values())
        assert len(cache._index.keys) <= 60
    assert from_memory > 50


class Noting(Snapshot):
    """Notes the sessions whose states or positions are read as a whole, and how often others are
    read."""

    def __init__(self, messages: int, revision: int = 1) -> None:
        super().__init__(messages, revision)
        self.states_read: list[int] = []
        self.loaded: list[int] = []
        self.read = 0

    def around(self, keys: Sequence[int], distance: int) -> NDArray[np.int64]:
        self.read += 1
        return super().around(keys, distance)

    def states(self, session_keys: Sequence[int]) -> list[SessionState]:
        self.states_read += session_keys
        return super().states(session_keys)

    def of_sessions(self, after: Mapping[int, int]) -> NDArray[np.int64]:
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


def test_a_session_that_was_too_long_is_asked_for_again_when_enough_was_read() -> None:
    """Messages at the beginning do not tell how long it is."""
    stored = Noting(20)
    cache = PositionCache()
    for _ in range(9):
        cache.around(stored, [101, 102], 0)
    assert stored.states_read == [1]
    assert stored.loaded == []
    cache.around(stored, [101, 102], 0)
    assert stored.states_read == [1, 1]
    assert stored.loaded == [1]
