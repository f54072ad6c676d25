"""Requests and answers of reasoners as JSON, and frames of bytes on a pipe. Not pickle: reading
runs no code."""

from __future__ import annotations

import struct
import types
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import asdict

from memservice.spi import toolbox

T = TypeVar("T")

HEAD = struct.Struct(">Q")
"""The beginning of a frame: the number of bytes that follow."""


def encoded(value: Any) -> Any:
    """A record as JSON values: its fields by their names, times in ISO 8601."""
    if isinstance(value, Struct):
        return {name: encoded(item) for name, item in asdict(value).items()}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: encoded(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [encoded(item) for item in value]
    return value


def decoded(record: type[T], value: Any) -> T:
    """The record that was encoded."""
    return cast(T, _decoded(record, value))


def _decoded(hint: Any, value: Any) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if value is None or hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return _decoded(next(one for one in inner if one is not type(None)), value)
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = _hints(hint)
        return hint(**{name: _decoded(hints[name], item) for name, item in value.items()})
    if hint is datetime:
        return datetime.fromisoformat(value)
    if origin is tuple:
        return tuple(_decoded(inner[0], item) for item in value)
    if isinstance(value, list):
        return [_decoded(inner[0], item) for item in value]
    if isinstance(value, dict):
        return {key: _decoded(inner[1], item) for key, item in value.items()}
    return value


@cache
def _hints(record: Any) -> dict[str, Any]:
    # The reasoner seam imports these two for type checkers only.
    return get_type_hints(record, localns={"Toolbox": toolbox.Toolbox, "Step": toolbox.Step})
