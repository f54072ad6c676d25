"""A JSON document for a schema, filled with evidence where it has a place and with neutral values
where it has none.

The schema is of the subset that requests may give (checked before it comes here): a root object;
primitives, nested objects, arrays, enums, `anyOf`/`oneOf`, lists of types, `required`, `default`,
root-level `$defs`/`definitions` with references that do not recurse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from memservice.domain.json_schema import Enums, frozen, problem
from memservice_extractive.evidence import Piece, cited, terms
from memservice_extractive.json_schema import matches, resolved, types_of
from memservice_extractive.language import fold

Schema = dict[str, Any]

_NUMBER = re.compile(r"(?<![\w.])-?\d{1,15}(?:\.\d{1,6})?(?![\w.]*\d)")
_SOURCES = frozenset(
    {"source", "sources", "citation", "citations", "evidence", "reference", "references", "quotes"}
)
_UNSAID = ("unknown", "none", "n/a", "other", "unspecified", "neutral", "not_found", "unclear")
_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")
_DESCRIBED = 1_000
"""Characters of a description that tell what its property is about."""
_TRIED = 48
"""Candidates that are tried for one place, at most."""
_PLACES = 5_000
"""Places that are filled at most: references can make a short schema stand for a huge document."""


class Filler:
    """Fills one schema. `found` is best first; `unknown` is the sentence for a text about which
    nothing is known."""

    def __init__(self, schema: Schema, pieces: Sequence[Piece], unknown: str) -> None:
        self._root = schema
        self._found = pieces
        self._unknown = unknown
        self._left = _PLACES
        self._terms = {piece: terms(piece.text) for piece in pieces}
        self._hints: dict[str, set[str]] = {}
        self._enums: Enums = {}
        self._said = "\n".join(_spaced(piece.text) for piece in pieces)
        self._ordered: dict[int, list[Any]] = {}
        """The values of `enum` lists, best first, by the list's identity: references make one list
        stand for many places."""

    def value(self) -> Any:
        """Valid for the schema wherever any value is, save for patterns, formats and least lengths,
        which are hints."""
        return self._first(self._root, "")

    def _first(self, schema: Any, name: str) -> Any:
        self._left -= 1
        if self._left < 0:
            return None
        fallback: list[Any] = []
        for number, candidate in enumerate(self._candidates(schema, name)):
            if matches(candidate, schema, self._root, self._enums):
                return candidate
            fallback.append(candidate)
            if number >= _TRIED:
                break
        # Bounds that leave nothing are hints; what the answer is held to is its structure.
        return next(
            (
                value
                for value in fallback
                if problem(schema, value, self._root, self._enums) is None
            ),
            fallback[0] if fallback else None,
        )

    def _candidates(self, schema: Any, name: str) -> Iterator[Any]:
        """Values that may be valid, best first. Endless it is not, but long: callers stop at the
        first that fits."""
        schema = resolved(schema, self._root)
        if not isinstance(schema, dict):
            yield self._text(name, {})
            return
        if "const" in schema:
            yield schema["const"]
            return
        if "enum" in schema:
            yield from self._choices(schema["enum"])
            return
        options = schema.get("anyOf") or schema.get("oneOf")
        if options:
            yield from self._of_options(schema, options, name)
            return
        kinds = types_of(schema)
        if "default" in schema and not (kinds & {"string", "array", "object"} and self._found):
            yield schema["default"]
        for kind in _in_order(kinds, bool(self._found)):
            yield from self._of_kind(kind, schema, name)
        if "default" in schema:
            yield schema["default"]

    def _of_options(self, schema: Schema, options: Sequence[Any], name: str) -> Iterator[Any]:
        """Options with evidence first, null last, or first when nothing is known. Keywords beside
        the options hold for all of them."""
        beside = {
            key: value
            for key, value in schema.items()
            if key not in ("anyOf", "oneOf", "default", "description", "title")
        }
        merged = [_merged(resolved(option, self._root), beside) for option in options]
        nulls = [option for option in merged if _is_null(option)]
        others = [option for option in merged if not _is_null(option)]
        if "default" in schema and not self._found:
            yield schema["default"]
        ordered = [*others, *nulls] if self._found else [*nulls, *others]
        streams = [self._candidates(option, name) for option in ordered]
        for _ in range(_TRIED):
            for stream in streams:
                for candidate in stream:
                    yield candidate
                    break

    def _of_kind(self, kind: str, schema: Schema, name: str) -> Iterator[Any]:
        if kind == "null":
            yield None
        elif kind == "boolean":
            yield False
            yield True
        elif kind in ("integer", "number"):
            yield from self._numbers(kind, schema, name)
        elif kind == "string":
            yield from self._texts(schema, name)
        elif kind == "array":
            yield from self._arrays(schema, name)
        else:
            yield from self._objects(schema)

    def _objects(self, schema: Schema) -> Iterator[Schema]:
        properties: Schema = schema.get("properties") or {}
        required = dict.fromkeys(schema.get("required") or [])
        whole = {name: self._first(part, _hint(name, part)) for name, part in properties.items()}
        for name in required:
            if name not in whole:
                whole[name] = self._first({}, name)
        needed = {name: value for name, value in whole.items() if name in required}
        filled = {
            name: value
            for name, value in whole.items()
            if name in required or "default" in _dict(properties.get(name)) or self._found
        }
        yield filled
        yield whole
        yield needed

    def _arrays(self, schema: Schema, name: str) -> Iterator[list[Any]]:
        items = resolved(schema.get("items", {}), self._root)
        minimum, maximum = (
            int(schema.get("minItems", 0)),
            int(schema.get("maxItems", len(self._found) or 1)),
        )
        values: list[Any] = []
        if _takes_text(items):
            values = self._relevant_texts(name)
        else:
            values = [self._first(items, name)] if self._found or minimum else []
        fitting = [value for value in values if matches(value, items, self._root, self._enums)][
            : max(maximum, minimum)
        ]
        padded = [*fitting, *self._padding(items, name, fitting, minimum)]
        yield padded
        yield fitting
        yield []

    def _padding(self, items: Any, name: str, present: Sequence[Any], minimum: int) -> list[Any]:
        missing = minimum - len(present)
        if missing <= 0:
            return []
        fresh: list[Any] = []
        held = set(map(frozen, present))
        for number, candidate in enumerate(self._candidates(items, name)):
            if number > _TRIED or len(fresh) == missing:
                break
            if matches(candidate, items, self._root, self._enums) and frozen(candidate) not in held:
                held.add(frozen(candidate))
                fresh.append(candidate)
        return fresh + [self._first(items, name)] * (missing - len(fresh))

    def _choices(self, choices: Sequence[Any]) -> Sequence[Any]:
        """A choice that the evidence names, else one that says that nothing is known, else the
        others."""
        if id(choices) not in self._ordered:
            said = [
                choice
                for choice in choices
                if isinstance(choice, str) and choice.strip() and _spaced(choice) in self._said
            ]
            unsaid = [
                choice
                for choice in choices
                if choice is None or (isinstance(choice, str) and choice.casefold() in _UNSAID)
            ]
            self._ordered[id(choices)] = [*said, *unsaid, *choices]
        return self._ordered[id(choices)]

    def _numbers(self, kind: str, schema: Schema, name: str) -> Iterator[int | float]:
        """A number that stands in evidence about the property, else 0 or what is nearest to it
        within the bounds."""
        hint = self._hinted(name)
        for piece in self._found:
            if hint and hint & self._terms[piece]:
                for text in _NUMBER.findall(piece.text):
                    number = float(text)
                    yield int(number) if number.is_integer() else number
        low, high = (
            schema.get("minimum", schema.get("exclusiveMinimum")),
            schema.get("maximum", schema.get("exclusiveMaximum")),
        )
        yield 0
        for bound in (low, high):
            if isinstance(bound, (int, float)) and not isinstance(bound, bool):
                yield from (int(bound), int(bound) + 1, int(bound) - 1)
                if kind == "number":
                    yield bound
        step = schema.get("multipleOf")
        if isinstance(step, (int, float)) and step:
            yield step
        if isinstance(low, (int, float)) and isinstance(high, (int, float)) and kind == "number":
            yield (low + high) / 2
        yield from (1, -1, 2, 3)
        if kind == "number":
            yield from (0.5, -0.5, 1.5)

    def _texts(self, schema: Schema, name: str) -> Iterator[str]:
        for text in self._relevant_texts(name) or [self._unknown]:
            yield _shortened(text, schema)
        yield ""
        yield from ("-", "--", "---")

    def _text(self, name: str, schema: Schema) -> str:
        return next(self._texts(schema, name))

    def _relevant_texts(self, name: str) -> list[str]:
        near = self._near(name)
        if _SOURCES.intersection(fold(name).replace("_", " ").split()[:1]):
            return cited(near)
        return [piece.text for piece in near]

    def _hinted(self, name: str) -> set[str]:
        if name not in self._hints:
            self._hints[name] = terms(name)
        return self._hints[name]

    def _near(self, name: str) -> list[Piece]:
        """Evidence that shares the most words with the property's name and description first;
        otherwise in the given order."""
        hint = self._hinted(name)
        return (
            sorted(self._found, key=lambda piece: -len(hint & self._terms[piece]))
            if hint
            else list(self._found)
        )


def _hint(name: str, schema: Any) -> str:
    """What is said of a property: its name in words and its description."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", name)
    described = _dict(schema).get("description")
    return f"{spaced} {described[:_DESCRIBED]}" if isinstance(described, str) else spaced


def _dict(schema: Any) -> Schema:
    return schema if isinstance(schema, dict) else {}


def _merged(option: Any, beside: Schema) -> Any:
    return {**beside, **option} if isinstance(option, dict) else option


def _in_order(kinds: set[str], known: bool) -> list[str]:
    order = ["string", "array", "object", "number", "integer", "boolean", "null"]
    if not known:
        order = ["null", *order[:-1]]
    return [kind for kind in order if kind in kinds]


def _takes_text(items: Any) -> bool:
    return (
        isinstance(items, dict)
        and "string" in types_of(items)
        and not ({"enum", "const", "anyOf", "oneOf"} & items.keys())
    )


def _is_null(option: Any) -> bool:
    return isinstance(option, dict) and types_of(option) == {"null"}


def _spaced(text: str) -> str:
    """Folded words and signs with one blank around each, so that a part of a text begins and ends
    where its words do."""
    return f" {' '.join(_WORD_OR_SIGN.findall(fold(text)))} "


def _shortened(text: str, schema: Schema) -> str:
    longest = schema.get("maxLength")
    return text[: int(longest)] if isinstance(longest, (int, float)) and longest >= 0 else text
