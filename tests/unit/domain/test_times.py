from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.domain.times import parse_iso, parse_time, stamp, wire, wire_seconds
from memservice.domain.values import shown


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-05-01", "2024-05-01T00:00:00Z"),
        ("2024-05-01 10:00", "2024-05-01T10:00:00Z"),
        ("2024-05-01 10:00:00.5", "2024-05-01T10:00:00.500000Z"),
        ("2024-05-01T10:00:00,25", "2024-05-01T10:00:00.250000Z"),
        ("2024-05-01T10:00:00.123456789Z", "2024-05-01T10:00:00.123456Z"),
        ("2024-05-01t10:00:00z", "2024-05-01T10:00:00Z"),
        ("2024-05-01T10:00:00+02:00", "2024-05-01T08:00:00Z"),
        ("2024-05-01T10:00:00 -0530", "2024-05-01T15:30:00Z"),
        ("2024-05-01T10:00:00+02", "2024-05-01T08:00:00Z"),
        ("0001-01-01", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
        (0, "1970-01-01T00:00:00Z"),
        (1714557600, "2024-05-01T10:00:00Z"),
        (1714557600.25, "2024-05-01T10:00:00.250000Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (datetime.fromisoformat("2024-05-01"), "2024-05-01T00:00:00Z"),
        (datetime(2024, 5, 1, tzinfo=timezone(timedelta(hours=1))), "2024-04-30T23:00:00Z"),
    ],
)
def test_supported_formats_are_parsed(value: object, expected: str) -> None:
    parsed = parse_time(value)
    assert parsed.tzinfo is UTC
    assert wire(parsed) == expected


@pytest.mark.parametrize(
    "value",
    [
        "",
        "yesterday",
        "20240501",
        "2024-W18-3",
        "2024-5-1",
        "2024-02-30",
        "2024-05-01T25:00",
        "2024-05-01T10",
        "2024-05-01x10:00",
        " 2024-05-01",
        "2024-05-01\n",
        "２024-05-01",
        "0000-01-01",
        "10000-01-01",
        "2024-05-01T10:00:00+25:00",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "1714557600",
        1714557600000,
        -1e12,
        1e300,
        10**400,
        float("nan"),
        float("inf"),
        True,
        None,
        [],
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    ],
    ids=shown,
)
def test_invalid_times_are_refused_with_a_short_error(value: object) -> None:
    with pytest.raises(ValueError, match=r"Invalid datetime value|Time out of range") as caught:
        parse_time(value)
    assert len(str(caught.value)) < 200


@given(st.datetimes(timezones=st.just(UTC)))
def test_formatted_times_are_parsed_again(time: datetime) -> None:
    assert parse_iso(wire(time)) == time
    assert parse_iso(wire_seconds(time)) == parse_iso(stamp(time)) == time.replace(microsecond=0)


@pytest.mark.slow
@given(
    st.one_of(
        st.text(max_size=30),
        st.floats(),
        st.integers(),
        st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.{0,20}"),
    )
)
def test_anything_else_is_a_value_error(given_value: object) -> None:
    try:
        parsed = parse_time(given_value)
    except ValueError as error:
        words = str(error)
    else:
        words = wire(parsed)
    assert words.encode()


def test_times_are_formatted_in_three_forms() -> None:
    time = datetime(2024, 5, 1, 12, 30, 5, 7, tzinfo=timezone(timedelta(hours=2)))
    assert wire(time) == "2024-05-01T10:30:05.000007Z"
    assert wire(time.replace(microsecond=0)) == "2024-05-01T10:30:05Z"
    assert wire_seconds(time) == "2024-05-01T10:30:05Z"
    assert stamp(time) == "2024-05-01 10:30:05"
    assert stamp(datetime(33, 1, 2, tzinfo=UTC)) == "0033-01-02 00:00:00"
