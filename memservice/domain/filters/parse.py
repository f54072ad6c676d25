"""Parses the JSON that callers send as `filters` into the tree of `ast`. It has all rules and
errors of the filter language.

`"*"` is a condition that is always true, and is allowed wherever a condition is. `resources` maps
names to fields of records.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from msgspec import Struct

from memservice.domain.filters.ast import (
    FALSE,
    TRUE,
    Any_,
    Compare,
    Condition,
    Equal,
    Holds,
    IsNull,
    Not,
    OneOf,
    Substring,
    all_of,
)
from memservice.domain.filters.evaluate import matches
from memservice.domain.filters.keys import json_column
from memservice.domain.filters.limits import (
    DEPTH_MAX,
    ORDERINGS,
    WILDCARD,
    Budget,
    as_list,
    known_operators,
    refuse,
)
from memservice.domain.filters.operands import operand, text, type_name
from memservice.domain.filters.resources import Column, Fixed, Flag, Kind, Resource, Stored
from memservice.domain.values import Loc, shown

LOGICAL = ("AND", "OR", "NOT")


class _Value(Struct, frozen=True):
    """A row with one value, for conditions that are evaluated while parsing."""

    value: object


def parse_filters(
    filters: object,
    resource: Resource,
    loc: Sequence[str | int] = ("filters",),
    *,
    workspace_id: str | None = None,
    ignore: Collection[str] = (),
) -> Condition:
    """The condition that `filters` stands for on rows of `resource`; null and `{}` match every row.

    `workspace_id` is the slug of the route's workspace. It is the value of the column
    `workspace_id`, and required if the resource has that column. Names in `ignore` are skipped at
    the top level, because the route handles them itself. Raises InvalidInput with the location
    (`loc` + path) of the first problem.
    """
    if resource.needs_workspace and workspace_id is None:
        raise TypeError(f"parse_filters needs workspace_id= for {resource.name}")
    if filters is None:
        return TRUE
    if not isinstance(filters, dict):
        refuse(tuple(loc), f"Filters must be an object, got {type_name(filters)}")
    conditions = {name: value for name, value in filters.items() if name not in ignore}
    return _Parser(resource, workspace_id or "").conditions(conditions, tuple(loc), 0)


class _Parser:
    def __init__(self, resource: Resource, workspace_id: str) -> None:
        self.resource = resource
        self.workspace = workspace_id
        self.budget = Budget()

    def conditions(self, filters: dict[str, Any], loc: Loc, depth: int) -> Condition:
        """All entries of one filter object, which is inside `depth` logical operators."""
        self.budget.condition(loc, len(filters) or 1)
        return all_of(
            *(
                self._logical(name, value, (*loc, name), depth + 1)
                if name in LOGICAL
                else self._named(name, value, loc)
                for name, value in filters.items()
            )
        )

    def _logical(self, name: str, value: Any, loc: Loc, depth: int) -> Condition:
        if depth > DEPTH_MAX:
            refuse(loc, f"Filter nesting exceeds maximum depth of {DEPTH_MAX}")
        if value is None and name == "NOT":
            refuse(loc, "NOT operator cannot be None")
        if not isinstance(value, list):
            refuse(loc, f"{name} operator must contain a list, got {type_name(value)}")
        parts: list[Condition] = []
        for index, element in enumerate(value):
            if not isinstance(element, dict):
                refuse((*loc, index), "Invalid filter configuration")
            parts.append(self.conditions(element, (*loc, index), depth))
        if name == "NOT":
            return all_of(*(Not(part) for part in parts))
        if name == "OR" and parts:
            return TRUE if TRUE in parts else parts[0] if len(parts) == 1 else Any_(tuple(parts))
        return all_of(*parts)

    def _named(self, name: str, value: Any, loc: Loc) -> Condition:
        here = (*loc, shown(name))
        column = self.resource.columns.get(name)
        if column is None:
            self._unknown(name, here)
        if value == WILDCARD:
            return TRUE
        return self._column(column, name, value, here)

    def _unknown(self, name: str, loc: Loc) -> NoReturn:
        if self.resource.raw:
            refuse(loc, f"Column '{shown(name)}' does not exist on {self.resource.name}")
        refuse(
            loc,
            (
                f"Column '{shown(name)}' is not allowed to be filtered on or does not exist on "
                f"{self.resource.name}"
            ),
        )

    def _column(self, column: Column, name: str, value: Any, loc: Loc) -> Condition:
        match column:
            case Stored(field, Kind.JSON):
                return json_column(field, name, value, loc, self.budget)
            case Stored(field, Kind.LIST):
                return _list_column(field, name, value, loc)
            case Stored(field, kind, choices):
                return _Scalar(name, field, kind, choices, self.budget).node(value, loc)
            case Fixed(fixed, choices):
                node = _Scalar(name, "value", Kind.TEXT, choices, self.budget).node(value, loc)
                return (
                    TRUE
                    if matches(_Value(self.workspace if fixed is None else fixed), node)
                    else FALSE
                )
            case Flag(field, when):
                node = _Scalar(name, "value", None, (), self.budget).node(value, loc)
                yes, no = matches(_Value(True), node), matches(_Value(False), node)
                is_set = Equal(field, when)
                return (TRUE if no else is_set) if yes else (Not(is_set) if no else FALSE)


class _Scalar(Struct, frozen=True):
    """Conditions on one column of text, numbers, times or (kind None) booleans."""

    name: str
    field: str
    kind: Kind | None
    choices: tuple[str, ...]
    budget: Budget

    def node(self, value: Any, loc: Loc) -> Condition:
        if value is None:
            return IsNull(self.field)
        if isinstance(value, list):
            return self._one_of(value, loc)
        if isinstance(value, dict):
            operators = known_operators(value, self.name, loc)
            self.budget.condition(loc, len(operators))
            return all_of(*(self._operator(op, value[op], loc) for op in operators))
        return Equal(self.field, self._equal(value, loc))

    def _operator(self, op: str, value: Any, loc: Loc) -> Condition:
        if op == "ne":
            return Not(
                IsNull(self.field) if value is None else Equal(self.field, self._equal(value, loc))
            )
        if op == "in":
            return self._one_of(as_list(value, loc), loc)
        if value is None:
            refuse(loc, f"Operator '{op}' does not accept null")
        if op in ORDERINGS:
            return Compare(self.field, ORDERINGS[op], operand(self.kind, value, loc))
        if self.kind is not Kind.TEXT:
            refuse(loc, f"Operator '{op}' is not supported on '{self.name}'")
        return Substring(self.field, text(value, loc))

    def _one_of(self, values: list[Any], loc: Loc) -> Condition:
        if WILDCARD in values:
            return TRUE
        self.budget.values(loc, len(values))
        one_of = OneOf(
            self.field,
            tuple(dict.fromkeys(self._equal(value, loc) for value in values if value is not None)),
        )
        # As for equality, null in the list means rows without a value.
        return Any_((one_of, IsNull(self.field))) if None in values else one_of

    def _equal(self, value: Any, loc: Loc) -> Any:
        checked = operand(self.kind, value, loc)
        if self.choices and checked not in self.choices:
            refuse(
                loc,
                (
                    f"Invalid value for '{self.name}': {shown(value)}. Expected one of "
                    f"{', '.join(self.choices)}"
                ),
            )
        return checked


def _list_column(field: str, name: str, value: Any, loc: Loc) -> Condition:
    """A condition on a list of texts. Only null, not null and membership are allowed."""
    if value is None:
        return IsNull(field)
    if not isinstance(value, dict):
        refuse(
            loc,
            (
                f"Invalid value for '{name}': got {type_name(value)}. Expected null or an "
                "object with 'contains'"
            ),
        )
    parts: list[Condition] = []
    for op in known_operators(value, name, loc):
        if op == "ne" and value[op] is None:
            parts.append(Not(IsNull(field)))
        elif op in ("contains", "icontains"):
            parts.append(Holds(field, text(value[op], loc)))
        else:
            refuse(loc, f"Operator '{op}' is not supported on '{name}'")
    return all_of(*parts)
