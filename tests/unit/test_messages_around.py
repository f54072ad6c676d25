"""Which ranges of positions a storage reads for the messages around others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memservice.domain.filters.ast import Any_, Condition
from memservice.spi.repositories.messages import Messages, Position


@dataclass
class Rows:
    conditions: list[Condition] = field(default_factory=list)

    def page(self, kind: type, condition: Condition, *more: Any) -> Sequence[Any]:
        self.conditions.append(condition)
        return []


class Stored(Messages):
    """Messages whose key is 1,000 times that of their session, plus their position."""

    def positions(self, keys: Sequence[int], *, times: bool = True) -> list[Position]:
        return [Position(key, key // 1_000, 1, key % 1_000, 0, None) for key in keys]


def ranges(*keys: int, distance: int) -> int:
    rows: Any = Rows()
    Stored(rows).around(keys, distance)
    (condition,) = rows.conditions
    assert isinstance(condition, Any_)
    return len(condition.parts)


def test_adjacent_messages_of_one_session_are_read_as_one_range() -> None:
    assert ranges(1_001, 1_004, 1_009, distance=2) == 1
    assert ranges(*range(1_001, 1_400), distance=0) == 1


def test_messages_apart_and_those_of_other_sessions_are_not() -> None:
    assert ranges(1_001, 1_007, distance=2) == 2
    assert ranges(1_001, 2_002, distance=2) == 2
