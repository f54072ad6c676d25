"""Conversion of conditions to SQL, with exactly the meaning of
`memservice.domain.filters.evaluate.matches`.

Two passes in the same order, so that compiled statements can be cached: `shape` lists the values of
a condition and returns the rest as a hashable shape; `to_sql` writes the SQL of such a shape.

A null in a condition counts as false. Under `Not`, every leaf that may be null is wrapped in
`coalesce`.
"""

# fast path: see docs/decisions/fast-paths.md#statements

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from math import ceil, floor, isfinite
from typing import Any, cast

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.types import TypeEngine

from memservice.domain import records as r
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
    Substring,
)
from memservice.domain.filters.jsontext import fold
from memservice_sql.dialect import SqlDialect
from memservice_sql.statements import Slots
from memservice_sql.tables import LIST_TABLES
from memservice_sql.types import JSON, UtcDateTime

Shape = tuple[Any, ...]

NO_MATCH: Shape = ("nothing",)
STATES = frozenset(
    {r.ACTIVE, r.ARCHIVED, r.DELETING, r.LIVE, r.SUPERSEDED, r.DELETED, r.PENDING, r.DONE, r.FAILED}
)
"""States are literals in the statement, so that the database can use partial indexes on a state."""

MAX_ALTERNATIVES = 8
"""More alternatives than this are passed to the database as a list."""

_FLAT = frozenset({"eq", "gt", "gte", "lt", "lte", "state", "null"})

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


class Filterable(Struct, frozen=True):
    """A table and the types of its columns, for conditions on it."""

    table: sa.Table
    kinds: dict[str, type]
    """Python type of each column's values; `dict` for JSON."""
    dialect: SqlDialect

    @classmethod
    def of(cls, table: sa.Table, dialect: SqlDialect) -> Filterable:
        return cls(table, {column.name: _kind(column) for column in table.columns}, dialect)


def _kind(column: sa.Column[Any]) -> type:
    if isinstance(column.type, UtcDateTime):
        return datetime
    return dict if isinstance(column.type, type(JSON)) else column.type.python_type


# First pass: shapes and values.


def shape(on: Filterable, condition: Condition, values: list[Any]) -> Shape:
    """The shape of `condition`: everything but its values, which are appended to `values`."""
    return _SHAPES[type(condition)](on, condition, values)


def _all(on: Filterable, condition: All, values: list[Any]) -> Shape:
    return ("all", *[shape(on, part, values) for part in _cheap_first(on, condition.parts)])


def _cheap_first(on: Filterable, parts: Sequence[Condition]) -> Sequence[Condition]:
    """The parts in the order of their cost: databases test them in the order they are written."""
    return sorted(parts, key=lambda part: _inside_json(on, part))


def _inside_json(on: Filterable, condition: Condition) -> int:
    """The number of conditions inside JSON, each of which costs as much as many others."""
    match condition:
        case All(parts) | Any_(parts):
            return sum(_inside_json(on, part) for part in parts)
        case Not(part):
            return _inside_json(on, part)
        case _:
            return int(on.kinds[condition.field] is dict)


def _any(on: Filterable, condition: Any_, values: list[Any]) -> Shape:
    if len(condition.parts) <= MAX_ALTERNATIVES:
        return ("any", *[shape(on, alternative, values) for alternative in condition.parts])
    # Alternatives of one shape become rows of a list: otherwise each number of them would need a
    # statement of its own, and databases limit the size of a statement.
    by_shape: dict[Shape, list[list[Any]]] = {}
    for alternative in condition.parts:
        own_values: list[Any] = []
        by_shape.setdefault(shape(on, alternative, own_values), []).append(own_values)
    shapes: list[Shape] = []
    for shape_, value_lists in by_shape.items():
        if len(value_lists) > 1 and value_lists[0] and _is_flat(shape_):
            values.append(on.dialect.list_value([tuple(own_values) for own_values in value_lists]))
            shapes.append(("some", shape_))
        else:
            values += [value for own_values in value_lists for value in own_values]
            shapes += [shape_] * len(value_lists)
    return ("any", *shapes)


def _is_flat(shape_: Shape) -> bool:
    """Whether the values of all leaves can be columns of a list of rows."""
    return all(_is_flat(part) for part in shape_[1:]) if shape_[0] == "all" else shape_[0] in _FLAT


