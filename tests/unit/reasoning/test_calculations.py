"""Tools that calculate: dates in order, the time between them, and different items."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from memservice.reasoning.calculation_tools import calculation_tools, span
from memservice.reasoning.prompts.tools import MAX_CALCULATED
from memservice.spi.toolbox import ToolRefused

TODAY = date(2024, 5, 17)


def run(name: str, today: date | None = TODAY, **arguments: Any) -> list[str]:
    (bound,) = [tool for tool in calculation_tools(today) if tool.tool.name == name]
    return list(bound.run(arguments).lines)


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2024-05-17", "2024-05-17", "0 days"),
        ("2024-05-17", "2024-05-18", "1 day"),
        ("2024-05-17", "2024-05-24", "7 days (1 week)"),
        ("2023-05-08", "2023-07-06", "59 days (8 weeks 3 days; 1 month 28 days)"),
        ("2024-02-29", "2025-02-28", "365 days (52 weeks 1 day; 1 year)"),
        ("2024-02-29", "2025-03-01", "366 days (52 weeks 2 days; 1 year 1 day)"),
        ("2024-01-31", "2024-02-29", "29 days (4 weeks 1 day; 1 month)"),
        ("2020-01-01", "2022-01-01", "731 days (104 weeks 3 days; 2 years)"),
    ],
)
def test_the_time_between_two_days(first: str, last: str, words: str) -> None:
    assert span(date.fromisoformat(first), date.fromisoformat(last)) == words


def test_dates_come_in_order_with_the_time_between_them() -> None:
    dates = ["2024-04-01 moved", "2023-12-24: wedding", "2024-05-20T10:00:00Z trip"]
    assert run("calculate_dates", dates=dates) == [
        "1. Sun 2023-12-24 wedding",
        "2. Mon 2024-04-01 moved: 99 days (14 weeks 1 day; 3 months 8 days) later",
        "3. Mon 2024-05-20 trip: 49 days (7 weeks; 1 month 19 days) later",
        "From the first to the last: 148 days (21 weeks 1 day; 4 months 26 days)",
        "The first is 145 days (20 weeks 5 days; 4 months 23 days) before today (2024-05-17)",
        "The last is 3 days after today (2024-05-17)",
    ]


def test_one_date_is_compared_with_today() -> None:
    assert run("calculate_dates", dates=["2024-05-10"]) == [
        "1. Fri 2024-05-10",
        "The first is 7 days (1 week) before today (2024-05-17)",
    ]
    assert run("calculate_dates", None, dates=["2024-05-10"]) == ["1. Fri 2024-05-10"]


@pytest.mark.parametrize(
    ("dates", "message"),
    [
        ([], "dates is empty"),
        (["in May"], "'in May' does not begin with a date"),
        (["2024-02-30 leap"], "does not begin with a date"),
        (["2024-05"], "give its first day"),
        (["2024-05-17"] * (MAX_CALCULATED + 1), f"at most {MAX_CALCULATED}"),
    ],
)
def test_dates_that_cannot_be_read_are_named(dates: list[str], message: str) -> None:
    with pytest.raises(ToolRefused, match=message):
        run("calculate_dates", dates=dates)


def test_the_same_item_counts_once() -> None:
    items = ["a trip to Rome", "Trip to  Rome!", "kayaking in Norway", "camping"]
    assert run("count_items", items=items) == [
        "1. a trip to Rome (named 2 times)",
        "2. kayaking in Norway",
        "3. camping",
        "Different items: 3",
    ]


def test_items_that_may_be_the_same_are_named() -> None:
    items = ["weekend trip to Rome", "Rome", "trip to Porto"]
    assert run("count_items", items=items)[-2:] == [
        "Different items: 3",
        "Perhaps the same: 1 and 2",
    ]


@pytest.mark.parametrize(
    ("items", "message"),
    [([" "], "items is empty"), (["a"] * (MAX_CALCULATED + 1), f"at most {MAX_CALCULATED}")],
)
def test_items_that_cannot_be_counted_are_an_error(items: list[str], message: str) -> None:
    with pytest.raises(ToolRefused, match=message):
        run("count_items", items=items)
