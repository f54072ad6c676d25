"""Spans of time as people write them."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.domain.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90d", timedelta(days=90)),
        ("1h30m", timedelta(minutes=90)),
        ("2 weeks", timedelta(weeks=2)),
        ("1 day 12 hours", timedelta(hours=36)),
        ("1.5h", timedelta(minutes=90)),
        ("45s", timedelta(seconds=45)),
        ("10 MINUTES", timedelta(minutes=10)),
        ("  1w ", timedelta(weeks=1)),
        ("1y", timedelta(days=365)),
        ("1d1d", timedelta(days=2)),
    ],
)
def test_durations_are_parsed(text: str, span: timedelta) -> None:
    assert parse_duration(text) == span


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "90",
        "d",
        "-1d",
        "1d-",
        "1 fortnight",
        "1month",
        "0d",
        "0h0m",
        "1e9d",
        "١d",
        "1d,",
        "1:30",
        "9999999999y",
        "1.d",
    ],
)
def test_invalid_durations_are_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match="is not a duration: write for instance 90d, 1h30m or '2 weeks'"
    ):
        parse_duration(text)


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 500), st.sampled_from(["", " "]))
def test_parts_add_up(days: int, hours: int, seconds: int, gap: str) -> None:
    text = f"{days}{gap}days{gap}{hours}h{gap}{seconds} sec"
    assert parse_duration(text) == timedelta(days=days, hours=hours, seconds=seconds)


@given(st.text())
def test_anything_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert parse_duration(text) > timedelta()
