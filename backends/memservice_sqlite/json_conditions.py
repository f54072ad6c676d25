"""Conditions inside JSON: SQLite's own functions where they are exact, else the reference
evaluator.

SQLite finds a value fifteen times faster than Python evaluates a condition, but it has no decimals,
converts long numbers inexactly, returns objects as text, and does not unescape keys. So its
functions decide about texts, booleans, nulls and integers (`_SMALL`). `memservice_matches` is
called only for rows with any other value at that key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from memservice.domain.filters.ast import (
    Contains,
    Holds,
    KeyCompare,
    KeyEqual,
    KeyOneOf,
    KeySubstring,
)
from memservice.domain.filters.jsontext import fold
from memservice_sql.dialect import COMPARISONS, JsonLeaf
from memservice_sql.statements import Slots
from memservice_sqlite.functions import FOLD, MATCHES, encode_leaf
from memservice_sqlite.json_text import encode

Part = tuple[str, list[Any]]
"""The shape that determines the SQL of one part of a condition, and the values of its slots. The
parts of a condition are ANDed."""

_SMALL = 2**53
_FEW = 3
"""Items of a list that SQLite looks for one by one, each in the whole stored list."""
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,14}")
_NUMBER = re.compile(r"-?[0-9.]+")
_STRUCTURE = ("{", "[")
_NO: sa.ColumnElement[Any] = sa.literal_column("0")


def parts(leaf: JsonLeaf) -> list[Part]:
    """The parts of the condition on a row, cheap ones first."""
    match leaf:
        case Contains(_, dict() as value):
            parts_found = list(_contained(value, "$", leaf)) or [_evaluated(leaf)]
            # Everything that needs Python is evaluated in one call, last.
            cheap = [part for part in parts_found if part[0] != "evaluated"]
            return cheap if len(cheap) == len(parts_found) else [*cheap, _evaluated(leaf)]
        case KeyEqual(_, key, text) if (path := _path("$", key)) and text[:1] not in _STRUCTURE:
            if text in ("true", "false"):
                return [("text or type", [path, text])]
            if _INTEGER.fullmatch(text):
                return [("text or integer", [path, text, int(text), encode_leaf(leaf)])]
            if _NUMBER.fullmatch(text) is None:
                return [("text", [path, text])]
        case KeyOneOf(_, key, texts) if (path := _path("$", key)) and not any(
            map(_ambiguous, texts)
        ):
            return [("one of", [path, encode(texts)])]
        case KeyCompare(_, key, op, str() as operand) if path := _path("$", key):
            return [(f"text {op}", [path, operand, encode_leaf(leaf)])]
        case KeyCompare(_, key, op, int() | float() as operand) if (
            path := _path("$", key)
        ) and abs(operand) < _SMALL:
            return [(f"integer {op}", [path, operand, encode_leaf(leaf)])]
        case KeySubstring(_, key, needle) if path := _path("$", key):
            return [("substring", [path, fold(needle), encode_leaf(leaf)])]
    return [_evaluated(leaf)]


def condition(column: sa.ColumnElement[Any], shape: str, slots: Slots) -> sa.ColumnElement[bool]:
    """The SQL of a part of that shape. Its value may be null."""
    if shape == "evaluated":
        return sa.and_(
            sa.func.instr(sa.func.coalesce(column, ""), slots.take(sa.Text())) > 0,
            _evaluation(column, slots),
        )
    holds: sa.ColumnElement[bool]
    path = slots.take(sa.Text())
    value, type_ = (
        sa.func.json_extract(column, path),
        sa.func.coalesce(sa.func.json_type(column, path), "null"),
    )
    match shape.split():
        case ["text"]:
            return value == slots.take(sa.Text())
        case ["member", kind]:
            items = sa.func.json_each(column, path).table_valued("value", "type")
            value_type: sa.types.TypeEngine[Any] = sa.Text() if kind == "text" else sa.BigInteger()
            types = ["'text'"] if kind == "text" else ["'integer'", "'real'"]
            is_member = sa.exists().where(
                items.c.value == slots.take(value_type),
                items.c.type.in_([sa.literal_column(name) for name in types]),
            )
            return (type_ == sa.literal_column("'array'")) & is_member
        case ["type"]:
            return type_ == slots.take(sa.Text())
        case ["text", "or", "type"]:
            text = slots.take(sa.Text())
            return (value == text) | (type_ == text)
        case ["one", "of"]:
            return value.in_(
                sa.select(sa.func.json_each(slots.take(sa.Text())).table_valued("value").c.value)
            )
        case ["integer"]:
            return _choose(
                type_,
                integer=value == slots.take(sa.BigInteger()),
                real=_evaluation(column, slots),
                others=_NO,
            )
        case ["text", "or", "integer"]:
            holds, integer = value == slots.take(sa.Text()), value == slots.take(sa.BigInteger())
            return _choose(
                type_, text=holds, integer=integer, real=_evaluation(column, slots), others=_NO
            )
        case ["text", op]:
            holds = COMPARISONS[op](value, slots.take(sa.Text()))
            return _choose(type_, text=holds, null=_NO, others=_evaluation(column, slots))
        case ["integer", op]:
            holds = COMPARISONS[op](value, slots.take(sa.types.NullType()))
            return _choose(type_, integer=holds, null=_NO, others=_evaluation(column, slots))
        case ["substring"]:
            holds = sa.func.instr(folded(value), slots.take(sa.Text())) > 0
            return _choose(type_, text=holds, null=_NO, others=_evaluation(column, slots))
    raise AssertionError(f"no shape {shape!r}")


def folded(text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The text as folded by `memservice.domain.filters.jsontext.fold`. SQLite's `lower` handles
    ASCII only."""
    ascii_only = sa.func.length(text) == sa.func.length(sa.cast(text, sa.LargeBinary))
    return sa.case((ascii_only, sa.func.lower(text)), else_=getattr(sa.func, FOLD)(text))


