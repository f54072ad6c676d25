"""Types and equality of JSON values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")

Enums = dict[int, frozenset[Hashable]]
"""The values of `enum` lists, by the list's identity: a lookup replaces a comparison with each
value. For one root only."""


def has_type(value: object, kind: str) -> bool:
    """Whether a value is of one of `TYPES`: 1.0 is an integer, true is no number."""
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in ("integer", "number"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return kind == "number" or float(value).is_integer()
    return isinstance(value, {"string": str, "array": list, "object": dict}[kind])


def is_choice(value: Any, choices: Sequence[Any], enums: Enums) -> bool:
    """Whether a value equals one of the choices of an `enum`."""
    if id(choices) not in enums:
        enums[id(choices)] = frozenset(map(frozen, choices))
    return frozen(value) in enums[id(choices)]


def frozen(value: Any) -> Hashable:
    """A hashable that is equal for values that are equal as JSON: 1 is 1.0, but true is not 1."""
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, dict):
        return "object", frozenset((name, frozen(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return "list", tuple(map(frozen, value))
    scalar: Hashable = value
    return scalar
