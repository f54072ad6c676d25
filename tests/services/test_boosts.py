"""What is added to the scores of messages for their author and their day."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from memservice.domain.positions import Position, PositionTable
from memservice.domain.ranking import HitTable, TextHit, TextMatches
from memservice.domain.text.dates import NamedDate
from memservice.services.retrieval.boosts import MENTION, Boosting, mentions
from memservice.services.retrieval.query import Query
from memservice.settings.sections import Search
from support.services.services import Services

OCTOBER = datetime(2023, 10, 4, 12, tzinfo=UTC)
NAMELESS = Query("", (), (), None, (), {}, is_about_asker=False, unnamed="")


def test_positions_as_arrays_give_the_same_order() -> None:
    dice = random.Random(1)
    positions = [Position(key, 1, dice.randint(1, 4), key, 9, None) for key in range(40)]
    scores = {key: dice.choice((1.0, 2.0, 2.5)) for key in range(0, 44, 2)}
    peer: Any = Position(2, 0, 0, 0, 0, None)  # what has a key
    query = replace(NAMELESS, named=peer)
    boosting = Boosting(Search(), query, frozenset({3}))
    ranked = boosting.ranked(scores, {each.key: each for each in positions})
    assert ranked != Boosting(Search(), query).ranked(scores, PositionTable.of(positions))
    assert boosting.ranked(scores, PositionTable.of(positions)) == ranked


def test_a_message_of_another_day_that_mentions_the_day_gets_more_than_those_of_it() -> None:
    query = replace(NAMELESS, dates=(NamedDate(10, 4, 2023),))
    date = {"4": 1, "octob": 1, "2023": 1}
    hits = [
        TextHit(1, date, 9),
        TextHit(2, date, 9),
        TextHit(3, {"octob": 2, "2023": 1}, 9),
        TextHit(4, date, 9),
    ]
    other = OCTOBER.replace(month=9)
    positions = {
        1: Position(1, 1, 1, 1, 9, OCTOBER),
        2: Position(2, 1, 1, 2, 9, other),
        3: Position(3, 1, 1, 3, 9, other),
    }
    keys = mentions(query, TextMatches(9, 9.0, {}, hits), positions)
    assert keys == {2}
    settings = Search()
    boosts = Boosting(settings, query, mentions=keys).by_key(positions)
    assert {key: each.date for key, each in boosts.items()} == {
        1: settings.date_boost,
        2: MENTION * settings.date_boost,
        3: 0.0,
    }


def test_mentions_are_read_from_arrays_as_from_objects() -> None:
    import numpy as np

    keys, lengths = np.array([1, 2, 3]), np.array([5, 5, 5], np.int32)
    counts = np.array([[1, 1], [0, 1], [2, 1]], np.int32)
    table = HitTable(keys, lengths, ("4", "octob"), counts)
    positions = {key: Position(key, 1, 1, key, 9, OCTOBER.replace(day=9)) for key in (1, 2, 3)}
    for hits in (table, list(table)):
        matches = TextMatches(9, 9.0, {}, hits)
        of_day = replace(NAMELESS, dates=(NamedDate(10, 4),))
        assert mentions(of_day, matches, positions) == {1, 3}
        of_year = replace(NAMELESS, dates=(NamedDate(10, 4, 2023),))
        assert mentions(of_year, matches, positions) == set(), "no text has the year"
        of_month = replace(NAMELESS, dates=(NamedDate(10, None, 2023),))
        assert mentions(of_month, matches, positions) == set()


def test_an_appointment_stands_before_what_was_said_on_its_day(services: Services) -> None:
    services.say("before", ("ann", "The dentist wants to see me on 4 October 2023."))
    for bird in (
        "heron",
        "swan",
        "goose",
        "coot",
        "grebe",
        "duck",
        "tern",
        "gull",
        "stork",
        "ibis",
    ):
        services.say("then", ("ann", f"I saw a {bird} by the river."), at=OCTOBER)
        services.say("later", ("bob", f"The {bird} is ill."), ("ann", f"Poor {bird}, really."))
    assert services.search("What does ann have on 4 October 2023?")[0].startswith("The dentist")
