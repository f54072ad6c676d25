"""The tree of conditions that a filter stands for. `evaluate.matches` defines its meaning, and
every storage translates it.

Every node is true or false. A leaf on a null (or missing) value is false, unless its docstring says
otherwise; `Not` is plain negation, so `Not(leaf)` includes rows whose value is null. Strings
compare by code point; datetimes are timezone-aware; `field` is a field name of the record
(`memservice.domain.records`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

Scalar = str | int | float | bool | datetime
Ordering = Literal["gt", "gte", "lt", "lte"]


class All(Struct, frozen=True):
    """Every part holds. No parts: true."""

    parts: tuple[Condition, ...] = ()


class Any_(Struct, frozen=True):  # noqa: N801  (`Any` is typing's)
    """At least one part holds. No parts: false."""

    parts: tuple[Condition, ...] = ()


class Not(Struct, frozen=True):
    part: Condition


class Equal(Struct, frozen=True):
    field: str
    value: Scalar


class Compare(Struct, frozen=True):
    field: str
    op: Ordering
    value: Scalar


class OneOf(Struct, frozen=True):
    """The value is one of `values`; an empty tuple matches nothing."""

    field: str
    values: tuple[Scalar, ...]


class IsNull(Struct, frozen=True):
    field: str


class Substring(Struct, frozen=True):
    """Text contains `needle`, both lower-cased character by character (`jsontext.fold`); no
    wildcards."""

    field: str
    needle: str


class Holds(Struct, frozen=True):
    """The list column has `item` among its elements, exactly."""

    field: str
    item: str


class Contains(Struct, frozen=True):
    """JSON containment as PostgreSQL's `@>`: objects by subset of keys, lists if every element of
    `value` is contained in some stored element, scalars by equality (1 equals 1.0, true equals only
    true, null only null).

    `value` is an object; a list does not contain a bare scalar, at any level."""

    field: str
    value: Any


class KeyEqual(Struct, frozen=True):
    """Text of the first-level `key` of a JSON object equals `text`.

    The text of a value (`jsontext.value_text`): a string itself, `true`/`false`, a number as plain
    decimal without needless zeros (1.0 is `1`, 1e-7 is `0.0000001`). Null, objects and lists have
    none and match no test of text.
    """

    field: str
    key: str
    text: str


class KeyCompare(Struct, frozen=True):
    """Ordering against the value at a first-level key. A number compares by exact decimal value
    with stored numbers and numeric strings (`jsontext.NUMERIC`; anything else does not match, with
    any `op`); a string compares by code point with the value's text."""

    field: str
    key: str
    op: Ordering | Literal["eq", "ne"]
    operand: float | str
    """If the key is missing or null, `ne` is false too. Objects and lists have no text, so they
    differ from every string."""


class KeyOneOf(Struct, frozen=True):
    """Text of the value at a first-level key is one of `texts`."""

    field: str
    key: str
    texts: tuple[str, ...]


class KeySubstring(Struct, frozen=True):
    """Text of the value at a first-level key, or of an element if it is a list, contains `needle`,
    both folded as for `Substring`."""

    field: str
    key: str
    needle: str


Condition = (
    All
    | Any_
    | Not
    | Equal
    | Compare
    | OneOf
    | IsNull
    | Substring
    | Holds
    | Contains
    | KeyEqual
    | KeyCompare
    | KeyOneOf
    | KeySubstring
)

TRUE = All()
FALSE = Any_()


def all_of(*parts: Condition) -> Condition:
    """Conjunction, flattened: `TRUE` parts vanish."""
    flat: list[Condition] = []
    for part in parts:
        if isinstance(part, All):
            flat.extend(part.parts)
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else All(tuple(flat))


def equals(**fields: Scalar | tuple[Scalar, ...] | None) -> Condition:
    """Equalities, ANDed: a tuple means one of, None means null.
    `equals(workspace_key=3, state=("active", "archived"))`."""
    parts: list[Condition] = []
    for name, value in fields.items():
        if value is None:
            parts.append(IsNull(name))
        elif isinstance(value, tuple):
            parts.append(OneOf(name, value))
        else:
            parts.append(Equal(name, value))
    return all_of(*parts)


def values_named(node: Condition, field: str) -> set[Scalar] | None:
    """The only values that a field of a matching row can have, as far as the outermost parts of the
    node restrict it; None if they do not."""
    named: set[Scalar] | None = None
    for part in node.parts if isinstance(node, All) else (node,):
        if isinstance(part, Equal | OneOf) and part.field == field:
            values = set(part.values if isinstance(part, OneOf) else (part.value,))
            named = values if named is None else named & values
    return named


def texts_named(node: Condition, field: str) -> tuple[str, ...] | None:
    """The texts among `values_named`, sorted."""
    named = values_named(node, field)
    return (
        None if named is None else tuple(sorted(value for value in named if isinstance(value, str)))
    )


def uses_field(node: Condition, field: str) -> bool:
    """Whether any part of a node tests this field."""
    if isinstance(node, All | Any_):
        return any(uses_field(part, field) for part in node.parts)
    return uses_field(node.part, field) if isinstance(node, Not) else node.field == field
