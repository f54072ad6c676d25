"""Conditions inside JSON, in SQLite's own functions where these are exact, and by the reference
evaluator where they are not.

SQLite finds a value fifteen times faster than Python evaluates a condition, but it has no decimals,
converts long numbers inexactly, gives objects as text, and does not unescape keys. So its functions
decide about texts, booleans, nulls and integers (`_SMALL`); rows that hold anything else at that
key are left to `memservice_matches`, which is called for those rows only.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
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
from memservice_sql.dialect import JsonLeaf
from memservice_sql.statements import Slots
from memservice_sqlite.functions import FOLD, MATCHES, spelled
from memservice_sqlite.json_text import encode

Part = tuple[str, list[Any]]
"""What shapes the SQL of one part of a condition, and the values of its slots. The parts of a
condition are ANDed."""

_SMALL = 2**53
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,14}")
_NUMBER = re.compile(r"-?[0-9.]+")
_STRUCTURE = ("{", "[")
_NO: sa.ColumnElement[Any] = sa.literal_column("0")
_OPERATORS: dict[str, Callable[[Any, Any], sa.ColumnElement[bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def parts(leaf: JsonLeaf) -> list[Part]:
    """What to ask of a row; the cheap questions first."""
    match leaf:
        case Contains(_, dict() as wanted):
            found = list(_contained(wanted, "$", leaf)) or [_asked(leaf)]
            # What only Python can tell, it tells once and last.
            cheap = [part for part in found if part[0] != "asked"]
            return cheap if len(cheap) == len(found) else [*cheap, _asked(leaf)]
        case KeyEqual(_, key, text) if (path := _path("$", key)) and text[:1] not in _STRUCTURE:
            if text in ("true", "false"):
                return [("text or type", [path, text])]
            if _INTEGER.fullmatch(text):
                return [("text or integer", [path, text, int(text), spelled(leaf)])]
            if _NUMBER.fullmatch(text) is None:
                return [("text", [path, text])]
        case KeyOneOf(_, key, texts) if (path := _path("$", key)) and not any(
            map(_ambiguous, texts)
        ):
            return [("one of", [path, encode(texts)])]
        case KeyCompare(_, key, op, str() as operand) if path := _path("$", key):
            return [(f"text {op}", [path, operand, spelled(leaf)])]
        case KeyCompare(_, key, op, int() | float() as operand) if (
            path := _path("$", key)
        ) and abs(operand) < _SMALL:
            return [(f"integer {op}", [path, operand, spelled(leaf)])]
        case KeySubstring(_, key, needle) if path := _path("$", key):
            return [("substring", [path, fold(needle), spelled(leaf)])]
    return [_asked(leaf)]


def condition(column: sa.ColumnElement[Any], shape: str, slots: Slots) -> sa.ColumnElement[bool]:
    """The SQL of a part of that shape. May be null."""
    if shape == "asked":
        return sa.and_(
            sa.func.instr(sa.func.coalesce(column, ""), slots.take(sa.Text())) > 0,
            _asking(column, slots),
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
                real=_asking(column, slots),
                others=_NO,
            )
        case ["text", "or", "integer"]:
            holds, integer = value == slots.take(sa.Text()), value == slots.take(sa.BigInteger())
            return _choose(
                type_, text=holds, integer=integer, real=_asking(column, slots), others=_NO
            )
        case ["text", op]:
            holds = _OPERATORS[op](value, slots.take(sa.Text()))
            return _choose(type_, text=holds, null=_NO, others=_asking(column, slots))
        case ["integer", op]:
            holds = _OPERATORS[op](value, slots.take(sa.types.NullType()))
            return _choose(type_, integer=holds, null=_NO, others=_asking(column, slots))
        case ["substring"]:
            holds = sa.func.instr(folded(value), slots.take(sa.Text())) > 0
            return _choose(type_, text=holds, null=_NO, others=_asking(column, slots))
    raise AssertionError(f"no shape {shape!r}")


def folded(text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Text as `memservice.domain.filters.jsontext.fold` makes it; SQLite itself does ASCII only."""
    ascii_only = sa.func.length(text) == sa.func.length(sa.cast(text, sa.LargeBinary))
    return sa.case((ascii_only, sa.func.lower(text)), else_=getattr(sa.func, FOLD)(text))


def _asking(column: sa.ColumnElement[Any], slots: Slots) -> sa.ColumnElement[bool]:
    asked: sa.ColumnElement[bool] = getattr(sa.func, MATCHES)(column, slots.take(sa.Text())) == 1
    return asked


def _choose(
    type_: sa.ColumnElement[Any], *, others: sa.ColumnElement[Any], **by_type: sa.ColumnElement[Any]
) -> sa.ColumnElement[bool]:
    """The condition for the JSON type that the value has."""
    return (
        sa.case(
            *[(type_ == sa.literal_column(f"'{name}'"), holds) for name, holds in by_type.items()],
            else_=others,
        )
        == 1
    )


def _contained(wanted: dict[str, Any], path: str, leaf: Contains) -> Iterator[Part]:
    for key, inner in wanted.items():
        below = _path(path, key)
        if below is None:
            yield _asked(leaf)
        elif isinstance(inner, bool):
            yield "type", [below, "true" if inner else "false"]
        elif isinstance(inner, int) and abs(inner) < _SMALL:
            yield "integer", [below, inner, spelled(leaf)]
        elif isinstance(inner, str) and inner[:1] not in _STRUCTURE:
            yield "text", [below, inner]
        elif isinstance(inner, dict) and inner:
            yield from _contained(inner, below, leaf)
        elif inner == {}:
            yield "type", [below, "object"]
        else:
            yield _asked(leaf)


def _asked(leaf: JsonLeaf) -> Part:
    return "asked", [_piece(leaf), spelled(leaf)]


def _path(above: str, key: str) -> str | None:
    """The path of a key, if SQLite can be given it as it is."""
    return f'{above}."{key}"' if encode(key) == f'"{key}"' else None


def _ambiguous(text: str) -> bool:
    """May something else than a text have this text, or does SQLite give it as that?"""
    return (
        text[:1] in _STRUCTURE or text in ("true", "false") or _NUMBER.fullmatch(text) is not None
    )


def _piece(leaf: JsonLeaf) -> str:
    """A piece of text that is in the JSON of every row that matches, as `json_text` writes it;
    empty if none is known."""
    match leaf:
        case Contains(_, wanted):
            return max(_pieces(wanted), key=len, default="")
        case Holds(_, item):
            return encode(item)
        case _:
            return f"{encode(leaf.key)}:"


def _pieces(wanted: Any) -> Iterator[str]:
    if isinstance(wanted, dict):
        for key, inner in wanted.items():
            exact = inner is None or isinstance(inner, bool | str)
            yield f"{encode(key)}:{encode(inner) if exact else ''}"
            yield from _pieces(inner)
    elif isinstance(wanted, list):
        for item in wanted:
            yield from _pieces(item)
    elif isinstance(wanted, str):
        yield encode(wanted)
