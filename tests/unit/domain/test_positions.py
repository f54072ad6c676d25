"""Positions of messages as arrays."""

from __future__ import annotations

import pytest

from memservice.domain.positions import Position, PositionTable

POSITIONS = [Position(10 * n, n % 2, 5 + n, n, 100 + n, None) for n in range(1, 6)]


def by_key(positions: list[Position]) -> dict[int, Position]:
    return {each.key: each for each in positions}


def test_a_table_is_a_mapping_of_positions() -> None:
    table = PositionTable.of(POSITIONS)
    assert table == by_key(POSITIONS)
    assert (len(table), 10 in table, 11 in table) == (5, True, False)
    assert table.keys() == {10, 20, 30, 40, 50}
    assert table.authors() == {10: 6, 20: 7, 30: 8, 40: 9, 50: 10}
    with pytest.raises(KeyError):
        table[11]


def test_others_are_added_without_their_times() -> None:
    first, more = POSITIONS[:3], POSITIONS[2:]
    assert PositionTable.of(first) | by_key(more) == by_key(POSITIONS)
    assert PositionTable.of(first) | PositionTable.of(more) == by_key(POSITIONS)
    assert PositionTable.of([]) | {} == {}


def test_positions_are_read_by_session_and_seq() -> None:
    table = PositionTable.of(POSITIONS)
    pairs = {(1, 1), (0, 2), (1, 2), (0, 9)}
    assert table.at(pairs) == {(1, 1): POSITIONS[0], (0, 2): POSITIONS[1]}
    assert table.at(set()) == PositionTable.of([]).at(pairs) == {}


def test_rows_of_some_messages_are_read_in_their_order() -> None:
    table = PositionTable.of(POSITIONS)
    assert table.rows([30, 7, 10]) == [[30, 1, 8, 3, 103], [10, 1, 6, 1, 101]]
    assert table.rows([7]) == []


def test_some_are_chosen_by_session_author_and_seq() -> None:
    table = PositionTable.of(POSITIONS)
    assert table.only(lambda session, author, seq: session == 1 and author != 6) == by_key(
        [POSITIONS[2], POSITIONS[4]]
    )
    assert table.only(lambda session, author, seq: seq > 9) == {}


def test_messages_by_other_authors_are_named() -> None:
    table = PositionTable.of(POSITIONS)
    assert table.by_others({6, 8}) == {20, 40, 50}
    assert table.by_others(set()) == set(table)
