"""Decodes and checks values of callers: JSON, metadata, NUL and names.

JSON is limited to what every store can store: finite doubles, integers of 64 bits, text without
lone surrogates, bounded nesting.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, NoReturn

from memservice.domain.errors import InvalidInput
from memservice.domain.sizes import MAX_METADATA

Loc = tuple[str | int, ...]

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
JSON_DEPTH_MAX = 100
"""Levels of nested containers; the outermost one is 1."""
JSON_VALUES_MAX = 1_000_000
"""Values in one body. A body within the size limit could contain so many small values that decoding
blocks the process for a minute."""

METADATA_KEYS_MAX = 100
METADATA_DEPTH_MAX = 5

NAME_MAX = 512
SCOPE_NAME_MAX = 506

_CONTAINERS = (dict, list)
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters, except tabs and ends of lines."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_STRING_OR_MARK = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[,\[{]', re.DOTALL)
_OUT_OF_RANGE = "Number out of range: {}. Numbers must be finite doubles or 64-bit integers"
_TOO_MANY = f"JSON may hold at most {JSON_VALUES_MAX} values: send it in parts"
_TOO_DEEP = f"JSON may be nested at most {JSON_DEPTH_MAX} levels deep"


def shown(value: object, limit: int = 100) -> str:
    """`value` for an error message: at most `limit` characters, encodable as UTF-8."""
    # Giant integers and deep lists cannot be printed.
    if isinstance(value, int) and value.bit_length() > 1000:
        return "<integer>"
    if isinstance(value, dict | list):
        return "{…}" if isinstance(value, dict) else "[…]"
    text = str(value)
    return _SURROGATE.sub("\ufffd", text if len(text) <= limit else text[: limit - 1] + "…")


def storable(text: str, limit: int) -> str:
    """`text` in a form that every store accepts: at most `limit` characters, without U+0000 and
    lone surrogates."""
    return _SURROGATE.sub("\ufffd", text[:limit].replace("\0", ""))


def printable(text: str) -> str:
    """`text` for a terminal or a log: with the same lines, and without control characters that a
    terminal would execute."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


class _OutOfRange(ValueError):
    """A number literal that no column can hold."""


def _int(literal: str) -> int:
    if len(literal) <= 20:  # "-" and 19 digits: a longer literal is out of range
        number = int(literal)
        if INT_MIN <= number <= INT_MAX:
            return number
    raise _OutOfRange(_OUT_OF_RANGE.format(shown(literal)))


def _float(literal: str) -> float:
    number = float(literal)
    if math.isfinite(number):
        return number
    raise _OutOfRange(_OUT_OF_RANGE.format(shown(literal)))


def _constant(literal: str) -> NoReturn:
    raise _OutOfRange(_OUT_OF_RANGE.format(literal))


# fast path: see docs/decisions/fast-paths.md#json-bodies
# Numbers are rare in bodies: hooks for them cost less than a visit to every value.
_DECODER = json.JSONDecoder(parse_int=_int, parse_float=_float, parse_constant=_constant)


def loads(raw: bytes, loc: Sequence[str | int] = ("body",)) -> Any:
    """The JSON value in `raw` (UTF-8), which passes `check_json`. NUL is not removed.

    Raises InvalidInput: kind `json_invalid` at `loc` + byte or character offset for text that is
    not JSON, `value_error` for JSON that cannot be stored.
    """
    try:
        text = raw.decode("utf-8")
        if _too_many(text):
            raise InvalidInput.at(*loc, message=_TOO_MANY)
        value = _DECODER.decode(text)
    except UnicodeDecodeError as error:
        raise InvalidInput.at(
            *loc, error.start, message="JSON decode error: not UTF-8", kind="json_invalid"
        ) from error
    except json.JSONDecodeError as error:
        raise InvalidInput.at(
            *loc, error.pos, message=f"JSON decode error: {error.msg}", kind="json_invalid"
        ) from error
    except _OutOfRange as error:
        raise InvalidInput.at(*loc, message=str(error)) from error
    except RecursionError as error:
        raise InvalidInput.at(*loc, message=_TOO_DEEP) from error
    # Only bodies with many brackets can be deep; only those with such an escape can contain a lone
    # surrogate.
    if text.count("{") + text.count("[") > JSON_DEPTH_MAX and _depth(value) > JSON_DEPTH_MAX:
        raise InvalidInput.at(*loc, message=_TOO_DEEP)
    if "\\u" in text and _SURROGATE_ESCAPE.search(text):
        check_json(value, loc)
    return value


