"""Whether a schema is of the supported part of JSON Schema.

Supported are a root object; primitives, objects, arrays, `enum`, `const`, `anyOf`, `oneOf`, lists
of types, `required`, `default`, and references to root-level `$defs` or `definitions` that are not
recursive. Constraints of values (`minLength`, `maximum` …) are hints for models, but must be well
formed. Annotations (`title`, `$schema` …) are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from memservice.domain.json_schema.references import DEFINITIONS, Schema, definition
from memservice.domain.json_schema.values import TYPES
from memservice.domain.json_schema.violations import violation
from memservice.domain.values import shown

MAX_DEPTH = 20
MAX_PARTS = 500
MAX_VALUES = 5_000
"""Maximum values of the smallest document of a schema: with references and minimum counts, a short
schema can describe a huge document."""

MAX_CHOICES = 2_000
"""Maximum choices of all `enum` lists and names of all `required` lists together."""

_CHARACTERS_PER_VALUE = 1_000
"""A name, or a value that the schema contains, counts as one value more for each so many
characters."""

UNSUPPORTED = (
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "propertyNames",
    "dependentSchemas",
    "dependencies",
    "prefixItems",
    "additionalItems",
    "contains",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$dynamicRef",
    "$recursiveRef",
)
"""Keywords that change which values are valid, and that are not validated here."""

_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


class UnsupportedSchema(ValueError):
    """A schema that is not supported; the text names the location."""

    def __init__(self, location: str, text: str) -> None:
        super().__init__(f"{location}: {text}")


def require_supported(schema: Schema) -> None:
    """Raise UnsupportedSchema unless the schema is supported and its root is an object. The cost is
    bounded by `MAX_PARTS` and `MAX_CHOICES`."""
    _Walk(schema).run()


class _Walk:
    """One walk over a schema. Each part is visited once, however many references lead to it."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._measured: dict[int, tuple[int, int]] = {}
        """By the identity of a part: its depth, and the values of its smallest document."""
        self._open: set[int] = set()
        self._choices = 0

    def run(self) -> None:
        depth, values = self._measure(self._root, "$")
        for group in DEFINITIONS:
            for name, part in _members(self._root, group, "$"):
                self._measure(part, f"$.{group}.{shown(name)}")
        if depth > MAX_DEPTH:
            raise UnsupportedSchema("$", f"it is nested more than {MAX_DEPTH} levels deep")
        if values > MAX_VALUES:
            raise UnsupportedSchema("$", f"it asks for documents of more than {MAX_VALUES} values")
        self._require_object()

    def _require_object(self) -> None:
        root: Any = self._root
        for _ in range(MAX_DEPTH):
            target = definition(self._root, root.get("$ref")) if isinstance(root, Mapping) else None
            if target is None:
                break
            root = target[1]
        if not isinstance(root, Mapping) or root.get("type") not in ("object", ["object"]):
            raise UnsupportedSchema("$", "the root must be of type 'object'")

    def _measure(self, part: object, location: str) -> tuple[int, int]:
        if part is True:
            return 1, 1
        if not isinstance(part, Mapping):
            raise UnsupportedSchema(location, "a schema must be an object")
        key = id(part)
        if key in self._measured:
            return self._measured[key]
        if key in self._open:
            raise UnsupportedSchema(location, "recursive references are not supported")
        if len(self._measured) + len(self._open) >= MAX_PARTS:
            raise UnsupportedSchema("$", f"it has more than {MAX_PARTS} parts")
        self._open.add(key)
        _require_keywords(part, location)
        self._count_choices(part)
        depth, values = 1, _own_values(part)
        if "$ref" in part:
            target_location, target = self._target(part, location)
            depth, values = self._measure(target, target_location)
            # A reference is no level of the document, but chains of references need a bound, too.
            depth += isinstance(target, Mapping) and "$ref" in target
        for inner, inner_location, times in _subschemas(part, location):
            inner_depth, inner_values = self._measure(inner, inner_location)
            depth = max(depth, inner_depth + 1)
            values += inner_values * times
        self._require_possible_options(part, location)
        self._open.discard(key)
        self._measured[key] = measured = (depth, min(values, MAX_VALUES + 1))
        return measured

    def _count_choices(self, part: Schema) -> None:
        self._choices += len(part.get("enum", ())) + len(part.get("required", ()))
        if self._choices > MAX_CHOICES:
            raise UnsupportedSchema(
                "$", f"it has more than {MAX_CHOICES} choices of 'enum' and names of 'required'"
            )

    def _target(self, part: Schema, location: str) -> tuple[str, Any]:
        target = definition(self._root, part["$ref"])
        if target is None:
            raise UnsupportedSchema(
                location,
                f"the reference {shown(part['$ref'])!r} does not lead to a definition at the root",
            )
        return target

    def _require_possible_options(self, part: Schema, location: str) -> None:
        """Beside a `type`, at least one option must allow that type. Each option was measured
        before."""
        for keyword in ("anyOf", "oneOf"):
            if keyword in part and not any(
                _types(part) & _types(self._dereferenced(option)) for option in part[keyword]
            ):
                raise UnsupportedSchema(
                    location, f"'{keyword}' has no option that is of the 'type'"
                )

    def _dereferenced(self, part: object) -> object:
        """The direct target of a reference; every other part unchanged."""
        target = (
            definition(self._root, part.get("$ref"))
            if isinstance(part, Mapping) and "type" not in part
            else None
        )
        return part if target is None else target[1]


