"""Finds JSON in the text of a model, and accepts the mistakes that models make (trailing commas,
single quotes, Python's literals, a missing end)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from json import decoder as json_decoder
from math import isfinite
from typing import Any, NoReturn

from msgspec import Struct

from memservice.domain.json_schema import violation

MAX_DEPTH = 64
"""Levels of nested lists and objects."""
MAX_FAILURES = 50
"""The search ends after so many brackets that do not begin a document."""

_START = re.compile(r"[{\[]")
_BLANKS = re.compile(r"\s*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SINGLE = re.compile(r"'((?:[^'\\]|\\.|'(?!\s*(?:[,:}\]]|\Z)))*)'", re.DOTALL)
# Not `*+`: `re` of Python 3.11.2 ends a possessive group with alternatives too early.
_SURROGATE = re.compile("[\ud800-\udfff]")
_scan_string = json_decoder.scanstring  # type: ignore[attr-defined]
_LITERALS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


class Document(Struct, frozen=True):
    value: Any
    is_whole: bool = True
    """False if the text ended inside it: then `value` has the complete items of its lists."""


class Unreadable(ValueError):
    """There is no JSON document, or none that fits the schema. The text names the problem and
    quotes nothing."""


def read(
    text: str, schema: Mapping[str, Any], shape: Callable[[Any], Any] = lambda value: value
) -> Document:
    """The last document in a text that fits the schema after `shape` is applied to it; a complete
    one is preferred to one that is cut. Raises Unreadable."""
    wrong: str | None = None
    cut: Document | None = None
    for document in reversed(list(documents(text))):
        value = shape(coerced(document.value, schema))
        problem = violation(schema, value)
        if problem is None and document.is_whole:
            return Document(value)
        if problem is None and cut is None:
            cut = Document(value, is_whole=False)
        wrong = wrong or problem
    if cut is not None:
        return cut
    raise Unreadable(wrong or "there is no JSON document in it")


def documents(text: str) -> Iterator[Document]:
    """The documents in a text, in order; only the last one can be cut. They are `storable`."""
    position = failures = 0
    while failures < MAX_FAILURES and (start := _START.search(text, position)):
        try:
            value, position = _DECODER.raw_decode(text, start.start())
            document = Document(storable(value))
        except (ValueError, RecursionError):
            reader = _LenientReader(text, start.start())
            try:
                document = Document(storable(reader.value(0)), reader.is_whole)
            except ValueError:
                failures += 1
                position = start.end()
                continue
            position = reader.position
        yield document


def coerced(value: Any, schema: Any) -> Any:
    """The value with numbers where the schema has numbers and the model wrote text."""
    if not isinstance(schema, Mapping):
        return value
    kind = schema.get("type")
    if isinstance(value, str) and kind in ("integer", "number"):
        text = value.strip().strip("[]#").strip()
        if _NUMBER.fullmatch(text):
            is_integer = kind == "integer" and text.lstrip("-").isdigit()
            try:
                return int(text) if is_integer else finite(text)
            except ValueError:  # too large: the text does not fit the schema
                return value
        return value
    if isinstance(value, list) and "items" in schema:
        return [coerced(item, schema["items"]) for item in value]
    properties = schema.get("properties")
    if isinstance(value, dict) and isinstance(properties, Mapping):
        return {name: coerced(inner, properties.get(name)) for name, inner in value.items()}
    return value


def storable(value: Any) -> Any:
    """The value as it can be stored, counted and written as JSON: texts without NUL and lone
    surrogates, and texts in place of NaN and infinite numbers."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value.replace("\0", ""))
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {storable(name): storable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [storable(inner) for inner in value]
    return value


def flaw(value: Any) -> str | None:
    """Why a parsed value cannot be used and written as JSON again, as a sentence that names the
    place: a NaN or infinite number (Python reads `NaN` and `1e999`), or more than `MAX_DEPTH`
    levels. None for a good value."""
    open_: list[tuple[str, Any, int]] = [("$", value, 0)]
    while open_:
        location, part, depth = open_.pop()
        if isinstance(part, float) and not isfinite(part):
            return f"{location} must be a finite number: JSON has no NaN and no Infinity"
        if not isinstance(part, (dict, list)):
            continue
        if depth == MAX_DEPTH:
            return f"{location} is nested more than {MAX_DEPTH} levels deep"
        named = part.items() if isinstance(part, dict) else enumerate(part)
        is_list = isinstance(part, list)
        open_ += [
            (f"{location}[{name}]" if is_list else f"{location}.{name}", inner, depth + 1)
            for name, inner in named
        ]
    return None


def finite(text: str) -> float:
    """The number in a text. Raises ValueError for one too large for a float: as infinity it could
    not be written as JSON again."""
    number = float(text)
    if not isfinite(number):
        raise ValueError("the number is too large")
    return number


def refuse(literal: str) -> NoReturn:
    """Raise ValueError for `NaN` or `Infinity`."""
    raise ValueError(f"{literal} is not JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=refuse, parse_float=finite)


class _Cut(Exception):
    """The text ended inside a value that cannot be used in part."""


class _LenientReader:
    """Reads one value from a position. Raises ValueError for text that is not JSON even with the
    accepted mistakes."""

    def __init__(self, text: str, position: int) -> None:
        self.position = position
        self.is_whole = True
        self._text = text

    def value(self, depth: int) -> Any:
        try:
            return self._value(depth)
        except _Cut:
            raise Unreadable("the document is cut") from None

    def _value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ValueError("too deep")
        character = self._next()
        if character == "{":
            return self._object(depth)
        if character == "[":
            return self._list(depth)
        if character in "\"'":
            return self._string(character)
        if number := _NUMBER.match(self._text, self.position):
            self.position = number.end()
            if self.position == len(self._text):
                raise _Cut
            return _DECODER.decode(number[0])
        word = _WORD.match(self._text, self.position)
        if word is not None and word.end() == len(self._text):
            raise _Cut
        if word is None or word[0] not in _LITERALS:
            raise ValueError("no value")
        self.position = word.end()
        return _LITERALS[word[0]]

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        self.position += 1
        try:
            while self._next() != "]":
                item = self._value(depth + 1)
                if not self.is_whole:
                    return items
                items.append(item)
                self._separator("]")
        except _Cut:
            self._end()
            return items
        self.position += 1
        return items

    def _object(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self.position += 1
        try:
            while self._next() != "}":
                quote = self._text[self.position]
                if quote not in "\"'":
                    raise ValueError("no name")
                name = self._string(quote)
                if self._next() != ":":
                    raise ValueError("no colon")
                self.position += 1
                value = self._value(depth + 1)
                if self.is_whole or isinstance(value, (list, dict)):
                    members[name] = value
                if not self.is_whole:
                    return members
                self._separator("}")
        except _Cut:
            self._end()
            return members
        self.position += 1
        return members

    def _separator(self, closing: str) -> None:
        character = self._next()
        if character == ",":
            self.position += 1
        elif character != closing:
            raise ValueError("no comma")

    def _string(self, quote: str) -> str:
        if quote == '"':
            try:
                text: str
                text, self.position = _scan_string(self._text, self.position + 1, False)
            except ValueError as error:
                if str(error).startswith("Unterminated"):
                    raise _Cut from None
                raise
            return text
        match = _SINGLE.match(self._text, self.position)
        if match is None:
            raise _Cut
        self.position = match.end()
        inner = match[1].replace("\\'", "'").replace('\\"', '"').replace('"', '\\"')
        decoded: str = json.loads(f'"{inner}"', strict=False)
        return decoded

    def _next(self) -> str:
        blanks = _BLANKS.match(self._text, self.position)
        self.position = blanks.end() if blanks else self.position
        if self.position >= len(self._text):
            raise _Cut
        return self._text[self.position]

    def _end(self) -> None:
        self.is_whole = False
        self.position = len(self._text)
