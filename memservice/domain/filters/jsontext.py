"""Rules of filters for values inside JSON columns: their text, their number, containment.

SQL can express each rule exactly. For a JSON value `v` of PostgreSQL (`jsonb`):
* text: `v #>> '{}'` for strings and booleans, `trim_scale((v #>> '{}')::numeric)::text` for
  numbers, else NULL;
* number: of a number, or of a string that matches `NUMERIC` (`~ '^(…)$'`), its text cast to
  `numeric`;
* containment: `@>`.
A database without decimals or Unicode case (SQLite) registers these functions for the cases that
its own functions do not cover.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from decimal import Decimal
from typing import Any

NUMERIC = r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?"
"""Texts that are numbers, by full match. The lengths are bounded, so that no database overflows."""

Number = int | float | Decimal

_NUMERIC = re.compile(NUMERIC)
_EXACT = 2**53


def fold(text: str) -> str:
    """`text` lower-cased character by character (with `str.lower` alone, sigma depends on its
    position in the word)."""
    return text.replace("Σ", "σ").lower()


def number_text(number: int | float) -> str:
    """Plain decimal text, no exponent, no needless zeros; a float stands for its shortest decimal
    form. Finite numbers only."""
    if isinstance(number, int):
        return str(number)
    if number.is_integer() and abs(number) < _EXACT:
        return str(int(number))
    return format(Decimal(repr(number)).normalize(), "f")


def value_text(value: object) -> str | None:
    """The text of a JSON value; None for null, objects and lists."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return number_text(value)
    return None


def value_number(value: object) -> Number | None:
    """The number that a JSON value is, or that its text spells; None for everything else."""
    if isinstance(value, str):
        return Decimal(value) if _NUMERIC.fullmatch(value) else None
    if isinstance(value, bool):
        return None
    return (
        value
        if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
        else None
    )


def order(a: Number, b: Number) -> int:
    """-1, 0 or 1 as `a` is less than, equal to or greater than `b`, by exact decimal value."""
    if type(a) is not type(b):
        a, b = _decimal(a), _decimal(b)
    return (a > b) - (a < b)


def _decimal(number: Number) -> Decimal:
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


def contains(row_value: Any, operand: Any) -> bool:
    """JSON containment, as PostgreSQL's `@>` defines it below the top level: `stored` contains
    every part of `operand`.

    Takes time in proportion to `stored`, and once more for each object or list that `operand` has
    inside lists (`limits` bounds these).
    """
    if isinstance(operand, dict):
        return isinstance(row_value, dict) and all(
            key in row_value and contains(row_value[key], inner) for key, inner in operand.items()
        )
    if isinstance(operand, list):
        return isinstance(row_value, list) and _lists(row_value, operand)
    if isinstance(operand, bool) or operand is None:
        return row_value is operand
    if isinstance(operand, str):
        return isinstance(row_value, str) and row_value == operand
    return (
        isinstance(row_value, int | float)
        and not isinstance(row_value, bool)
        and order(row_value, operand) == 0
    )


def _lists(row_items: list[Any], operand: list[Any]) -> bool:
    """Whether each item of `operand` is contained in an item of `stored`. Scalars are looked up in
    a set, not compared one by one."""
    missing = {_key(item) for item in operand if not isinstance(item, dict | list)}
    for item in row_items:
        if not missing:
            break
        if not isinstance(item, dict | list):
            missing.discard(_key(item))
    return not missing and all(
        any(contains(item, inner) for item in row_items)
        for inner in operand
        if isinstance(inner, dict | list)
    )


def _key(scalar: Any) -> Hashable:
    """A key that is equal for scalars that contain each other."""
    if isinstance(scalar, bool):
        return "bool", scalar
    return _decimal(scalar) if isinstance(scalar, float) else scalar
