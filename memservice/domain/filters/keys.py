"""Conditions on a JSON column: containment, and operators on its first-level keys."""

from __future__ import annotations

from typing import Any

from memservice.domain.filters.ast import (
    FALSE,
    TRUE,
    Any_,
    Condition,
    Contains,
    IsNull,
    KeyCompare,
    KeyOneOf,
    KeySubstring,
    all_of,
)
from memservice.domain.filters.jsontext import value_text
from memservice.domain.filters.limits import (
    OPERATORS,
    ORDERINGS,
    WILDCARD,
    Budget,
    as_list,
    known_operators,
    refuse,
)
from memservice.domain.filters.operands import number, number_spelled, text, type_name
from memservice.domain.values import Loc, check_json, shown, strip_nul


def json_column(field: str, name: str, value: Any, loc: Loc, budget: Budget) -> Condition:
    """The condition `{name: value}` on the JSON column `field`.

    On the whole column only the operator `contains` is allowed. It also serves to filter by a key
    that has the name of an operator: `{"metadata": {"contains": {"in": 5}}}`.
    """
    if value is None:
        return IsNull(field)
    if not isinstance(value, dict):
        refuse(
            loc,
            (
                f"Invalid value for '{name}': {shown(value)}. Expected an object, got "
                f"{type_name(value)}"
            ),
        )
    if any(op in OPERATORS for op in value):
        return all_of(
            *(
                _whole(field, name, op, value[op], loc, budget)
                for op in known_operators(value, name, loc)
            )
        )
    budget.condition(loc, len(value))
    parts: list[Condition] = []
    plain: dict[str, Any] = {}
    for name_in_filter, operand in value.items():
        here = (*loc, shown(name_in_filter))
        key = text(name_in_filter, here)
        if operand == WILDCARD:
            continue
        if isinstance(operand, dict) and any(op in OPERATORS for op in operand):
            parts.extend(
                _operator(field, key, op, operand[op], here, budget)
                for op in known_operators(operand, name_in_filter, here)
            )
        else:
            plain[key] = operand
    if plain:
        parts.append(_containment(field, plain, loc, budget))
    return all_of(*parts)


def _whole(field: str, name: str, op: str, value: Any, loc: Loc, budget: Budget) -> Condition:
    if op not in ("contains", "icontains"):
        refuse(loc, f"Operator '{op}' is not supported on '{name}'")
    if not isinstance(value, dict):
        refuse(
            loc,
            (
                f"Invalid value for '{op}' on '{name}': {shown(value)}. Expected an object, "
                f"got {type_name(value)}"
            ),
        )
    return _containment(field, value, loc, budget)


def _containment(field: str, value: dict[str, Any], loc: Loc, budget: Budget) -> Condition:
    budget.contained(loc, value)
    check_json(value, loc)
    return Contains(field, strip_nul(value))


def _operator(field: str, key: str, op: str, value: Any, loc: Loc, budget: Budget) -> Condition:
    """`{key: {op: value}}`. Booleans compare as the texts `true` and `false`; a string that spells
    a number, as the number."""
    budget.condition(loc)
    if op == "in":
        return _one_of(field, key, as_list(value, loc), loc, budget)
    if value is None:
        if op == "ne":
            return _present(field, key)
        refuse(loc, f"Operator '{op}' does not accept null")
    if op in ("contains", "icontains"):
        if isinstance(value, dict | list):
            return _containment(field, {key: value}, loc, budget)
        return KeySubstring(field, key, _text(value, loc))
    if isinstance(value, dict | list):
        refuse(
            loc,
            (
                f"Invalid comparison value for '{shown(key)}': expected a string, a number or "
                f"a boolean, got {type_name(value)}"
            ),
        )
    return KeyCompare(field, key, "ne" if op == "ne" else ORDERINGS[op], _comparable(value, loc))


def _one_of(field: str, key: str, values: list[Any], loc: Loc, budget: Budget) -> Condition:
    """Elements compare as text; null means an explicit null, as in equality."""
    if WILDCARD in values:
        return TRUE
    budget.values(loc, len(values))
    texts = tuple(dict.fromkeys(_text(value, loc) for value in values if value is not None))
    one_of: Condition = KeyOneOf(field, key, texts) if texts else FALSE
    return Any_((one_of, Contains(field, {key: None}))) if None in values else one_of


def _comparable(value: Any, loc: Loc) -> int | float | str:
    """The number that `value` is or spells, else its text. A string with more digits than a number
    can have (a long id) is text."""
    if isinstance(value, bool):
        return _text(value, loc)
    if not isinstance(value, str):
        return number(value, loc)
    spelled = number_spelled(value)
    return text(value, loc) if spelled is None else spelled


def _text(value: Any, loc: Loc) -> str:
    """The text by which `value` is compared."""
    if isinstance(value, str):
        return text(value, loc)
    check_json(value, loc)
    spelled = value_text(value)
    if spelled is None:
        refuse(loc, f"Invalid value: expected strings, numbers or booleans, got {type_name(value)}")
    return spelled


def _present(field: str, key: str) -> Condition:
    """The key has a value other than null: an object, a list or a value with a text."""
    return Any_(
        (Contains(field, {key: {}}), Contains(field, {key: []}), KeyCompare(field, key, "gte", ""))
    )


def containment(field: str, value: dict[str, Any], loc: Loc) -> Condition:
    """Containment alone, every key literal."""
    return _containment(field, value, loc, Budget()) if value else TRUE
