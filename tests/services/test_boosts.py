"""What is added to the scores of messages for their author."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from memservice.domain.positions import Position, PositionTable
from memservice.services.retrieval.boosts import Boosting
from memservice.settings.sections import Search


def test_positions_as_arrays_give_the_same_order() -> None:
    dice = random.Random(1)
    positions = [Position(key, 1, dice.randint(1, 4), key, 9, None) for key in range(40)]
    scores = {key: dice.choice((1.0, 2.0, 2.5)) for key in range(0, 44, 2)}
    query: Any = SimpleNamespace(named=SimpleNamespace(key=2), dates=())
    boosting = Boosting(Search(), query, frozenset({3}))
    ranked = boosting.ranked(scores, {each.key: each for each in positions})
    assert ranked != Boosting(Search(), query).ranked(scores, PositionTable.of(positions))
    assert boosting.ranked(scores, PositionTable.of(positions)) == ranked
