"""JSON is the same by orjson and by the standard library."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.domain import json_bytes
from memservice.domain.times import wire

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
_STORED = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
"""What a store accepts: integers have 64 bits."""
_TIMES = st.datetimes(timezones=st.just(UTC))


@pytest.mark.slow
@given(_VALUES)
def test_values_are_written_alike(value: Any) -> None:
    assert json.loads(json_bytes.encode(value)) == json.loads(json_bytes.encode_plainly(value))


@given(st.lists(_TIMES, max_size=3))
def test_times_are_written_as_in_every_answer(times: list[datetime]) -> None:
    expected = json.dumps([wire(time) for time in times], separators=(",", ":")).encode()
    assert json_bytes.encode(times) == json_bytes.encode_plainly(times) == expected


@pytest.mark.slow
@given(_STORED)
def test_stored_json_is_read_alike(value: Any) -> None:
    text = json_bytes.encode_plainly(value).decode()
    read = json_bytes.decode_plainly(text)
    assert json_bytes.decode(text.encode()) == json_bytes.decode(text) == read


@given(_STORED)
def test_json_from_elsewhere_is_read_as_the_standard_library_reads_it(value: Any) -> None:
    text = json.dumps(value, indent=1)
    assert json_bytes.parse(text.encode()) == json_bytes.parse(text) == json.loads(text)


@pytest.mark.parametrize("text", ['["\\ud800"]', "[1e400]"])
def test_what_orjson_refuses_is_read_too(text: str) -> None:
    assert json_bytes.parse(text) == json_bytes.parse_plainly(text) == json.loads(text)


@pytest.mark.parametrize("text", ["", "{", "[1] 2", "{'a': 1}"])
def test_what_is_not_json_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        json_bytes.parse(text)


def test_the_order_of_keys_and_the_kind_of_numbers_are_kept() -> None:
    text = '{"b":1.0,"a":1,"é":"\\n"}'
    value = json_bytes.decode(text)
    assert list(value) == ["b", "a", "é"]
    assert [type(value[key]) for key in "ba"] == [float, int]
    assert json_bytes.encode(value).decode() == text


def test_a_lone_surrogate_is_replaced() -> None:
    assert json_bytes.encode({"a": "x\ud800"}) == b'{"a":"x?"}'


@dataclass
class Point:
    x: int


@pytest.mark.parametrize("value", [Point(1), object(), {1}, b"x"])
def test_other_types_are_errors(value: object) -> None:
    with pytest.raises(TypeError, match="is not a type of JSON"):
        json_bytes.encode([value])


def test_the_standard_library_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "orjson", None)
    try:
        without = importlib.reload(json_bytes)
        assert without.encode is without.encode_plainly
        value = {"at": datetime(2024, 1, 2, tzinfo=timezone(timedelta(hours=1))), "n": 2**70}
        assert without.encode(value) == b'{"at":"2024-01-01T23:00:00Z","n":1180591620717411303424}'
        assert without.decode(b'{"a":[1]}') == {"a": [1]}
    finally:
        monkeypatch.undo()
        importlib.reload(json_bytes)
