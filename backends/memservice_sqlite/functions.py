"""SQL functions for what SQLite cannot say itself: lower case beyond ASCII, and conditions inside JSON.

Conditions inside JSON are the reference evaluator itself, called by SQLite for each row that holds the right piece of text.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from memservice.domain.filters.ast import Contains, Holds, KeyCompare, KeyEqual, KeyOneOf, KeySubstring
from memservice.domain.filters.evaluate import matches
from memservice.domain.filters.jsontext import fold
from memservice_sql.dialect import JsonLeaf
from memservice_sqlite.json_text import encode, read

MATCHES, FOLD = "memservice_matches", "memservice_fold"

_LEAVES: dict[str, type[JsonLeaf]] = {leaf.__name__: leaf for leaf in (Contains, Holds, KeyEqual, KeyCompare, KeyOneOf, KeySubstring)}
_MAYBE_NOT_TEXT = re.compile(r"true|false|-?[0-9.]+")
"""Texts that a boolean or a number may have."""


@dataclass(frozen=True, slots=True)
class _Row:
    value: Any


def install(connection: sqlite3.Connection) -> None:
    connection.create_function(MATCHES, 2, _matches, deterministic=True)
    connection.create_function(FOLD, 1, _fold, deterministic=True)


def spelled(leaf: JsonLeaf) -> str:
    """A leaf as `memservice_matches` takes it."""
    _, *operands = (getattr(leaf, name) for name in leaf.__slots__)
    return encode([type(leaf).__name__, *operands])


def piece(leaf: JsonLeaf) -> str | None:
    """A text that the JSON of every row that matches must contain, the longest that is known; None if there is none."""
    match leaf:
        case Contains(_, wanted):
            return max(_pieces(wanted), key=len, default=None)
        case Holds(_, item):
            return encode(item)
        case KeyEqual(_, key, text) if _MAYBE_NOT_TEXT.fullmatch(text) is None:
            return f"{encode(key)}:{encode(text)}"
        case _:
            return f"{encode(leaf.key)}:"


def _pieces(wanted: Any) -> Iterator[str]:
    if isinstance(wanted, dict):
        for key, inner in wanted.items():
            exact = inner is None or isinstance(inner, bool | str)
            yield f"{encode(key)}:{encode(inner) if exact else ''}"
            yield from _pieces(inner)
    elif isinstance(wanted, list):
        for item in wanted:
            yield from _pieces(item)
    elif isinstance(wanted, str):
        yield encode(wanted)


def _matches(stored: str | None, leaf: str) -> bool:
    return matches(_Row(None if stored is None else read(stored)), _leaf(leaf))


@lru_cache(1_024)
def _leaf(spelling: str) -> JsonLeaf:
    name, *operands = read(spelling)
    if name == KeyOneOf.__name__:
        operands[-1] = tuple(operands[-1])
    return _LEAVES[name]("value", *operands)


def _fold(text: str | None) -> str | None:
    return None if text is None else fold(text)
