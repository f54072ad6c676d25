"""Common parts of the contract suites of text and vector indexes: an engine under test, with or
without a storage."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar

from memservice.spi.index_filter import IndexFilter
from memservice.spi.storage import Transaction

I = TypeVar("I")  # noqa: E741 - an index
T = TypeVar("T")

NOON = datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Transactions(Protocol):
    """The part of a `Storage` that an index needs."""

    def write(self, fn: Callable[[Transaction], T]) -> T: ...

    def read(self) -> AbstractContextManager[Transaction]: ...


class Engine(Generic[I]):
    """An opened index. With `storage`, the index is part of it and gets its transactions
    (capability `TRANSACTIONAL`); without, it gets None."""

    def __init__(self, index: I, storage: Transactions | None = None) -> None:
        self.index = index
        self.storage = storage

    def write(self, fn: Callable[[Transaction | None], T]) -> T:
        return fn(None) if self.storage is None else self.storage.write(fn)

    def read(self, fn: Callable[[Transaction | None], T]) -> T:
        if self.storage is None:
            return fn(None)
        with self.storage.read() as tx:
            return fn(tx)


def only(condition: str, *values: Any) -> IndexFilter:
    """One any-of condition, by its name."""
    conditions: dict[str, Any] = {condition: values}
    return IndexFilter(**conditions)


class RolledBack(Exception):
    """Raised on purpose inside a write."""


HOSTILE = (
    "'",
    '"',
    '""',
    "a'b",
    'a"b',
    "';drop",
    "or",
    "and",
    "not",
    "near",
    "AND",
    "NEAR(",
    "*",
    "a*",
    "^a",
    "a:b",
    "-a",
    "+",
    "(a)",
    "{a}",
    "a|b",
    "a&b",
    "!a",
    "<->",
    "%",
    "_",
    "a_b",
    "a%",
    "\\",
    "$1",
    ":name",
    "?",
    "@",
    "#",
    "=",
    "a=1",
    "--",
    "/*",
    ";",
    ",",
    ".",
    "[a]",
    "~",
    "`",
    "null",
    "two words",
    "tab\there",
    "line\nbreak",
)
"""Terms that are syntax in some query language."""

MANY_TONGUES = (
    "žluťoučký",
    "straße",
    "ёж",
    "ελλάδα",
    "שלום",
    "مرحبا",
    "हिन्दी",
    "ภาษาไทย",
    "தமிழ்",
    "日本",
    "本語",
    "한국어",
    "გამარჯობა",
    "ꭰꭱ",
    "𝒳",
    "👩‍👩‍👧",
    "🇨🇿",
    "e\u0301",
    "é",
    "no\u00a0break",
    "ı",
    "i",
    "İ",
)
"""Terms of many scripts, some of which differ by very little."""
