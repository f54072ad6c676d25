"""Common to every kind of condition: the operators, errors and limits of a filter."""

from __future__ import annotations

from typing import Any, NoReturn

from memservice.domain.errors import InvalidInput
from memservice.domain.filters.ast import Ordering
from memservice.domain.filters.operands import type_name
from memservice.domain.values import Loc, shown

WILDCARD = "*"
ORDERINGS: dict[str, Ordering] = {"gt": "gt", "gte": "gte", "lt": "lt", "lte": "lte"}
OPERATORS = (*ORDERINGS, "ne", "in", "contains", "icontains")

DEPTH_MAX = 5
"""Logical operators inside each other."""

# Databases limit the terms of a statement (SQLite: 1,000 nested expressions, where each part of an
# AND chain counts) and its parameters.
CONDITIONS_MAX = 400
VALUES_MAX = 10_000
CONTAINED_MAX = 1_000
"""Values inside all operands of containment."""
CONTAINED_DEPTH_MAX = 32
CONTAINED_IN_LISTS_MAX = 32
"""Objects and lists inside lists of these operands: each one is compared with all stored ones."""


def refuse(loc: Loc, message: str) -> NoReturn:
    raise InvalidInput.at(*loc, message=message)


class Budget:
    """Counts what one filter uses of its limits; its methods raise InvalidInput above a limit."""

    def __init__(self) -> None:
        self._conditions = 0
        self._values = 0
        self._contained = 0
        self._in_lists = 0

    def condition(self, loc: Loc, count: int = 1) -> None:
        self._conditions += count
        if self._conditions > CONDITIONS_MAX:
            refuse(loc, f"Filter has more than {CONDITIONS_MAX} conditions")

    def values(self, loc: Loc, count: int) -> None:
        self._values += count
        if self._values > VALUES_MAX:
            refuse(loc, f"Filter lists more than {VALUES_MAX} values")

    def contained(self, loc: Loc, value: object) -> None:
        """Count the values inside `value`, an operand of containment."""
        level = [value]
        depth = 0
        while level:
            self._contained += len(level)
            if self._contained > CONTAINED_MAX:
                refuse(loc, f"Filter has more than {CONTAINED_MAX} values for metadata to contain")
            depth += 1
            if depth > CONTAINED_DEPTH_MAX:
                refuse(
                    loc,
                    (
                        "Values for metadata to contain may be nested at most "
                        f"{CONTAINED_DEPTH_MAX} levels deep"
                    ),
                )
            inner_items = (inner for item in level if isinstance(item, list) for inner in item)
            self._in_lists += sum(isinstance(inner, dict | list) for inner in inner_items)
            if self._in_lists > CONTAINED_IN_LISTS_MAX:
                refuse(
                    loc,
                    (
                        f"Filter has more than {CONTAINED_IN_LISTS_MAX} objects and lists "
                        "inside lists for metadata to contain"
                    ),
                )
            level = [
                inner for item in level if isinstance(item, dict | list) for inner in _inside(item)
            ]


def _inside(item: dict[str, Any] | list[Any]) -> list[Any]:
    return list(item.values()) if isinstance(item, dict) else item


def known_operators(value: dict[str, Any], name: str, loc: Loc) -> list[str]:
    """The operators of an operator object, in order. Raises InvalidInput for an object without an
    operator, or with other keys."""
    operators = [op for op in value if op in OPERATORS]
    if not operators:
        refuse(
            loc,
            (
                f"No comparison operator in the filter on '{shown(name)}'. Allowed operators: "
                f"{', '.join(sorted(OPERATORS))}"
            ),
        )
    if len(operators) < len(value):
        unknown = next(op for op in value if op not in OPERATORS)
        refuse(loc, f"Unsupported comparison operator: {shown(unknown)}")
    return operators


def as_list(value: Any, loc: Loc) -> list[Any]:
    if not isinstance(value, list):
        got = type_name(value)
        refuse(
            loc,
            (
                f"Invalid value for 'in' operator: {shown(value)}. Expected an iterable (list, "
                f"tuple, set), got {got}"
            ),
        )
    return value
