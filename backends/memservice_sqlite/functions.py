"""SQL functions that SQLite does not have: lower case beyond ASCII, and conditions inside JSON.

Where `memservice_sqlite.json_conditions` cannot use SQLite's own functions, SQLite calls the
reference evaluator through these.
"""

from __future__ import annotations

import sqlite3
from threading import Lock
from typing import Any

from msgspec import Struct

from memservice.domain.filters.ast import (
    Contains,
    Holds,
    KeyCompare,
    KeyEqual,
    KeyOneOf,
    KeySubstring,
)
from memservice.domain.filters.evaluate import matches
from memservice.domain.filters.jsontext import fold
from memservice.domain.sizes import MAX_BODY
from memservice_sql.dialect import JsonLeaf
from memservice_sqlite.json_text import encode, read

MATCHES, FOLD = "memservice_matches", "memservice_fold"

_LEAVES: dict[str, type[JsonLeaf]] = {
    leaf.__name__: leaf for leaf in (Contains, Holds, KeyEqual, KeyCompare, KeyOneOf, KeySubstring)
}


class _Row(Struct, frozen=True):
    value: Any


def install(connection: sqlite3.Connection) -> None:
    connection.create_function(MATCHES, 2, _matches, deterministic=True)
    connection.create_function(FOLD, 1, _fold, deterministic=True)


def encode_leaf(leaf: JsonLeaf) -> str:
    """The leaf as an argument of `memservice_matches`."""
    _, *operands = (getattr(leaf, name) for name in leaf.__struct_fields__)
    return encode([type(leaf).__name__, *operands])


def _matches(json_text: str | None, leaf: str) -> bool:
    return matches(_Row(None if json_text is None else read(json_text)), _leaf(leaf))


class _Leaves:
    """Decoded arguments of `memservice_matches`. Bounded also in characters, since one filter can
    be as long as a request; all leaves of one fit, since every row is compared with them."""

    MAX_LEAVES = 1_024
    MAX_CHARACTERS = 4 * MAX_BODY

    def __init__(self) -> None:
        self._leaves: dict[str, JsonLeaf] = {}
        self._lock = Lock()
        self.characters = 0

    def __call__(self, encoded: str) -> JsonLeaf:
        leaf = self._leaves.get(encoded)
        if leaf is None:
            leaf = _decoded(encoded)
            with self._lock:
                is_full = self.characters + len(encoded) > self.MAX_CHARACTERS
                if is_full or len(self._leaves) >= self.MAX_LEAVES:
                    self._leaves, self.characters = {}, 0
                if encoded not in self._leaves:
                    self._leaves[encoded] = leaf
                    self.characters += len(encoded)
        return leaf


def _decoded(encoded: str) -> JsonLeaf:
    name, *operands = read(encoded)
    if name == KeyOneOf.__name__:
        operands[-1] = tuple(operands[-1])
    return _LEAVES[name]("value", *operands)


_leaf = _Leaves()


def _fold(text: str | None) -> str | None:
    return None if text is None else fold(text)
