"""One operand of a filter: checked against the type of its column, or refused with a sentence."""

from __future__ import annotations

import math
import re
from typing import Any

from memservice.domain.errors import InvalidInput
from memservice.domain.filters.ast import Scalar
from memservice.domain.filters.jsontext import NUMERIC
from memservice.domain.filters.resources import Kind
from memservice.domain.times import parse_iso
from memservice.domain.values import INT_MAX, INT_MIN, Loc, check_json, shown, strip_nul

_NUMERIC = re.compile(NUMERIC)
_INTEGER = re.compile(r"-?[0-9]+")


def type_name(value: object) -> str:
    return type(value).__name__


def operand(kind: Kind | None, value: Any, loc: Loc) -> Scalar:
    """`value` as a column of `kind` compares with it; None is the kind of booleans. Raises InvalidInput."""
    match kind:
        case Kind.TEXT:
            return text(value, loc)
        case Kind.NUMBER:
            return number(value, loc)
        case Kind.TIME:
            if not isinstance(value, str):
                raise InvalidInput.at(*loc, message=f"Invalid datetime value: {shown(value)}")
            try:
                return parse_iso(value)
            except ValueError as error:
                raise InvalidInput.at(*loc, message=str(error)) from error
        case None:
            if isinstance(value, bool):
                return value
            raise InvalidInput.at(*loc, message=_expected("boolean", value, "true or false"))
        case _:
            raise ValueError(f"a column of kind {kind} has no scalar operands")


def text(value: Any, loc: Loc) -> str:
    if not isinstance(value, str):
        raise InvalidInput.at(*loc, message=_expected("string", value, "a string"))
    check_json(value, loc)
    return str(strip_nul(value))


def number(value: Any, loc: Loc) -> int | float:
    """A number, or a string that spells one, of 64 bits if it is an integer and finite otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or (isinstance(value, str) and not _NUMERIC.fullmatch(value)):
        raise InvalidInput.at(*loc, message=_expected("numeric", value, "a number"))
    found: int | float = value if not isinstance(value, str) else int(value) if _INTEGER.fullmatch(value) else float(value)
    if isinstance(found, int) and not INT_MIN <= found <= INT_MAX:
        raise InvalidInput.at(*loc, message=f"Invalid numeric value: {shown(value)}. Integers must fit 64 bits")
    if isinstance(found, float) and not math.isfinite(found):
        raise InvalidInput.at(*loc, message=f"Invalid numeric value: {shown(value)}. Numbers must be finite")
    return found


def spells_number(value: Any) -> bool:
    """Whether `value` is a number, or a string that spells one."""
    if isinstance(value, str):
        return _NUMERIC.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def _expected(kind: str, value: object, wanted: str) -> str:
    return f"Invalid {kind} value: {shown(value)}. Expected {wanted}, got {type_name(value)}"
