"""Rows and conditions that translations of filters get wrong."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from memservice.domain.filters.ast import (
    FALSE,
    TRUE,
    All,
    Any_,
    Compare,
    Condition,
    Contains,
    Equal,
    Holds,
    IsNull,
    KeyCompare,
    KeyEqual,
    KeyOneOf,
    KeySubstring,
    Not,
    OneOf,
    Ordering,
    Substring,
)
from memservice.domain.records import DELETED, EXPLICIT, INDUCTIVE, LIVE, Conclusion
from memservice.testing.storage.base import NOW, Dataset

TEXTS = (
    "",
    " ",
    "a",
    "A",
    "%",
    "_",
    "\\",
    "a%b_c\\d",
    "it's",
    'say "hi"',
    "'; DROP TABLE conclusions; --",
    "x' OR '1'='1",
    "${key} {0} :name ?1 %s %(a)s",
    "Zürich",
    "zu\u0308rich",
    "STRASSE straße",
    "ΟΔΥΣΣΕΥΣ οδυσσευς",
    "İstanbul ıstanbul",
    "中文字",
    "👩‍👩‍👧 family",
    "\U0010ffff",
    "line\nbreak\ttab",
    "\x01\x7f\u200b\u202e",
    "null",
    "true",
    "1",
    "01",
    "1.0",
    "1.50",
    "-2",
    "1e2",
    "100",
    " 7",
    "7 ",
    "0x10",
    "NaN",
    "Infinity",
    "١٢",
    "2024-05-17T12:30:15Z",
    "[1]",
    '{"a": 1}',
)

NUMBERS: tuple[int | float, ...] = (
    0, 1, -1, -2, 2, 7, 10, 100, 0.0, 1.0, 0.1, 1.5, -2.5, 100.0, 1e-7, 123456.789, 2**53,
    2**53 + 1, 2**63 - 1, -(2**63),
)  # fmt: skip

VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [None],
    [1],
    ["1"],
    [1, "a", None, True],
    ["Zürich", "a%b_c\\d"],
    [[1, 2], [3]],
    [{"a": 1, "b": [1, 2]}, {"c": "x"}],
    {"a": 1},
    {"a": None},
    {"a": {"b": {"c": [1, {"d": "e"}]}}},
    {"key": "a", "other": 1.0},
)

KEYS = (
    "key",
    "Key",
    "a.b",
    "",
    '"',
    "'",
    "$",
    "[0]",
    '$."key"',
    "%",
    "\\",
    "ключ",
    "'; DROP TABLE conclusions; --",
    "x' OR '1'='1",
)

TIMES = (
    NOW,
    NOW + timedelta(microseconds=1),
    NOW - timedelta(days=20000),
    NOW + timedelta(seconds=1),
)

ORDERINGS: tuple[Ordering, ...] = ("gt", "gte", "lt", "lte")


def rows(w: Dataset) -> list[Conclusion]:
    """Conclusions to be stored: each text, number and other value once at the key `key`, and each
    key once."""
    conclusions: list[Conclusion] = []

    def add(internal: dict[str, Any], text: str = "plain", **values: Any) -> None:
        n = len(conclusions)
        defaults: dict[str, Any] = {
            "content": text,
            "internal": internal,
            "fingerprint": f"{n % 7}",
            "level": EXPLICIT if n % 3 else INDUCTIVE,
            "state": LIVE if n % 4 else DELETED,
            "deleted_at": None if n % 4 else TIMES[n % len(TIMES)],
            "session_key": w.session.key if n % 2 else None,
            "session": text if n % 2 else None,
            "times_derived": n % 5,
            "source_ids": (None, [], [w.uid(n % 6)], [w.uid(1), w.uid(n % 6), text])[n % 4],
            "said_at": TIMES[n % len(TIMES)],
        }
        conclusions.append(w.conclusion(n, **(defaults | values)))

    for text in TEXTS:
        add({"key": text}, text)
    for value in (*NUMBERS, *VALUES):
        add({"key": value})
    for key in KEYS:
        add({key: "here", "other": 1})
    add({})
    return conclusions


def leaves(w: Dataset) -> Iterator[Condition]:
    """Every kind of leaf, with every tricky operand."""
    for text in TEXTS:
        yield Equal("content", text)
        yield Equal("session", text)
        yield OneOf("session", (text, "plain"))
        yield Substring("content", text)
        yield Substring("session", text)
        yield Holds("source_ids", text)
        yield KeyEqual("internal", "key", text)
        yield KeyOneOf("internal", "key", (text, "a"))
        yield KeySubstring("internal", "key", text)
        yield Contains("internal", {"key": text})
        yield Contains("internal", {"key": [text]})
        for op in ORDERINGS:
            yield Compare("session", op, text)
            yield KeyCompare("internal", "key", op, text)
        yield KeyCompare("internal", "key", "eq", text)
        yield KeyCompare("internal", "key", "ne", text)
    for needle in (
        "ZÜRICH",
        "straße",
        "STRASSE",
        "ΣΕΥΣ",
        "σευς",
        "İ",
        "i",
        "ı",
        "BREAK\tT",
        "DROP table",
    ):
        yield Substring("content", needle)
        yield KeySubstring("internal", "key", needle)
    for number in NUMBERS:
        yield Contains("internal", {"key": number})
        yield Contains("internal", {"key": [number]})
        yield KeyCompare("internal", "key", "eq", number)
        yield KeyCompare("internal", "key", "ne", number)
        for op in ORDERINGS:
            yield KeyCompare("internal", "key", op, number)
    for value in VALUES:
        yield Contains("internal", {"key": value})
        yield Contains("internal", {"key": [value]})
    for key in KEYS:
        yield KeyEqual("internal", key, "here")
        yield KeySubstring("internal", key, "HER")
        yield KeyOneOf("internal", key, ("here",))
        yield KeyCompare("internal", key, "gte", "h")
        yield Contains("internal", {key: "here"})
    for moment in TIMES:
        yield Equal("said_at", moment)
        yield OneOf("deleted_at", (moment,))
        for op in ORDERINGS:
            yield Compare("said_at", op, moment)
            yield Compare("deleted_at", op, moment)
    for number in (-1, 0, 3, 2.5, 2**63 - 1):
        yield Equal("times_derived", number)
        yield OneOf("times_derived", (number, 1))
        for op in ORDERINGS:
            yield Compare("times_derived", op, number)
    for field in ("session", "session_key", "deleted_at", "source_ids", "content", "superseded_by"):
        yield IsNull(field)
    for field in ("session", "session_key", "deleted_at", "times_derived", "key"):
        yield OneOf(field, ())
    yield Equal("session_key", w.session.key)
    yield OneOf("session_key", (w.session.key, 0))
    for item in (w.uid(1), w.uid(3), w.uid(1).upper(), w.uid(1)[:-1], "nothing"):
        yield Holds("source_ids", item)
        yield Contains("source_ids", [item])
    yield Contains("source_ids", [])
    yield Contains("internal", {})
    yield Contains("internal", {"key": {"a": {"b": {"c": [{"d": "e"}]}}}})
    yield Contains("internal", {"key": "here", "other": 1})
    yield KeyOneOf("internal", "key", ())


def compounds(w: Dataset) -> Iterator[Condition]:
    """Every kind of branch, including empty ones."""
    null, here, text = (
        IsNull("session"),
        Equal("session_key", w.session.key),
        Equal("content", "plain"),
    )
    yield from (
        TRUE,
        FALSE,
        Not(TRUE),
        Not(FALSE),
        All((FALSE,)),
        Any_((TRUE,)),
        All((TRUE, text)),
        Any_((FALSE, text)),
    )
    yield from (
        Not(null),
        Not(here),
        Not(text),
        Not(Not(here)),
        Not(All((here, text))),
        Not(Any_((here, text))),
    )
    yield from (
        All((here, text, Not(null))),
        Any_((null, text)),
        All((Any_((null, text)), Not(Any_((here, text))))),
    )
    yield Not(KeyCompare("internal", "key", "ne", "a"))
    yield Not(OneOf("session", ()))
    yield Not(Any_((null, KeyEqual("internal", "key", "a"))))
    deep: Condition = text
    for n in range(20):
        deep = Not(All((deep, TRUE))) if n % 2 else Any_((deep, FALSE))
    yield deep
