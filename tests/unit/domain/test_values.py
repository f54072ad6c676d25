from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from memservice.domain import values
from memservice.domain.errors import InvalidInput, Problem
from memservice.domain.values import (
    SCOPE_NAME_MAX,
    check_json,
    check_metadata,
    loads,
    name_problem,
    shown,
    strip_nul,
)
from memservice.testing import strategies as s
from support.examples import examples


def refused(raw: bytes) -> Problem:
    with pytest.raises(InvalidInput) as caught:
        loads(raw)
    (problem,) = caught.value.problems
    assert problem.message.encode()
    return problem


@pytest.mark.parametrize(
    ("raw", "loc"),
    [
        (b"", ("body", 0)),
        (b"{", ("body", 1)),
        (b"{} x", ("body", 3)),
        (b"{'a': 1}", ("body", 1)),
        (b'"\x00"', ("body", 1)),
        (b"\xff", ("body", 0)),
        (b'"\xed\xa0\x80"', ("body", 1)),
        (b"\xef\xbb\xbf{}", ("body", 0)),
        ('{"a": 1}'.encode("utf-16"), ("body", 0)),
    ],
)
def test_invalid_json_is_refused_with_its_offset(raw: bytes, loc: tuple[str | int, ...]) -> None:
    problem = refused(raw)
    assert (problem.kind, problem.loc) == ("json_invalid", loc)
    assert problem.message.startswith("JSON decode error: ")


@pytest.mark.parametrize(
    "raw",
    [
        b"NaN",
        b"[Infinity]",
        b'{"a": -Infinity}',
        b"1e999",
        b"[-1e400]",
        b"9223372036854775808",
        b"-9223372036854775809",
        b"9" * 5_000,
    ],
    ids=lambda raw: shown(raw, 30),
)
def test_numbers_out_of_range_are_refused(raw: bytes) -> None:
    problem = refused(raw)
    assert (problem.kind, problem.loc) == ("value_error", ("body",))
    assert problem.message.startswith("Number out of range: ")
    assert len(problem.message) < 250


@pytest.mark.parametrize(
    "raw",
    [
        b"9223372036854775807",
        b"-9223372036854775808",
        b"1.7976931348623157e308",
        b"1e-999",
        b'"1e999 NaN"',
    ],
)
def test_numbers_in_range_are_accepted(raw: bytes) -> None:
    assert loads(raw) == json.loads(raw)


@pytest.mark.slow
@pytest.mark.parametrize("value", [b"[]", b"{}", b'"ab"', b"1", b'{"a":1}'])
def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch, value: bytes) -> None:
    """They are refused before any is made. The message names the limit of the product."""
    monkeypatch.setattr(values, "_DECODER", None)
    monkeypatch.setattr(values, "JSON_VALUES_MAX", 10_000)
    problem = refused(b"[" + b",".join([value] * 10_001) + b"]")
    assert (problem.loc, problem.message) == (
        ("body",),
        "JSON may hold at most 1000000 values: send it in parts",
    )


