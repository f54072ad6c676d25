"""Filter trees to SQL, meaning exactly what `memservice.domain.filters.evaluate.matches` says.

Two passes in the same order, so that compiled statements can be kept: `shape` lists a tree's values
and returns what is left without them, a hashable; `to_sql` writes the SQL of such a shape.

SQL's third truth value never decides: a null in a condition counts as false, and under `Not` every
leaf that may be null is wrapped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from math import ceil, floor, isfinite
from typing import Any, cast

import sqlalchemy as sa
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

NOTHING: Shape = ("nothing",)
STATES = frozenset(
    {r.ACTIVE, r.ARCHIVED, r.DELETING, r.LIVE, r.SUPERSEDED, r.DELETED, r.PENDING, r.DONE, r.FAILED}
)
"""Written into the statement, so that indexes on rows of one state are recognised."""

MANY = 8
"""More alternatives than this are asked of the database as a list."""

_FLAT = frozenset({"eq", "gt", "gte", "lt", "lte", "state", "null"})

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Filterable:
    """A table as conditions see it."""

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


def shape(on: Filterable, node: Condition, values: list[Any]) -> Shape:
    """What is left of `node` without its values, which are appended to `values`."""
    return _SHAPES[type(node)](on, node, values)


def _all(on: Filterable, node: All, values: list[Any]) -> Shape:
    return ("all", *[shape(on, part, values) for part in node.parts])


def _any(on: Filterable, node: Any_, values: list[Any]) -> Shape:
    if len(node.parts) <= MANY:
        return ("any", *[shape(on, part, values) for part in node.parts])
    # Parts of one shape become rows of a list: else there would be a statement for each number of
    # them, and databases limit its size.
    by_shape: dict[Shape, list[list[Any]]] = {}
    for part in node.parts:
        own: list[Any] = []
        by_shape.setdefault(shape(on, part, own), []).append(own)
    shapes: list[Shape] = []
    for shaped, listed in by_shape.items():
        if len(listed) > 1 and listed[0] and _is_flat(shaped):
            values.append(on.dialect.list_value([tuple(own) for own in listed]))
            shapes.append(("some", shaped))
        else:
            values += [value for own in listed for value in own]
            shapes += [shaped] * len(listed)
    return ("any", *shapes)


def _is_flat(shaped: Shape) -> bool:
    """Are all its leaves such that a value of theirs can as well come from a row?"""
    return all(_is_flat(part) for part in shaped[1:]) if shaped[0] == "all" else shaped[0] in _FLAT


def _not(on: Filterable, node: Not, values: list[Any]) -> Shape:
    return ("not", shape(on, node.part, values))


def _equal(on: Filterable, node: Equal, values: list[Any]) -> Shape:
    value = _fitting(on.kinds[node.field], node.value)
    if value is None:
        return NOTHING
    if node.field == "state" and value in STATES:
        return ("state", node.field, value)
    values.append(value)
    return ("eq", node.field)


def _compare(on: Filterable, node: Compare, values: list[Any]) -> Shape:
    kind = on.kinds[node.field]
    op: str = node.op
    value: Any = node.value
    if kind is int and isinstance(value, int | float) and not isinstance(value, bool):
        bound = _integer_bound(op, value)
        if bound is None:
            return NOTHING
        op, value = bound
    elif _fitting(kind, value) is None:
        return NOTHING
    values.append(value)
    return (op, node.field)


def _one_of(on: Filterable, node: OneOf, values: list[Any]) -> Shape:
    kind = on.kinds[node.field]
    fitting = [
        value for value in (_fitting(kind, value) for value in node.values) if value is not None
    ]
    if not fitting:
        return NOTHING
    if len(fitting) == 1:
        return _equal(on, Equal(node.field, fitting[0]), values)
    values.append(on.dialect.list_value(fitting))
    return ("in", node.field)


def _is_null(on: Filterable, node: IsNull, values: list[Any]) -> Shape:
    return ("null", node.field)


def _substring(on: Filterable, node: Substring, values: list[Any]) -> Shape:
    if on.kinds[node.field] is not str:
        return NOTHING
    values.append(fold(node.needle))
    return ("substring", node.field)


def _holds(on: Filterable, node: Holds, values: list[Any]) -> Shape:
    for listed in LIST_TABLES.get(on.table.name, ()):
        if listed.field == node.field:
            if not isinstance(node.item, listed.kind):
                return NOTHING
            values.append(node.item)
            return ("holds", node.field)
    return _json(on, node, values)


def _contains(on: Filterable, node: Contains, values: list[Any]) -> Shape:
    if on.kinds[node.field] is dict:
        return _json(on, node, values)
    if node.value is None:
        return ("null", node.field)
    return (
        NOTHING
        if isinstance(node.value, dict | list)
        else _equal(on, Equal(node.field, node.value), values)
    )


def _json(
    on: Filterable,
    node: Contains | Holds | KeyEqual | KeyCompare | KeyOneOf | KeySubstring,
    values: list[Any],
) -> Shape:
    if on.kinds[node.field] is not dict:
        return NOTHING
    shaped, added = on.dialect.json_values(node)
    values.extend(added)
    return ("json", node.field, shaped)


def _fitting(kind: type, value: Any) -> Any:
    """`value` as a column of that kind may equal it; None where it cannot."""
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(Decimal(repr(value)))
    if (
        not isinstance(value, kind)
        or kind is dict
        or (isinstance(value, bool) and kind is not bool)
    ):
        return None
    fits: Any = value
    return None if kind is int and not INT_MIN <= fits <= INT_MAX else fits


def _integer_bound(op: str, value: float) -> tuple[str, int] | None:
    """The same comparison of an integer column with a 64-bit integer; None where no integer
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
    on: Filterable, shaped: Shape, slots: Slots, *, negated: bool = False
) -> sa.ColumnElement[bool]:
    """The SQL of a shape. `negated`: somewhere under a `Not`, where null must be false already."""
    name = shaped[0]
    if name == "all":
        return _joined(
            sa.and_, sa.true(), [to_sql(on, part, slots, negated=negated) for part in shaped[1:]]
        )
    if name == "any":
        return _joined(
            sa.or_, sa.false(), [to_sql(on, part, slots, negated=negated) for part in shaped[1:]]
        )
    if name == "not":
        return sa.not_(to_sql(on, shaped[1], slots, negated=True))
    if name == "nothing":
        return sa.false()
    if name == "some":
        listed = on.dialect.value_rows(slots, list(_types(on, shaped[1])))
        return sa.exists(
            sa.select(sa.text("1"))
            .select_from(listed)
            .where(to_sql(on, shaped[1], _Listed(listed)))
            .correlate(on.table)
        )
    column = on.table.c[shaped[1]]
    leaf = _leaf(on, column, shaped, slots)
    maybe_null = name == "json" or (column.nullable and name != "null")
    return (
        sa.func.coalesce(leaf, sa.false(), type_=sa.Boolean()) if negated and maybe_null else leaf
    )


