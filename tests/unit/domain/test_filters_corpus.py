"""The corpus is worth comparing storages on only if every plausible mistake in a translation shows
on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from memservice.domain.filters import evaluate, jsontext, matches
from memservice.domain.filters.ast import Condition
from memservice.domain.records import Conclusion, Message, Session
from memservice.testing import corpus

CASES: dict[Any, list[Any]] = {
    Message: corpus.messages(),
    Session: corpus.sessions(),
    Conclusion: corpus.conclusions(),
}
PROBES = list(corpus.probes(Message))


def answers(probes: list[Condition], rows: list[Any]) -> list[list[bool]]:
    return [[matches(row, probe) for row in rows] for probe in probes]


@cache
def right_answers() -> list[list[bool]]:
    return answers(PROBES, CASES[Message])


def loose_contains(stored: Any, expected: Any) -> bool:
    """Python's equality: true equals 1."""
    if isinstance(expected, dict):
        return isinstance(stored, dict) and all(
            key in stored and loose_contains(stored[key], inner) for key, inner in expected.items()
        )
    if isinstance(expected, list):
        return isinstance(stored, list) and all(
            any(loose_contains(item, inner) for item in stored) for inner in expected
        )
    return bool(stored == expected)


def equal_lists(stored: Any, expected: Any) -> bool:
    """Lists equal only as wholes."""
    if isinstance(expected, dict):
        return isinstance(stored, dict) and all(
            key in stored and equal_lists(stored[key], inner) for key, inner in expected.items()
        )
    return jsontext.contains(stored, expected) and (
        not isinstance(expected, list) or len(stored) == len(expected)
    )


def ascii_fold(text: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def like(text: object, needle: str) -> bool:
    """`%` and `_` taken for wildcards."""
    return isinstance(text, str) and (
        needle == "%"
        or (needle == "_" and text != "")
        or jsontext.fold(needle) in jsontext.fold(text)
    )


def no_numeric_strings(value: object) -> Any:
    return None if isinstance(value, str) else jsontext.value_number(value)


def spelled_as_python_does(value: object) -> Any:
    """Whatever `float` reads, so long as it is finite."""
    try:
        number: Any = float(value) if isinstance(value, str) else jsontext.value_number(value)
    except ValueError:
        return None
    return number if number is not None and abs(number) < float("inf") else None


def raw_floats(value: object) -> str | None:
    return json.dumps(value) if isinstance(value, float) else jsontext.value_text(value)


def nested_text(value: object) -> str | None:
    return json.dumps(value) if isinstance(value, dict | list) else jsontext.value_text(value)


def null_text(value: object) -> str | None:
    return "null" if value is None else jsontext.value_text(value)


def booleans_as_numbers(value: object) -> str | None:
    return str(int(value)) if isinstance(value, bool) else jsontext.value_text(value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("contains", loose_contains),
        ("contains", equal_lists),
        ("fold", ascii_fold),
        ("fold", str.lower),
        ("_within", like),
        ("value_number", no_numeric_strings),
        ("value_number", spelled_as_python_does),
        ("value_text", raw_floats),
        ("value_text", nested_text),
        ("value_text", null_text),
        ("value_text", booleans_as_numbers),
    ],
)
def test_a_wrong_rule_is_detected(
    monkeypatch: pytest.MonkeyPatch, rule: str, wrong: Callable[..., Any]
) -> None:
    expected = right_answers()
    monkeypatch.setattr(evaluate, rule, wrong)
    # Not `answers`: the first probe that differs is enough.
    assert any(
        [matches(row, probe) for row in CASES[Message]] != right
        for probe, right in zip(PROBES, expected, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("record", [Message, Session, Conclusion])
def test_probes_distinguish_rows(record: Any) -> None:
    rows_by_probe = answers(list(corpus.probes(record)), CASES[record])
    telling = [row for row in rows_by_probe if any(row) and not all(row)]
    assert len(telling) / len(rows_by_probe) > 0.8
    assert len({tuple(row) for row in rows_by_probe}) > 100


@pytest.mark.parametrize(
    ("make", "unique"),
    [(corpus.messages, "seq"), (corpus.sessions, "slug"), (corpus.conclusions, "uid")],
)
def test_rows_can_be_stored_together(make: Callable[..., list[Any]], unique: str) -> None:
    rows = make(workspace_key=9)
    assert {row.workspace_key for row in rows} == {9}
    for field in ("uid", unique):
        assert len({getattr(row, field) for row in rows}) == len(rows)
    assert all(len(row.uid) == 21 for row in rows)
