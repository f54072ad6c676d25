"""Rows that together contain every unusual value, and probes: conditions that match some of them.

Store the rows once, then compare any number of conditions with `filters.matches`. Rows and probes
are always the same. `fixed` sets fields of all rows, such as the foreign keys. This module needs no
library.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import cycle
from typing import Any, Literal

from memservice.domain.filters.ast import (
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
from memservice.domain.filters.jsontext import value_text
from memservice.domain.records import ACTIVE, ARCHIVED, LEVELS, Conclusion, Message, Session

NAMES = ("alice", "bob", "Bob", "s-1", "s_1")
KEYS = (
    "k",
    "K",
    "tag",
    "a.b",
    'a"b',
    "a'b",
    "a\\b",
    "",
    "$",
    "[0]",
    "1",
    "é",
    "ключ",
    "in",
    "AND",
    "*",
)
"""First-level keys of metadata, some of which need quoting in paths of JSON."""
TIMES = tuple(
    datetime.fromisoformat(text)
    for text in (
        "0001-01-01T00:00:00+00:00",
        "1969-12-31T23:59:59.999999+00:00",
        "2024-05-01T00:00:00+00:00",
        "2024-05-01T00:00:00.000001+00:00",
        "2024-05-01T10:00:00+00:00",
        "9999-12-31T23:59:59.999999+00:00",
    )
)
INTEGERS = (0, 1, -1, 2, 10, 2**53, 2**53 + 1, -(2**63), 2**63 - 1)
FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    1.5,
    10.0,
    1e16,
    1e-7,
    2.0**53,
    2.0**60,
    1e22,
    1.7976931348623157e308,
    5e-324,
)
NEARLY_NUMBERS = (
    "1",
    "1.0",
    "01",
    "1e0",
    "-0",
    "0.1",
    "10",
    "1e999",
    "1e-999",
    "+1",
    "1.",
    ".1",
    "NaN",
    "Infinity",
    " 1",
    "1_0",
    "１",
    "9" * 41,
)
"""Texts of which some are numbers (`jsontext.NUMERIC`). None may break a comparison with a
number."""
WORDS = (
    "",
    "a",
    "A",
    "b",
    "é",
    "É",
    "ß",
    "Σ",
    "σ",
    "ς",
    "Σας",
    "ΟΔΟΣ",
    "我",
    "😀",
    "true",
    "false",
    "null",
    "%",
    "_",
    "*",
    "\\",
    "'",
    '"',
    "a b",
    "2024-05-01",
    "\n",
)
NESTED: tuple[Any, ...] = (
    {},
    [],
    {"k": 1},
    {"k": 1.0, "a.b": None},
    {"k": {"k": [1, 2]}},
    {"gt": 1},
    [1],
    [1.0, "1", True],
    [None],
    [[1, 2], [3]],
    ["a", "É"],
    [{"k": 1}, {"k": 2}],
)
VALUES: tuple[Any, ...] = (None, True, False, *INTEGERS, *FLOATS, *NEARLY_NUMBERS, *WORDS, *NESTED)
SOURCES: tuple[list[str] | None, ...] = (
    None,
    [],
    ["src-a"],
    ["src-a", "src-b"],
    ["SRC-A"],
    ["src-ab"],
)


def bags() -> Iterator[dict[str, Any]]:
    """Metadata: every value at key `k`, every key, several keys, none."""
    for value in VALUES:
        yield {"k": value}
    for key in KEYS:
        yield {key: 1}
    for value in NESTED:
        yield {"k": "a", "a.b": value, "é": 1}
    yield {}


def messages(**fixed: Any) -> list[Message]:
    """Messages of one session, `seq` dense from 1."""
    rows: list[Message] = []
    through = 0
    words, authors, sent = cycle(WORDS), cycle(NAMES), cycle(TIMES)
    for seq, metadata in enumerate(bags(), start=1):
        tokens = seq % 7
        through += tokens
        author = next(authors)
        row: dict[str, Any] = {
            "uid": f"message-{seq:013d}",
            "workspace_key": 1,
            "session_key": 1,
            "author_key": 1,
            "session": "s-1" if seq % 3 else "s_1",
            "author": author,
            "seq": seq,
            "content": next(words),
            "metadata": metadata,
            "tokens": tokens,
            "tokens_through": through,
            "created_at": next(sent),
        }
        rows.append(Message(**(row | fixed)))
    return rows


def sessions(**fixed: Any) -> list[Session]:
    """Sessions of one workspace: the names of `NAMES`, and more."""
    rows: list[Session] = []
    created = cycle(TIMES)
    for index, metadata in enumerate(bags()):
        row: dict[str, Any] = {
            "uid": f"session-{index:013d}",
            "workspace_key": 1,
            "slug": NAMES[index] if index < len(NAMES) else f"session-{index}",
            "state": ACTIVE if index % 2 else ARCHIVED,
            "metadata": metadata,
            "created_at": next(created),
        }
        rows.append(Session(**(row | fixed)))
    return rows


def conclusions(**fixed: Any) -> list[Conclusion]:
    """Conclusions of one collection, some without session, sources or time of deletion."""
    rows: list[Conclusion] = []
    words, peers, created, sources, levels = (
        cycle(WORDS),
        cycle(NAMES),
        cycle(TIMES),
        cycle(SOURCES),
        cycle(LEVELS),
    )
    for index, metadata in enumerate(bags()):
        peer_id, time = next(peers), next(created)
        row: dict[str, Any] = {
            "uid": f"conclusion-{index:010d}",
            "workspace_key": 1,
            "collection_key": 1,
            "observer_key": 1,
            "observed_key": 1,
            "observer": peer_id,
            "observed": "alice" if index % 4 else peer_id,
            "session": None if index % 3 == 0 else peer_id,
            "content": next(words),
            "fingerprint": f"{index}",
            "level": next(levels),
            "deleted_at": time if index % 11 == 0 else None,
            "times_derived": 1 + index % 3,
            "source_ids": next(sources),
            "internal": metadata,
            "said_at": time,
            "created_at": time,
        }
        rows.append(Conclusion(**(row | fixed)))
    return rows


def probes(record: type[Message] | type[Session] | type[Conclusion]) -> Iterator[Condition]:
    """Every kind of condition with every value of the corpus; several hundred."""
    if record is Message:
        yield from _text_probes("content", WORDS)
        yield from _text_probes("author", NAMES)
        yield from _ordered_probes("tokens", (-1, 0, 3, 3.0, 3.5, 6, 1e300, -(2**63), 2**63 - 1))
        yield from _metadata_probes("metadata")
    elif record is Session:
        yield from _text_probes("slug", NAMES)
        yield from _text_probes("state", (ACTIVE, ARCHIVED))
        yield from _metadata_probes("metadata")
    else:
        yield from _text_probes("content", WORDS)
        yield from _text_probes("session", NAMES)
        yield from _ordered_probes("times_derived", (1, 2, 2.5))
        yield from _ordered_probes("deleted_at", TIMES)
        yield from (
            Holds("source_ids", item)
            for item in ("src-a", "src-b", "SRC-A", "src", "src-", "%", "")
        )
        yield from (IsNull(field) for field in ("session", "source_ids", "deleted_at", "content"))
        yield from _metadata_probes("internal")
    yield from _ordered_probes("created_at", TIMES)
    yield from (All(), Any_(), Not(All()), Not(Any_()), All((All(), Not(Any_((Any_(), Any_()))))))


ORDERINGS: tuple[Ordering, ...] = ("gt", "gte", "lt", "lte")


def _ordered_probes(field: str, values: tuple[Any, ...]) -> Iterator[Condition]:
    for value in values:
        yield Equal(field, value)
        yield Not(Equal(field, value))
        for op in ORDERINGS:
            yield Compare(field, op, value)
            yield Not(Compare(field, op, value))
    yield from (
        OneOf(field, ()),
        OneOf(field, values),
        OneOf(field, values[:2]),
        Not(OneOf(field, values[:2])),
    )


def _text_probes(field: str, values: tuple[str, ...]) -> Iterator[Condition]:
    yield from _ordered_probes(field, values)
    for value in ("", *values, "LI", "o", "-"):
        yield Substring(field, value)
    yield Not(Substring(field, "b"))


def _metadata_probes(field: str) -> Iterator[Condition]:
    operators: tuple[Ordering | Literal["eq", "ne"], ...] = (*ORDERINGS, "eq", "ne")
    yield from (Contains(field, {}), IsNull(field))
    for value in VALUES:
        yield Contains(field, {"k": value})
        yield Contains(field, {"k": [value]})
        text = value_text(value)
        if text is None:
            continue
        yield from (
            KeyEqual(field, "k", text),
            KeyOneOf(field, "k", (text, "a")),
            KeySubstring(field, "k", text),
        )
        yield from (KeyCompare(field, "k", op, text) for op in operators)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield from (KeyCompare(field, "k", op, value) for op in operators)
    for key in KEYS:
        yield from (
            Contains(field, {key: 1.0}),
            KeyCompare(field, key, "eq", 1),
            KeyEqual(field, key, "1"),
            KeySubstring(field, key, "1"),
        )
    yield from (
        KeyOneOf(field, "k", ()),
        Not(KeyEqual(field, "k", "a")),
        Not(KeyCompare(field, "k", "ne", "a")),
    )
