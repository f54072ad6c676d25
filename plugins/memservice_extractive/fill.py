"""A JSON document for a schema, filled with evidence where possible and with neutral values
elsewhere.

The schema is of the subset that requests may use, and is validated before: a root object;
primitives, nested objects, arrays, enums, `anyOf`/`oneOf`, lists of types, `required`, `default`,
root-level `$defs`/`definitions` with references that do not recurse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from memservice.domain.json_schema import Enums, Validation, frozen
from memservice_extractive.evidence import Piece, terms
from memservice_extractive.json_schema import resolved, types_of
from memservice_extractive.language import fold

Schema = dict[str, Any]

_NUMBER = re.compile(r"(?<![\w.])-?\d{1,15}(?:\.\d{1,6})?(?![\w.]*\d)")
_SOURCES = frozenset(
    {"source", "sources", "citation", "citations", "evidence", "reference", "references", "quotes"}
)
_UNKNOWN_CHOICES = (
    "unknown",
    "none",
    "n/a",
    "other",
    "unspecified",
    "neutral",
    "not_found",
    "unclear",
)
_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")
_MAX_DESCRIPTION = 1_000
"""Maximum characters of a description that are compared with evidence."""
_MAX_CANDIDATES = 48
"""Maximum candidates for one value."""
_MAX_VALUES = 5_000
"""Maximum values in a document: with references, a short schema can describe a huge document."""


class Filler:
    """Fills one schema. `pieces`: the evidence, best first. `unknown`: the sentence for a text
    without evidence."""

    def __init__(self, schema: Schema, pieces: Sequence[Piece], unknown: str) -> None:
        self._root = schema
        self._pieces = pieces
        self._unknown = unknown
        self._values_left = _MAX_VALUES
        self._terms = {piece: terms(piece.text) for piece in pieces}
        self._hints: dict[str, set[str]] = {}
        enums: Enums = {}
        self._strict = Validation(schema, enums, constraints=True)
        self._structure = Validation(schema, enums)
        self._evidence_text = "\n".join(_spaced_words(piece.text) for piece in pieces)
        self._choices_in_order: dict[int, list[Any]] = {}
        """The values of `enum` lists, best first, by the list's identity: with references, one list
        can apply to many values."""

    def value(self) -> Any:
        """A document that is valid for the schema if any is, except for patterns, formats and
        minimum lengths, which are hints."""
        return self._first(self._root, "")

    def _first(self, schema: Any, name: str) -> Any:
        self._values_left -= 1
        if self._values_left < 0:
            return None
        fallback: list[Any] = []
        for number, candidate in enumerate(self._candidates(schema, name)):
            if self._fits(candidate, schema):
                return candidate
            fallback.append(candidate)
            if number >= _MAX_CANDIDATES:
                break
        # Bounds that no candidate satisfies are hints. The structure must be valid.
        return next(
            (value for value in fallback if self._structure.of(value, schema) is None),
            fallback[0] if fallback else None,
        )

    def _fits(self, value: Any, schema: Any) -> bool:
        return self._strict.of(value, schema) is None

    def _candidates(self, schema: Any, name: str) -> Iterator[Any]:
        """Values that may be valid, best first. The iterator is finite but can be long: callers
        stop at the first valid value."""
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
        if "default" in schema and not (kinds & {"string", "array", "object"} and self._pieces):
            yield schema["default"]
        for kind in _in_order(kinds, bool(self._pieces)):
            yield from self._of_kind(kind, schema, name)
        if "default" in schema:
            yield schema["default"]

    def _of_options(self, schema: Schema, options: Sequence[Any], name: str) -> Iterator[Any]:
        """Candidates of all options; null last with evidence, first without. Keywords beside the
        options apply to all of them."""
        other_keywords = {
            key: value
            for key, value in schema.items()
            if key not in ("anyOf", "oneOf", "default", "description", "title")
        }
        merged = [_merged(resolved(option, self._root), other_keywords) for option in options]
        nulls = [option for option in merged if _is_null(option)]
        others = [option for option in merged if not _is_null(option)]
        if "default" in schema and not self._pieces:
            yield schema["default"]
        ordered = [*others, *nulls] if self._pieces else [*nulls, *others]
        streams = [self._candidates(option, name) for option in ordered]
        for _ in range(_MAX_CANDIDATES):
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
        all_values = {
            name: self._first(subschema, _hint(name, subschema))
            for name, subschema in properties.items()
        }
        for name in required:
            if name not in all_values:
                all_values[name] = self._first({}, name)
        required_values = {name: value for name, value in all_values.items() if name in required}
        default_values = {
            name: value
            for name, value in all_values.items()
            if name in required or "default" in _dict(properties.get(name)) or self._pieces
        }
        yield default_values
        yield all_values
        yield required_values

    def _arrays(self, schema: Schema, name: str) -> Iterator[list[Any]]:
        items = resolved(schema.get("items", {}), self._root)
        minimum, maximum = (
            int(schema.get("minItems", 0)),
            int(schema.get("maxItems", len(self._pieces) or 1)),
        )
        values: list[Any] = []
        if _takes_text(items):
            values = self._relevant_texts(name)
        else:
            values = [self._first(items, name)] if self._pieces or minimum else []
        fitting = [value for value in values if self._fits(value, items)][: max(maximum, minimum)]
        padded = [*fitting, *self._padding(items, name, fitting, minimum)]
        yield padded
        yield fitting
        yield []

    def _padding(self, items: Any, name: str, present: Sequence[Any], minimum: int) -> list[Any]:
        missing = minimum - len(present)
        if missing <= 0:
            return []
        added: list[Any] = []
        existing = set(map(frozen, present))
        for number, candidate in enumerate(self._candidates(items, name)):
            if number > _MAX_CANDIDATES or len(added) == missing:
                break
            if self._fits(candidate, items) and frozen(candidate) not in existing:
                existing.add(frozen(candidate))
                added.append(candidate)
        return added + [self._first(items, name)] * (missing - len(added))

    def _choices(self, choices: Sequence[Any]) -> Sequence[Any]:
        """Choices that the evidence mentions, then choices such as "unknown", then all choices."""
        if id(choices) not in self._choices_in_order:
            mentioned = [
                choice
                for choice in choices
                if isinstance(choice, str)
                and choice.strip()
                and _spaced_words(choice) in self._evidence_text
            ]
            unknown = [
                choice
                for choice in choices
                if choice is None
                or (isinstance(choice, str) and choice.casefold() in _UNKNOWN_CHOICES)
            ]
            self._choices_in_order[id(choices)] = [*mentioned, *unknown, *choices]
        return self._choices_in_order[id(choices)]

    def _numbers(self, kind: str, schema: Schema, name: str) -> Iterator[int | float]:
        """Numbers in evidence about the property, then 0, then the numbers nearest to 0 within the
        bounds."""
        hint = self._hint_terms(name)
        for piece in self._pieces:
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
        pieces = self._by_relevance(name)
        if _SOURCES.intersection(fold(name).replace("_", " ").split()[:1]):
            return [piece.cited() for piece in pieces]
        return [piece.text for piece in pieces]

    def _hint_terms(self, name: str) -> set[str]:
        if name not in self._hints:
            self._hints[name] = terms(name)
        return self._hints[name]

    def _by_relevance(self, name: str) -> list[Piece]:
        """Evidence by the number of words shared with the property's name and description; ties in
        the given order."""
        hint = self._hint_terms(name)
        return (
            sorted(self._pieces, key=lambda piece: -len(hint & self._terms[piece]))
            if hint
            else list(self._pieces)
        )


def _hint(name: str, schema: Any) -> str:
    """The name of a property as words, and its description."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", name)
    description = _dict(schema).get("description")
    return f"{words} {description[:_MAX_DESCRIPTION]}" if isinstance(description, str) else words


def _dict(schema: Any) -> Schema:
    return schema if isinstance(schema, dict) else {}


def _merged(option: Any, other_keywords: Schema) -> Any:
    return {**other_keywords, **option} if isinstance(option, dict) else option


def _in_order(kinds: set[str], has_evidence: bool) -> list[str]:
    order = ["string", "array", "object", "number", "integer", "boolean", "null"]
    if not has_evidence:
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


def _spaced_words(text: str) -> str:
    """Folded words and signs, separated by single spaces, so that a substring search matches whole
    words."""
    return f" {' '.join(_WORD_OR_SIGN.findall(fold(text)))} "


def _shortened(text: str, schema: Schema) -> str:
    max_length = schema.get("maxLength")
    return (
        text[: int(max_length)]
        if isinstance(max_length, (int, float)) and max_length >= 0
        else text
    )