def test_marks_inside_texts_do_not_count_as_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what stands in texts, however they are escaped."""
    monkeypatch.setattr(values, "JSON_VALUES_MAX", 6)
    texts = ["[[,,{{,,[[", '",",",\\",",', "\\", ",,,,\n,,,"]
    assert loads(json.dumps(texts).encode()) == texts
    assert refused(json.dumps([*texts, 1, 2, 3]).encode()).message.startswith("JSON may hold")


def test_lone_surrogates_are_refused() -> None:
    assert loads(b'["\\ud83d\\ude00"]') == ["😀"]
    assert loads(b'["\\\\ud800"]') == ["\\ud800"]
    assert refused(b'{"a": ["x", "\\ud83d"]}').loc == ("body", "a", 1)
    assert refused(b'{"\\uDE00": 1}').loc == ("body", "\ufffd")


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_beyond_100_levels_is_refused(opening: bytes, closing: bytes) -> None:
    loads(opening * 99 + b"[]" + closing * 99)
    for depth in (101, 2_000, 200_000):
        assert (
            refused(opening * (depth - 1) + b"[]" + closing * (depth - 1)).message
            == "JSON may be nested at most 100 levels deep"
        )
    wide = b"[" + b"[[]]," * 1_000 + b"1]"
    assert len(loads(wide)) == 1_001


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(s.any_json)
def test_loads_accepts_what_check_json_accepts(value: Any) -> None:
    raw = json.dumps(value).encode()
    try:
        check_json(value, ("body",))
    except InvalidInput:
        refused(raw)
    else:
        assert loads(raw) == value


@pytest.mark.parametrize(
    ("value", "loc"),
    [
        (float("nan"), ()),
        ({"a": [1, float("inf")]}, ("a", 1)),
        ({"a": {"b": 2**63}}, ("a", "b")),
        (["\udc00"], (0,)),
        ({"a": {"\ud800": 1}}, ("a", "\ufffd")),
        ({1: 2}, ("1",)),
        ([object()], (0,)),
        ([(1,)], (0,)),
    ],
)
def test_check_json_names_the_location(value: Any, loc: tuple[str | int, ...]) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_json(value, ("body", "x"))
    assert caught.value.problems[0].loc == ("body", "x", *loc)


@pytest.mark.slow
def test_check_json_survives_depth() -> None:
    value: Any = []
    for _ in range(99):
        value = [value]
    check_json(value, ())
    deepest: Any = 5
    for _ in range(100):
        deepest = [deepest]
    check_json(deepest, ())
    with pytest.raises(InvalidInput, match="nested at most 100"):
        check_json([deepest], ())
    for _ in range(100_000):
        value = {"a": value}
    with pytest.raises(InvalidInput, match="nested at most 100"):
        check_json(value, ("body",))


def test_strip_nul_removes_nul_from_keys_and_values() -> None:
    given_value = {"a\0": ["x\0y", {"b": "\0"}, 1, None, True], "c": "d"}
    assert strip_nul(given_value) == {"a": ["xy", {"b": ""}, 1, None, True], "c": "d"}
    assert strip_nul("a\0\0b") == "ab"
    assert strip_nul(5) == 5


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def test_metadata_beyond_the_limits_is_refused() -> None:
    check_metadata({}, ())
    check_metadata(
        {str(number): {str(other): 1 for other in range(80)} for number in range(100)}, ()
    )
    check_metadata(nested(5), ())
    check_metadata({"a": [nested(20)]}, ())
    check_metadata({"a": "ü" * 32_764}, ())
    for value, words in (
        ({"a": "ü" * 32_765}, "at most 65536 bytes as JSON"),
        ({str(number): 1 for number in range(101)}, "at most 100 keys, got 101"),
        (nested(6), "at most 5 levels"),
        (nested(50_000), "at most 5 levels"),
        ([], "must be an object"),
        (None, "must be an object"),
    ):
        with pytest.raises(InvalidInput, match=words) as caught:
            check_metadata(value, ("body", "metadata"))
        assert caught.value.problems[0].loc == ("body", "metadata")


@pytest.mark.parametrize("name", ["a", "A-z_0", "-", "x" * 512])
def test_valid_names(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize(
    "name", ["", "a b", "a\n", "é", "a/b", "a\0", "\ud800", "scope.x", "١", "x" * 513]
)
def test_invalid_names_have_a_problem(name: str) -> None:
    problem = name_problem(name)
    assert problem is not None
    assert problem.encode()


def test_names_of_scopes_are_shorter() -> None:
    assert name_problem("x" * 506, SCOPE_NAME_MAX) is None
    assert name_problem("x" * 507, SCOPE_NAME_MAX) == "String should have at most 506 characters"


def test_values_in_errors_are_short_and_encodable() -> None:
    assert shown("x" * 200) == "x" * 99 + "…"
    assert shown("\ud800") == "\ufffd"
    assert shown(10**5000) == "<integer>"
    assert shown({"a": 1}) == "{…}"
    assert shown(1.5) == "1.5"