def _types(part: object) -> set[str]:
    """The types that the keyword `type` allows, integers as numbers; all types without it."""
    kinds = part.get("type", TYPES) if isinstance(part, Mapping) else TYPES
    return {
        "number" if kind == "integer" else kind
        for kind in ([kinds] if isinstance(kinds, str) else kinds)
    }


def _own_values(part: Schema) -> int:
    """Values that the part itself adds to a document: one, one for each required name without a
    schema, and more for long texts."""
    literals = [
        *part.get("enum", ()),
        *(part[keyword] for keyword in ("const", "default") if keyword in part),
    ]
    longest = max((len(json.dumps(value, ensure_ascii=False)) for value in literals), default=0)
    properties = part["properties"] if isinstance(part.get("properties"), Mapping) else {}
    required = [name for name in part.get("required", ()) if name not in properties]
    return (
        1
        + longest // _CHARACTERS_PER_VALUE
        + len(required)
        + sum(len(name) // _CHARACTERS_PER_VALUE for name in (*properties, *required))
    )


def _subschemas(part: Schema, location: str) -> Iterator[tuple[object, str, int]]:
    """The direct subschemas, with their locations and how often the smallest document has each."""
    for name, inner in _members(part, "properties", location):
        yield inner, f"{location}.{shown(name)}", 1
    if "items" in part:
        yield part["items"], f"{location}[]", max(1, int(part.get("minItems", 1)))
    for keyword in ("anyOf", "oneOf"):
        if keyword in part:
            options = part[keyword]
            if not isinstance(options, list) or not options:
                raise UnsupportedSchema(
                    location, f"'{keyword}' must be a list of schemas that is not empty"
                )
            for number, option in enumerate(options):
                yield option, f"{location}.{keyword}[{number}]", 1


def _members(part: Schema, keyword: str, location: str) -> Iterator[tuple[str, object]]:
    members = part.get(keyword, {})
    if not isinstance(members, Mapping):
        raise UnsupportedSchema(location, f"'{keyword}' must be an object")
    yield from members.items()


def _require_keywords(part: Schema, location: str) -> None:
    for keyword in UNSUPPORTED:
        if keyword in part:
            raise UnsupportedSchema(location, f"'{keyword}' is not supported")
    if not isinstance(part.get("additionalProperties", True), bool):
        raise UnsupportedSchema(location, "'additionalProperties' may only be true or false")
    _require_type_and_choices(part, location)
    required = part.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise UnsupportedSchema(location, "'required' must be a list of names")
    for keyword in _COUNTS:
        count = part.get(keyword, 0)
        if not _is_number(count) or count < 0 or count != int(count):
            raise UnsupportedSchema(
                location, f"'{keyword}' must be a whole number that is not negative"
            )
    for keyword in _BOUNDS:
        if not _is_number(part.get(keyword, 0)):
            raise UnsupportedSchema(location, f"'{keyword}' must be a number")
    step = part.get("multipleOf", 1)
    if not _is_number(step) or step <= 0:
        raise UnsupportedSchema(location, "'multipleOf' must be a number above zero")


def _require_type_and_choices(part: Schema, location: str) -> None:
    if "type" in part:
        kinds = part["type"] if isinstance(part["type"], list) else [part["type"]]
        if not 0 < len(kinds) <= len(TYPES) or any(kind not in TYPES for kind in kinds):
            raise UnsupportedSchema(
                location, f"'type' must be one of {', '.join(TYPES)}, or a list of them"
            )
    if "enum" in part and not (isinstance(part["enum"], list) and part["enum"]):
        raise UnsupportedSchema(location, "'enum' must be a list that is not empty")
    for keyword, values in (
        ("enum", part.get("enum")),
        ("const", [part["const"]] if "const" in part else None),
    ):
        if (
            values
            and "type" in part
            and all(violation({"type": part["type"]}, value) for value in values)
        ):
            raise UnsupportedSchema(location, f"'{keyword}' allows nothing that is of the 'type'")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