def _not(on: Filterable, condition: Not, values: list[Any]) -> Shape:
    return ("not", shape(on, condition.part, values))


def _equal(on: Filterable, condition: Equal, values: list[Any]) -> Shape:
    value = _fitting(on.kinds[condition.field], condition.value)
    if value is None:
        return NO_MATCH
    if condition.field == "state" and value in STATES:
        return ("state", condition.field, value)
    values.append(value)
    return ("eq", condition.field)


def _compare(on: Filterable, condition: Compare, values: list[Any]) -> Shape:
    kind = on.kinds[condition.field]
    op: str = condition.op
    value: Any = condition.value
    if kind is int and isinstance(value, int | float) and not isinstance(value, bool):
        bound = _integer_bound(op, value)
        if bound is None:
            return NO_MATCH
        op, value = bound
    elif _fitting(kind, value) is None:
        return NO_MATCH
    values.append(value)
    return (op, condition.field)


def _one_of(on: Filterable, condition: OneOf, values: list[Any]) -> Shape:
    kind = on.kinds[condition.field]
    fitting = [
        value
        for value in (_fitting(kind, value) for value in condition.values)
        if value is not None
    ]
    if not fitting:
        return NO_MATCH
    if len(fitting) == 1:
        return _equal(on, Equal(condition.field, fitting[0]), values)
    values.append(on.dialect.list_value(fitting))
    return ("in", condition.field)


def _is_null(on: Filterable, condition: IsNull, values: list[Any]) -> Shape:
    return ("null", condition.field)


def _substring(on: Filterable, condition: Substring, values: list[Any]) -> Shape:
    if on.kinds[condition.field] is not str:
        return NO_MATCH
    values.append(fold(condition.needle))
    return ("substring", condition.field)


def _holds(on: Filterable, condition: Holds, values: list[Any]) -> Shape:
    for list_table in LIST_TABLES.get(on.table.name, ()):
        if list_table.field == condition.field:
            if not isinstance(condition.item, list_table.kind):
                return NO_MATCH
            values.append(condition.item)
            return ("holds", condition.field)
    return _json(on, condition, values)


def _contains(on: Filterable, condition: Contains, values: list[Any]) -> Shape:
    if on.kinds[condition.field] is dict:
        return _json(on, condition, values)
    if condition.value is None:
        return ("null", condition.field)
    return (
        NO_MATCH
        if isinstance(condition.value, dict | list)
        else _equal(on, Equal(condition.field, condition.value), values)
    )


def _json(
    on: Filterable,
    condition: Contains | Holds | KeyEqual | KeyCompare | KeyOneOf | KeySubstring,
    values: list[Any],
) -> Shape:
    if on.kinds[condition.field] is not dict:
        return NO_MATCH
    shape_, leaf_values = on.dialect.json_values(condition)
    values.extend(leaf_values)
    return ("json", condition.field, shape_)


def _fitting(kind: type, value: Any) -> Any:
    """`value` converted for comparison with a column of that kind; None if they cannot be equal."""
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(Decimal(repr(value)))
    if (
        not isinstance(value, kind)
        or kind is dict
        or (isinstance(value, bool) and kind is not bool)
    ):
        return None
    result: Any = value
    return None if kind is int and not INT_MIN <= result <= INT_MAX else result


def _integer_bound(op: str, value: float) -> tuple[str, int] | None:
    """The equivalent comparison of an integer column with a 64-bit integer; None if no integer
    satisfies it."""
    if not isfinite(value):
        return ("gte", INT_MIN) if (value > 0) == (op in ("lt", "lte")) else None
    exact = Decimal(repr(value))
    if op in ("gt", "gte"):
        bound = floor(exact) + 1 if op == "gt" else ceil(exact)
        return ("gte", max(bound, INT_MIN)) if bound <= INT_MAX else None
    bound = ceil(exact) - 1 if op == "lt" else floor(exact)
    return ("lte", min(bound, INT_MAX)) if bound >= INT_MIN else None


