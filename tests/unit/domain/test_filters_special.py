"""Generation 1's containment, and the allowlist of sessions for recall."""

from __future__ import annotations

from typing import Any

import pytest

from memservice.domain.errors import InvalidInput
from memservice.domain.filters import (
    TRUE,
    all_of,
    equals,
    parse_containment,
    recall_allowlist,
    texts_named,
    values_named,
)
from memservice.domain.filters.ast import Any_, Condition, Contains, Not


def refused(filters: Any, session_id: str | None = None) -> tuple[tuple[str | int, ...], str]:
    with pytest.raises(InvalidInput) as caught:
        recall_allowlist(filters, session_id)
    (problem,) = caught.value.problems
    return problem.loc, problem.message


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (None, None),
        ({}, None),
        ({"session_id": "a"}, ["a"]),
        ({"session_id": ["b", "a", "b"]}, ["b", "a"]),
        ({"session_id": {"in": ["a", "b"]}}, ["a", "b"]),
        ({"session_id": []}, []),
        ({"session_id": {"in": []}}, []),
    ],
)
def test_an_allowlist_is_parsed(filters: Any, expected: list[str] | None) -> None:
    assert recall_allowlist(filters, None) == expected


def test_a_session_beside_the_list_must_be_on_it() -> None:
    assert recall_allowlist({"session_id": ["a", "b"]}, "a") == ["a", "b"]
    assert recall_allowlist(None, "a") is None
    assert refused({"session_id": ["b"]}, "a")[0] == ("filters", "session_id")
    assert refused({"session_id": []}, "a")[0] == ("filters", "session_id")


@pytest.mark.parametrize(
    ("filters", "loc"),
    [
        ([], ()),
        ({"peer_id": "a"}, ("peer_id",)),
        ({"session_id": "a", "AND": []}, ("AND",)),
        ({"\ud800": 1}, ("\ufffd",)),
        ({"session_id": None}, ("session_id",)),
        ({"session_id": 5}, ("session_id",)),
        ({"session_id": {"ne": "a"}}, ("session_id",)),
        ({"session_id": {"in": ["a"], "ne": "b"}}, ("session_id",)),
        ({"session_id": {"in": "a"}}, ("session_id",)),
        ({"session_id": "*"}, ("session_id", 0)),
        ({"session_id": ["a", ""]}, ("session_id", 1)),
        ({"session_id": ["a\n"]}, ("session_id", 0)),
        ({"session_id": [5]}, ("session_id", 0)),
        ({"session_id": ["a"] * 1001}, ("session_id",)),
    ],
)
def test_invalid_allowlists_are_refused(filters: Any, loc: tuple[str | int, ...]) -> None:
    assert refused(filters)[0] == ("filters", *loc)


def test_containment_takes_every_key_literally() -> None:
    assert parse_containment(None) == TRUE
    assert parse_containment({}) == TRUE
    filters = {"AND": [1], "z": {"gte": 1}, "a": "*", "nul\0": "x\0"}
    assert parse_containment(filters) == Contains(
        "metadata", {"AND": [1], "z": {"gte": 1}, "a": "*", "nul": "x"}
    )


@pytest.mark.parametrize(
    ("value", "loc"),
    [
        ([], ()),
        ("x", ()),
        ({"a": [1, {"b": float("nan")}]}, ("a", 1, "b")),
        ({"a": 2**63}, ("a",)),
        ({"a": "\ud800"}, ("a",)),
    ],
)
def test_invalid_containment_filters_are_refused(value: Any, loc: tuple[str | int, ...]) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_containment(value)
    assert caught.value.problems[0].loc == ("filter", *loc)


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        (TRUE, None),
        (equals(author_key=3), {3}),
        (equals(author_key=(3, 4)), {3, 4}),
        (all_of(equals(author_key=(3, 4)), equals(author_key=(4, 5), key=1)), {4}),
        (all_of(equals(author_key=3), equals(author_key=4)), set()),
        (equals(session_key=3), None),
        (Not(equals(author_key=3)), None),
        (Any_((equals(author_key=3), equals(session_key=4))), None),
    ],
)
def test_the_only_values_of_a_field_are_named(condition: Condition, values: set[int]) -> None:
    assert values_named(condition, "author_key") == values


def test_only_texts_are_named_as_texts() -> None:
    assert texts_named(equals(author=("b", "a")), "author") == ("a", "b")
    assert texts_named(equals(author=3), "author") == ()
    assert texts_named(TRUE, "author") is None
