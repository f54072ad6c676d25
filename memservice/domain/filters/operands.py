"""Checks an operand of a filter against the type of its column. Raises InvalidInput with a sentence
that names the expected type."""

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
    """`value` in the type of a column of `kind` (None: boolean). Raises InvalidInput."""
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
    """A number, or the number that a string spells: an integer of 64 bits or a finite double."""
    if isinstance(value, str) and (spelled := number_spelled(value)) is not None:
        return spelled
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput.at(*loc, message=_expected("numeric", value, "a number"))
    if not (math.isfinite(value) if isinstance(value, float) else INT_MIN <= value <= INT_MAX):
        raise InvalidInput.at(
            *loc,
            message=(
                f"Invalid numeric value: {shown(value)}. Numbers must be finite doubles or "
                "64-bit integers"
            ),
        )
    return value


def number_spelled(text: str) -> int | float | None:
    """The number that `text` spells; None for any other text, for integers beyond 64 bits and for
    numbers that are not finite doubles."""
    if not _NUMERIC.fullmatch(text):
        return None
    value: int | float = int(text) if _INTEGER.fullmatch(text) else float(text)
    if isinstance(value, int):
        return value if INT_MIN <= value <= INT_MAX else None
    return value if math.isfinite(value) else None


def _expected(kind: str, value: object, expected: str) -> str:
    return f"Invalid {kind} value: {shown(value)}. Expected {expected}, got {type_name(value)}"