_SHAPES: dict[type, Callable[[Filterable, Any, list[Any]], Shape]] = {
    All: _all,
    Any_: _any,
    Not: _not,
    Equal: _equal,
    Compare: _compare,
    OneOf: _one_of,
    IsNull: _is_null,
    Substring: _substring,
    Holds: _holds,
    Contains: _contains,
    KeyEqual: _json,
    KeyCompare: _json,
    KeyOneOf: _json,
    KeySubstring: _json,
}


# Second pass: SQL.


def to_sql(
    on: Filterable, shape_: Shape, slots: Slots, *, negated: bool = False
) -> sa.ColumnElement[bool]:
    """The SQL of a shape. `negated`: the shape is under a `Not`, so null must become false here."""
    name = shape_[0]
    if name == "all":
        return _joined(
            sa.and_, sa.true(), [to_sql(on, part, slots, negated=negated) for part in shape_[1:]]
        )
    if name == "any":
        return _joined(
            sa.or_, sa.false(), [to_sql(on, part, slots, negated=negated) for part in shape_[1:]]
        )
    if name == "not":
        return sa.not_(to_sql(on, shape_[1], slots, negated=True))
    if name == "nothing":
        return sa.false()
    if name == "some":
        value_table = on.dialect.value_rows(slots, list(_types(on, shape_[1])))
        return sa.exists(
            sa.select(sa.text("1"))
            .select_from(value_table)
            .where(to_sql(on, shape_[1], _Listed(value_table)))
            .correlate(on.table)
        )
    column = on.table.c[shape_[1]]
    leaf = _leaf(on, column, shape_, slots)
    maybe_null = name == "json" or (column.nullable and name != "null")
    return (
        sa.func.coalesce(leaf, sa.false(), type_=sa.Boolean()) if negated and maybe_null else leaf
    )


class _Listed(Slots):
    """Slots that are the columns of a list of rows in place of bind parameters."""

    def __init__(self, value_table: sa.CTE) -> None:
        super().__init__()
        self._columns = iter(value_table.c)

    def take(self, type_: TypeEngine[Any]) -> Any:
        return next(self._columns)


def _types(on: Filterable, shape_: Shape) -> Iterator[TypeEngine[Any]]:
    """Types of the values of a flat shape, in the same order."""
    if shape_[0] == "all":
        for part in shape_[1:]:
            yield from _types(on, part)
    elif shape_[0] not in ("state", "null"):
        yield on.table.c[shape_[1]].type


def _joined(
    join: Callable[..., sa.ColumnElement[bool]], empty: sa.ColumnElement[bool], parts: list[Any]
) -> sa.ColumnElement[bool]:
    """The parts joined in groups: databases limit the depth of an expression, and `a OR b OR c` is
    as deep as it is long.

    The first 50 stay at the top level, where an index can be chosen for them. The others are
    wrapped in `coalesce`, since SQLAlchemy removes plain parentheses.
    """
    while len(parts) > 100:
        groups = [parts[start : start + 50] for start in range(50, len(parts), 50)]
        parts = [
            *parts[:50],
            *[sa.func.coalesce(join(*group), sa.false(), type_=sa.Boolean()) for group in groups],
        ]
    return join(empty, *parts)


def _leaf(
    on: Filterable, column: sa.Column[Any], shape_: Shape, slots: Slots
) -> sa.ColumnElement[bool]:
    match shape_[0]:
        case "eq":
            return column == slots.take(column.type)
        case "state":
            return column == sa.literal_column(f"'{shape_[2]}'")
        case "gt":
            return column > slots.take(column.type)
        case "gte":
            return column >= slots.take(column.type)
        case "lt":
            return column < slots.take(column.type)
        case "lte":
            return column <= slots.take(column.type)
        case "in":
            return on.dialect.one_of(column, slots)
        case "null":
            return column.is_(None)
        case "substring":
            return on.dialect.substring(column, slots)
        case "holds":
            list_table = next(
                list_table
                for list_table in LIST_TABLES[on.table.name]
                if list_table.field == column.name
            )
            holders = sa.select(list_table.parent).where(
                list_table.item == slots.take(list_table.item.type)
            )
            return on.table.c.key.in_(holders)
        case "json":
            return on.dialect.json_condition(column, cast(Hashable, shape_[2]), slots)
        case unknown:
            raise AssertionError(f"no shape {unknown!r}")
