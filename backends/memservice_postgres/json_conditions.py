"""Conditions inside JSON, with the meaning of `memservice.domain.filters.jsontext`.

The columns are `json`, which preserves the order of keys and the format of numbers. Conditions cast
to `jsonb`, as the indexes do (`memservice_postgres.search_schema`), and use containment wherever
possible, since the indexes support it. Messages have their metadata as `jsonb`, too.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeDecorator

from memservice.domain.filters.ast import (
    Contains,
    Holds,
    KeyCompare,
    KeyEqual,
    KeyOneOf,
    KeySubstring,
)
from memservice.domain.filters.jsontext import NUMERIC, fold
from memservice_postgres.json_text import encode
from memservice_sql.dialect import COMPARISONS, JsonLeaf
from memservice_sql.statements import Slots

FOLD = "memservice_fold"
COPIED_METADATA = "metadata_jsonb"
"""A column of the messages that has their metadata as `jsonb`
(`memservice_postgres.search_schema`)."""


class _JsonbText(TypeDecorator[str]):
    """A parameter that is JSON text and that the server receives as `jsonb`: a cached plan would
    cast a text for every row."""

    impl = postgresql.JSONB
    cache_ok = True

    def bind_processor(self, dialect: sa.Dialect) -> None:
        return None


_JSONB_TEXT = _JsonbText()
_NUMBER_TEXT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?")
"""Numbers in the format of `jsontext.number_text`."""


def parts(leaf: JsonLeaf) -> tuple[Hashable, Sequence[Any]]:
    """The shape that determines a leaf's SQL, and the values of its slots."""
    match leaf:
        case Contains(_, None):
            return "null", []
        case Contains(_, dict() | list() as value):
            return "contains", [encode(value)]
        case Contains(_, value):
            return "is", [encode(value)]
        case Holds(_, item):
            return "contains", [encode([item])]
        case KeyEqual(_, key, text):
            if text in ("true", "false"):
                return "contains either", [encode({key: text}), encode({key: text == "true"})]
            if _NUMBER_TEXT.fullmatch(text) and text != "-0":
                return "contains either", [encode({key: text}), f"{{{encode(key)}:{text}}}"]
            return "contains", [encode({key: text})]
        case KeyOneOf(_, key, texts):
            return "one of", [key, list(texts)]
        case KeyCompare(_, key, op, str() as operand):
            return f"text {op}", [key, operand]
        case KeyCompare(_, key, op, operand):
            return f"number {op}", [key, repr(operand)]
        case KeySubstring(_, key, needle):
            return "substring", [key, fold(needle)]
    raise AssertionError(f"no such leaf: {leaf!r}")


def condition(column: sa.ColumnElement[Any], shape: str, slots: Slots) -> sa.ColumnElement[bool]:
    """The SQL of that shape. Its value may be null."""
    whole = _as_jsonb(column)
    match shape.split():
        case ["null"]:
            return column.is_(None)
        case ["contains"]:
            return _contains(whole, slots)
        case ["contains", "either"]:
            return _contains(whole, slots) | _contains(whole, slots)
        case ["is"]:
            return whole == slots.take(_JSONB_TEXT)
    value = whole.op("->", return_type=postgresql.JSONB())(slots.take(sa.Text()))
    match shape.split():
        case ["one", "of"]:
            return _text(value) == sa.any_(slots.take(postgresql.ARRAY(sa.Text())))
        case ["text", op]:
            holds = COMPARISONS[op](_text(value), slots.take(sa.Text()))
            structure = sa.func.jsonb_typeof(value).in_(
                [sa.literal_column("'object'"), sa.literal_column("'array'")]
            )
            return sa.func.coalesce(holds, structure, type_=sa.Boolean()) if op == "ne" else holds
        case ["number", op]:
            return COMPARISONS[op](_number(value), slots.take(sa.Numeric()))
        case ["substring"]:
            element = sa.case(
                (sa.func.jsonb_typeof(value) == sa.literal_column("'array'"), value),
                else_=sa.func.jsonb_build_array(value),
            )
            item = sa.func.jsonb_array_elements(element, type_=postgresql.JSONB).column_valued(
                "item"
            )
            return sa.exists(
                sa.select(sa.text("1")).where(
                    sa.func.strpos(folded(_text(item)), slots.take(sa.Text())) > 0
                )
            )
    raise AssertionError(f"no shape {shape!r}")


def folded(text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The text as folded by `memservice.domain.filters.jsontext.fold`."""
    function_call: sa.ColumnElement[Any] = getattr(sa.func, FOLD)(text)
    return function_call


def _as_jsonb(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    if isinstance(column, sa.Column) and (column.table.name, column.name) == (
        "messages",
        "metadata",
    ):
        return sa.literal_column(f"messages.{COPIED_METADATA}", postgresql.JSONB)
    return sa.cast(column, postgresql.JSONB)


def _contains(whole: sa.ColumnElement[Any], slots: Slots) -> sa.ColumnElement[bool]:
    return whole.op("@>", is_comparison=True, return_type=sa.Boolean())(slots.take(_JSONB_TEXT))


def _text(value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    plain = value.op("#>>", return_type=sa.Text())(sa.literal_column("'{}'"))
    number = sa.cast(sa.func.trim_scale(sa.cast(plain, sa.Numeric)), sa.Text())
    text = sa.case(
        (_is(value, "string") | _is(value, "boolean"), plain),
        (_is(value, "number"), number),
    )
    return sa.collate(text, "C")


def _number(value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    plain = value.op("#>>", return_type=sa.Text())(sa.literal_column("'{}'"))
    is_number_text = plain.op("~", is_comparison=True)(sa.literal_column(f"'^({NUMERIC})$'"))
    return sa.case(
        (_is(value, "number"), sa.cast(value, sa.Numeric)),
        (_is(value, "string"), sa.case((is_number_text, sa.cast(plain, sa.Numeric)))),
    )


def _is(value: sa.ColumnElement[Any], type_: str) -> sa.ColumnElement[bool]:
    return sa.func.jsonb_typeof(value) == sa.literal_column(f"'{type_}'")
