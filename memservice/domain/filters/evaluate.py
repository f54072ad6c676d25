"""The reference evaluator: it defines what each node of a filter means. A storage whose translation
differs from it is wrong."""

from __future__ import annotations

from datetime import datetime
from typing import Any, assert_never

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
    Scalar,
    Substring,
)
from memservice.domain.filters.jsontext import contains, fold, order, value_number, value_text

_ORDERED = frozenset({bool, int, float, str, datetime})


def matches(row: Any, node: Condition) -> bool:
    """Whether the record `row` satisfies `node`. Values of different types (a bool is not a number)
    are neither equal nor ordered."""
    # Conjunctions of equalities first: nearly all conditions are, and a storage may ask this of
    # each of its rows.
    if type(node) is All:
        for part in node.parts:
            if not (_equals(row, part) if type(part) is Equal else matches(row, part)):
                return False
        return True
    match node:
        case All(parts):
            return all(matches(row, part) for part in parts)
        case Equal():
            return _equals(row, node)
        case OneOf(field, values):
            return _is_one_of(getattr(row, field), values)
        case Any_(parts):
            return any(matches(row, part) for part in parts)
        case Not(part):
            return not matches(row, part)
        case Compare(field, op, value):
            return _holds(_order(getattr(row, field), value), op)
        case IsNull(field):
            return getattr(row, field) is None
        case Substring(field, needle):
            return _within(getattr(row, field), fold(needle))
        case Holds(field, item):
            elements = getattr(row, field)
            return isinstance(elements, list) and item in elements
        case Contains(field, value):
            return contains(getattr(row, field), value)
        case KeyEqual(field, key, text):
            return value_text(_at(row, field, key)) == text
        case KeyCompare():
            return _key_compare(_at(row, node.field, node.key), node)
        case KeyOneOf(field, key, texts):
            return value_text(_at(row, field, key)) in texts
        case KeySubstring(field, key, needle):
            row_value, folded = _at(row, field, key), fold(needle)
            return any(
                _within(value_text(item), folded)
                for item in (row_value if isinstance(row_value, list) else [row_value])
            )
        case _:
            assert_never(node)


def _at(row: Any, field: str, key: str) -> Any:
    """The value at a first-level key of a JSON column; None if there is none."""
    row_value = getattr(row, field)
    return row_value.get(key) if isinstance(row_value, dict) else None


def _key_compare(row_value: Any, node: KeyCompare) -> bool:
    if row_value is None:
        return False
    if isinstance(node.operand, str):
        text = value_text(row_value)
        if text is None:
            return node.op == "ne"
        return _holds((text > node.operand) - (text < node.operand), node.op)
    number = value_number(row_value)
    return number is not None and _holds(order(number, node.operand), node.op)


def _equals(row: Any, node: Equal) -> bool:
    row_value, value = getattr(row, node.field), node.value
    if type(row_value) is type(value) and type(value) in _ORDERED:
        return bool(row_value == value)
    return _order(row_value, value) == 0


def _is_one_of(row_value: Any, values: tuple[Scalar, ...]) -> bool:
    if isinstance(row_value, str):
        return row_value in values
    kind = type(row_value) if type(row_value) in _ORDERED else None
    if kind is not None and row_value not in values:  # many keys, nearly always
        return False
    for value in values:
        if row_value == value if type(value) is kind else _order(row_value, value) == 0:
            return True
    return False


def _order(row_value: Any, value: Any) -> int | None:
    """-1, 0 or 1; None if the two cannot be compared (null, or different types)."""
    if type(row_value) is type(value) and type(value) in _ORDERED:  # nearly always
        comparable = True
    elif isinstance(row_value, bool) or isinstance(value, bool):
        comparable = isinstance(row_value, bool) and isinstance(value, bool)
    elif isinstance(row_value, int | float):
        return order(row_value, value) if isinstance(value, int | float) else None
    else:
        comparable = any(
            isinstance(row_value, kind) and isinstance(value, kind) for kind in (str, datetime)
        )
    return (row_value > value) - (row_value < value) if comparable else None


def _holds(sign: int | None, op: Ordering | str) -> bool:
    """Whether an outcome of `_order` satisfies `op`."""
    if sign is None:
        return False
    match op:
        case "gt":
            return sign > 0
        case "gte":
            return sign >= 0
        case "lt":
            return sign < 0
        case "lte":
            return sign <= 0
        case "eq":
            return sign == 0
        case "ne":
            return sign != 0
        case _:
            raise ValueError(f"unknown operator {op!r}")


def _within(text: object, folded: str) -> bool:
    return isinstance(text, str) and folded in fold(text)