def _evaluation(column: sa.ColumnElement[Any], slots: Slots) -> sa.ColumnElement[bool]:
    evaluation: sa.ColumnElement[bool] = (
        getattr(sa.func, MATCHES)(column, slots.take(sa.Text())) == 1
    )
    return evaluation


def _choose(
    type_: sa.ColumnElement[Any], *, others: sa.ColumnElement[Any], **by_type: sa.ColumnElement[Any]
) -> sa.ColumnElement[bool]:
    """The condition that applies to the JSON type of the value."""
    return (
        sa.case(
            *[(type_ == sa.literal_column(f"'{name}'"), holds) for name, holds in by_type.items()],
            else_=others,
        )
        == 1
    )


def _contained(value: dict[str, Any], path: str, leaf: Contains) -> Iterator[Part]:
    for key, inner in value.items():
        inner_path = _path(path, key)
        if inner_path is None:
            yield _evaluated(leaf)
        elif isinstance(inner, bool):
            yield "type", [inner_path, "true" if inner else "false"]
        elif isinstance(inner, int) and abs(inner) < _SMALL:
            yield "integer", [inner_path, inner, encode_leaf(leaf)]
        elif isinstance(inner, str) and inner[:1] not in _STRUCTURE:
            yield "text", [inner_path, inner]
        elif isinstance(inner, dict) and inner:
            yield from _contained(inner, inner_path, leaf)
        elif inner == {}:
            yield "type", [inner_path, "object"]
        elif isinstance(inner, list) and 0 < len(inner) <= _FEW and all(map(_is_exact, inner)):
            for item in inner:
                yield f"member {'text' if isinstance(item, str) else 'number'}", [inner_path, item]
        else:
            yield _evaluated(leaf)


def _is_exact(item: Any) -> bool:
    """Whether SQLite compares such an item of a list as `contains` does."""
    return isinstance(item, str) or (
        isinstance(item, int) and not isinstance(item, bool) and abs(item) < _SMALL
    )


def _evaluated(leaf: JsonLeaf) -> Part:
    return "evaluated", [_piece(leaf), encode_leaf(leaf)]


def _path(above: str, key: str) -> str | None:
    """The path of a key; None if the key would need escapes, which SQLite does not decode."""
    return f'{above}."{key}"' if encode(key) == f'"{key}"' else None


def _ambiguous(text: str) -> bool:
    """Whether a value that is not a text can have this text, also as SQLite returns it."""
    return (
        text[:1] in _STRUCTURE or text in ("true", "false") or _NUMBER.fullmatch(text) is not None
    )


def _piece(leaf: JsonLeaf) -> str:
    """A substring of the JSON, as `json_text` writes it, of every matching row; empty if there is
    none."""
    match leaf:
        case Contains(_, value):
            return max(_pieces(value), key=len, default="")
        case Holds(_, item):
            return encode(item)
        case _:
            return f"{encode(leaf.key)}:"


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            exact = inner is None or isinstance(inner, bool | str)
            yield f"{encode(key)}:{encode(inner) if exact else ''}"
            yield from _pieces(inner)
    elif isinstance(value, list):
        for item in value:
            yield from _pieces(item)
    elif isinstance(value, str):
        yield encode(value)