class _Listed(Slots):
    """Gives the columns of a list of rows where values would be taken from the caller."""

    def __init__(self, listed: sa.CTE) -> None:
        super().__init__()
        self._columns = iter(listed.c)

    def take(self, type_: TypeEngine[Any]) -> Any:
        return next(self._columns)


def _types(on: Filterable, shaped: Shape) -> Iterator[TypeEngine[Any]]:
    """Types of the values of a flat shape, in their order."""
    if shaped[0] == "all":
        for part in shaped[1:]:
            yield from _types(on, part)
    elif shaped[0] not in ("state", "null"):
        yield on.table.c[shaped[1]].type


def _joined(
    join: Callable[..., sa.ColumnElement[bool]], empty: sa.ColumnElement[bool], parts: list[Any]
) -> sa.ColumnElement[bool]:
    """Joined a hundred at a time: databases limit how deep an expression is, and `a OR b OR c` is
    as deep as it is long.

    The first ones stay where an index can be chosen for them; the others are wrapped, since
    brackets alone would be taken off again.
    """
    while len(parts) > 100:
        rest = [parts[start : start + 50] for start in range(50, len(parts), 50)]
        parts = [
            *parts[:50],
            *[sa.func.coalesce(join(*some), sa.false(), type_=sa.Boolean()) for some in rest],
        ]
    return join(empty, *parts)


def _leaf(
    on: Filterable, column: sa.Column[Any], shaped: Shape, slots: Slots
) -> sa.ColumnElement[bool]:
    match shaped[0]:
        case "eq":
            return column == slots.take(column.type)
        case "state":
            return column == sa.literal_column(f"'{shaped[2]}'")
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
            listed = next(
                listed for listed in LIST_TABLES[on.table.name] if listed.field == column.name
            )
            holders = sa.select(listed.parent).where(listed.item == slots.take(listed.item.type))
            return on.table.c.key.in_(holders)
        case "json":
            return on.dialect.json_condition(column, cast(Hashable, shaped[2]), slots)
        case unknown:
            raise AssertionError(f"no shape {unknown!r}")