def _too_many(text: str) -> bool:
    """Whether there are more than `JSON_VALUES_MAX` values. Each value but the first follows a mark
    outside the strings. The first count includes marks inside strings, and is enough for nearly all
    texts."""
    if text.count(",") + text.count("[") + text.count("{") <= JSON_VALUES_MAX:
        return False
    marks = (1 for match in _STRING_OR_MARK.finditer(text) if match.end() - match.start() == 1)
    return next(islice(marks, JSON_VALUES_MAX, None), None) is not None


def check_json(value: object, loc: Sequence[str | int]) -> None:
    """Raise InvalidInput, with the location of the first problem, unless every store can store
    `value`."""
    level: list[tuple[Loc, object]] = [(tuple(loc), value)]
    depth = 0
    while level:
        deeper: list[tuple[Loc, object]] = []
        for here, item in level:
            if isinstance(item, dict):
                for key, inner in item.items():
                    problem = _problem(key) if isinstance(key, str) else "Keys must be strings"
                    if problem:
                        raise InvalidInput.at(*here, shown(key), message=problem)
                    deeper.append(((*here, key), inner))
            elif isinstance(item, list):
                deeper.extend(((*here, index), inner) for index, inner in enumerate(item))
            elif problem := _problem(item):
                raise InvalidInput.at(*here, message=problem)
        depth += 1
        if deeper and depth > JSON_DEPTH_MAX:
            raise InvalidInput.at(*loc, message=_TOO_DEEP)
        level = deeper


def _problem(item: object) -> str | None:
    """The problem of a scalar, or None."""
    if isinstance(item, str):
        return (
            None
            if item.isascii() or not _SURROGATE.search(item)
            else "Text must not contain lone surrogates"
        )
    if item is None or isinstance(item, bool):
        return None
    if isinstance(item, int):
        return None if INT_MIN <= item <= INT_MAX else _OUT_OF_RANGE.format(shown(item))
    if isinstance(item, float):
        return None if math.isfinite(item) else _OUT_OF_RANGE.format(shown(item))
    return f"Not a JSON value: {type(item).__name__}"


def _depth(value: object) -> int:
    """Levels of nested containers. It visits containers only and stops just above the maximum."""
    level: list[Any] = [value] if isinstance(value, _CONTAINERS) else []
    depth = 0
    while level and depth <= JSON_DEPTH_MAX:
        depth += 1
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, dict | list)
        ]
    return depth


def strip_nul(value: Any) -> Any:
    """`value` without U+0000 in texts and keys. `value` is bounded JSON (`loads`,
    `check_json`)."""
    if isinstance(value, str):
        return value.replace("\0", "") if "\0" in value else value
    if isinstance(value, dict):
        return {strip_nul(key): strip_nul(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [strip_nul(inner) for inner in value]
    return value


def check_size(value: object, loc: Sequence[str | int], subject: str) -> None:
    """Raise InvalidInput for JSON of more than 64 KiB. `subject` names it in the error."""
    # A character has one to four bytes, so most values need no encoding to be measured.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(text) * 4 > MAX_METADATA and (
        len(text) > MAX_METADATA or len(text.encode("utf-8", "surrogatepass")) > MAX_METADATA
    ):
        raise InvalidInput.at(
            *loc, message=f"{subject} may have at most {MAX_METADATA} bytes as JSON"
        )


def check_metadata(value: object, loc: Sequence[str | int]) -> None:
    """Raise InvalidInput unless `value` is an object of at most 100 keys, 5 levels and 64 KiB.

    Only top-level keys count, and only objects directly in objects nest; the metadata object itself
    is level 1.
    """
    if not isinstance(value, dict):
        raise InvalidInput.at(*loc, message="Metadata must be an object", kind="dict_type")
    if len(value) > METADATA_KEYS_MAX:
        raise InvalidInput.at(
            *loc, message=f"Metadata may have at most {METADATA_KEYS_MAX} keys, got {len(value)}"
        )
    level = [value]
    for _ in range(METADATA_DEPTH_MAX):
        level = [inner for item in level for inner in item.values() if isinstance(inner, dict)]
        if not level:
            break
    else:
        raise InvalidInput.at(
            *loc, message=f"Metadata may be nested at most {METADATA_DEPTH_MAX} levels deep"
        )
    check_size(value, loc, "Metadata")


def name_problem(name: str, max_length: int = NAME_MAX) -> str | None:
    """Why `name` cannot be the id of a workspace, peer or session (or of a scope, which has a
    maximum of its own); None if it can."""
    if not name:
        return "String should have at least 1 character"
    if len(name) > max_length:
        return f"String should have at most {max_length} characters"
    if not _NAME.fullmatch(name):
        return "String should match pattern '^[a-zA-Z0-9_-]+$'"
    return None
