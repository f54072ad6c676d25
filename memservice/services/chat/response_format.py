"""The form that a caller wants an answer in: a part of JSON Schema, checked when it comes in and
held against the answer.

Supported are a root object; primitives, objects, arrays, `enum`, `const`, `anyOf`, `oneOf`, lists
of types, `required`, `default`, and references to root-level `$defs` or `definitions` that do not
come back to themselves. Constraints of values (`minLength`, `maximum` …) are hints to whoever
answers. Keywords that describe only (`title`, `$schema` …) mean nothing here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from memservice.domain.errors import InvalidInput, MemserviceError
from memservice.domain.json_schema import DEFINITIONS, Schema, definition, problem
from memservice.domain.values import shown

LOC = ("response_format",)

MAX_DEPTH = 20
MAX_NODES = 500
MAX_PLACES = 5_000
"""Values of the smallest document that the schema can ask for: references and least lengths make a
short schema stand for a huge one."""

MAX_CHOICES = 2_000
"""Choices of all `enum`s and names of all `required` lists together."""
_PLACE = 1_000
"""Characters of a name or of a value that the schema itself gives which count as one value of the
document."""

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")

UNSUPPORTED = (
    *(
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "patternProperties",
        "propertyNames",
        "dependentSchemas",
        "dependencies",
    ),
    *(
        "prefixItems",
        "additionalItems",
        "contains",
        "unevaluatedItems",
        "unevaluatedProperties",
        "$dynamicRef",
        "$recursiveRef",
    ),
)
"""Keywords that would change what an answer may be and that nobody here looks at."""

_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


class UnfitAnswer(MemserviceError):
    """What the reasoner answered does not have the form that was asked for."""


def check(schema: Schema | None) -> None:
    """Raise InvalidInput, with a text that names the place, for a schema that answers cannot be
    held to."""
    if schema is not None:
        _Check(schema).run()


def check_answer(schema: Schema, answer: str) -> None:
    """Raise UnfitAnswer unless `answer` is a JSON document of the schema's structure."""
    try:
        value = json.loads(answer, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UnfitAnswer("The answer is not JSON, although a response_format was given") from error
    if problem(schema, value) is not None:
        raise UnfitAnswer("The answer does not have the structure of the response_format")


def _refuse(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not JSON")


def _wrong(location: str, text: str) -> InvalidInput:
    return InvalidInput.at(*LOC, message=f"Invalid response_format: {location}: {text}")


def _kinds(part: object) -> set[str]:
    """The types that a part allows by its word `type`, whole numbers as numbers; all where it says
    nothing."""
    said = part.get("type", TYPES) if isinstance(part, Mapping) else TYPES
    return {
        "number" if kind == "integer" else kind
        for kind in ([said] if isinstance(said, str) else said)
    }


class _Check:
    """One walk over a schema. Each part is looked at once, however many references lead to it."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._measured: dict[int, tuple[int, int]] = {}
        """By the identity of a part: how deep it is, and how many values the smallest document of
        it has."""
        self._open: set[int] = set()
        self._choices = 0

    def run(self) -> None:
        depth, places = self._measure(self._root, "$")
        for group in DEFINITIONS:
            for name, part in self._named(self._root, group, "$"):
                self._measure(part, f"$.{group}.{shown(name)}")
        if depth > MAX_DEPTH:
            raise _wrong("$", f"it is nested more than {MAX_DEPTH} levels deep")
        if places > MAX_PLACES:
            raise _wrong("$", f"it asks for documents of more than {MAX_PLACES} values")
        self._require_object()

    def _require_object(self) -> None:
        root: Any = self._root
        for _ in range(MAX_DEPTH):
            found = definition(self._root, root.get("$ref")) if isinstance(root, Mapping) else None
            if found is None:
                break
            root = found[1]
        if not isinstance(root, Mapping) or root.get("type") not in ("object", ["object"]):
            raise _wrong("$", "the root must be of type 'object'")

    def _measure(self, part: object, location: str) -> tuple[int, int]:
        if part is True:
            return 1, 1
        if not isinstance(part, Mapping):
            raise _wrong(location, "a schema must be an object")
        known = id(part)
        if known in self._measured:
            return self._measured[known]
        if known in self._open:
            raise _wrong(location, "recursive references are not supported")
        if len(self._measured) + len(self._open) >= MAX_NODES:
            raise _wrong("$", f"it has more than {MAX_NODES} parts")
        self._open.add(known)
        self._check_keywords(part, location)
        self._count_choices(part)
        depth, places = 1, self._least_places(part)
        if "$ref" in part:
            where, inner = self._definition(part, location)
            depth, places = self._measure(inner, where)
            # A reference is a way to its definition, not a level of the document; but ways that
            # only lead to ways have an end too.
            depth += isinstance(inner, Mapping) and "$ref" in inner
        for inner, where, times in self._inside(part, location):
            inner_depth, inner_places = self._measure(inner, where)
            depth = max(depth, inner_depth + 1)
            places += inner_places * times
        self._check_options(part, location)
        self._open.discard(known)
        self._measured[known] = found = (depth, min(places, MAX_PLACES + 1))
        return found

    def _count_choices(self, part: Schema) -> None:
        self._choices += len(part.get("enum", ())) + len(part.get("required", ()))
        if self._choices > MAX_CHOICES:
            raise _wrong(
                "$", f"it has more than {MAX_CHOICES} choices of 'enum' and names of 'required'"
            )

    @staticmethod
    def _least_places(part: Schema) -> int:
        """How many values the part itself brings into a document: one, each required name that has
        no schema, and more for long ones."""
        given = [
            *part.get("enum", ()),
            *(part[word] for word in ("const", "default") if word in part),
        ]
        longest = max((len(json.dumps(value, ensure_ascii=False)) for value in given), default=0)
        properties = part["properties"] if isinstance(part.get("properties"), Mapping) else {}
        required = [name for name in part.get("required", ()) if name not in properties]
        return (
            1
            + longest // _PLACE
            + len(required)
            + sum(len(name) // _PLACE for name in (*properties, *required))
        )

    def _definition(self, part: Schema, location: str) -> tuple[str, Any]:
        found = definition(self._root, part["$ref"])
        if found is None:
            raise _wrong(
                location,
                f"the reference {shown(part['$ref'])!r} does not lead to a definition at the root",
            )
        return found

    def _inside(self, part: Schema, location: str) -> Iterator[tuple[object, str, int]]:
        """The parts of a part, with their places and how often the smallest document has each."""
        for name, inner in self._named(part, "properties", location):
            yield inner, f"{location}.{shown(name)}", 1
        if "items" in part:
            yield part["items"], f"{location}[]", max(1, int(part.get("minItems", 1)))
        for word in ("anyOf", "oneOf"):
            if word in part:
                options = part[word]
                if not isinstance(options, list) or not options:
                    raise _wrong(location, f"'{word}' must be a list of schemas that is not empty")
                for number, option in enumerate(options):
                    yield option, f"{location}.{word}[{number}]", 1

    def _check_options(self, part: Schema, location: str) -> None:
        """Options beside a type have to leave something that is of it. Each was checked by itself
        before."""
        for word in ("anyOf", "oneOf"):
            if word in part and not any(
                _kinds(part) & _kinds(self._referred(option)) for option in part[word]
            ):
                raise _wrong(location, f"'{word}' has no option that is of the 'type'")

    def _referred(self, part: object) -> object:
        """What a reference leads to at once; anything else as it is."""
        found = (
            definition(self._root, part.get("$ref"))
            if isinstance(part, Mapping) and "type" not in part
            else None
        )
        return part if found is None else found[1]

    @staticmethod
    def _named(part: Schema, word: str, location: str) -> Iterator[tuple[str, object]]:
        found = part.get(word, {})
        if not isinstance(found, Mapping):
            raise _wrong(location, f"'{word}' must be an object")
        yield from found.items()

    @staticmethod
    def _check_keywords(part: Schema, location: str) -> None:
        for word in UNSUPPORTED:
            if word in part:
                raise _wrong(location, f"'{word}' is not supported")
        if not isinstance(part.get("additionalProperties", True), bool):
            raise _wrong(location, "'additionalProperties' may only be true or false")
        if "type" in part:
            kinds = part["type"] if isinstance(part["type"], list) else [part["type"]]
            if not 0 < len(kinds) <= len(TYPES) or any(kind not in TYPES for kind in kinds):
                raise _wrong(
                    location, f"'type' must be one of {', '.join(TYPES)}, or a list of them"
                )
        if "enum" in part and not (isinstance(part["enum"], list) and part["enum"]):
            raise _wrong(location, "'enum' must be a list that is not empty")
        for word, values in (
            ("enum", part.get("enum")),
            ("const", [part["const"]] if "const" in part else None),
        ):
            if (
                values
                and "type" in part
                and all(problem({"type": part["type"]}, value) for value in values)
            ):
                raise _wrong(location, f"'{word}' allows nothing that is of the 'type'")
        required = part.get("required", [])
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            raise _wrong(location, "'required' must be a list of names")
        for word in _COUNTS:
            number = part.get(word, 0)
            if (
                isinstance(number, bool)
                or not isinstance(number, int | float)
                or number < 0
                or number != int(number)
            ):
                raise _wrong(location, f"'{word}' must be a whole number that is not negative")
        for word in _BOUNDS:
            if isinstance(part.get(word, 0), bool) or not isinstance(
                part.get(word, 0), int | float
            ):
                raise _wrong(location, f"'{word}' must be a number")
        step = part.get("multipleOf", 1)
        if isinstance(step, bool) or not isinstance(step, int | float) or step <= 0:
            raise _wrong(location, "'multipleOf' must be a number above zero")
