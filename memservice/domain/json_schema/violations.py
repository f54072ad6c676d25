"""Validation of a JSON value against a schema.

The structure is always validated: `type`, `enum`, `const`, `required`, `properties`, `items`,
`anyOf`, `oneOf`, and references to root-level `$defs` or `definitions` that are not recursive.
Models treat the constraints of values as hints, so those are validated on request only:
`minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`, `maxLength`,
`minItems`, `maxItems`, `uniqueItems`, `additionalProperties`, and that exactly one option of
`oneOf` is valid. `minLength`, `pattern` and `format` are never validated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memservice.domain.json_schema.references import Schema, definition
from memservice.domain.json_schema.values import Enums, frozen, has_type, is_choice
from memservice.domain.values import shown

_MAX_CHOICES = 100
"""Maximum choices that a message lists."""


def violation(
    schema: Schema,
    value: Any,
    root: Schema | None = None,
    enums: Enums | None = None,
    *,
    constraints: bool = False,
) -> str | None:
    """The first violation, as a sentence that names the location; None if the value is valid.
    `root`: the schema that `schema` is a part of. `constraints`: whether constraints of values
    count. The cost is linear in the value, for each part of the schema that applies to it."""
    root = schema if root is None else root
    return Validation(root, {} if enums is None else enums, constraints=constraints).of(
        value, schema
    )


class Validation:
    """Validates several values against parts of one schema. A value that is put together from valid
    ones costs as much as its own members: no value may change once it was validated."""

    def __init__(self, root: Schema, enums: Enums, *, constraints: bool = False) -> None:
        self._root = root
        self._enums = enums
        self._constraints = constraints
        self._results: dict[tuple[int, int], tuple[Any, Any, str | None]] = {}
        """Objects and lists, schemas, and the violations, by the identities of value and schema,
        which stay as long as both are here."""
        self._scalars: dict[tuple[int, int], str | None] = {}
        """The same of other values, during one call."""

    def of(self, value: Any, schema: Schema) -> str | None:
        """The first violation, as `violation` returns it."""
        self._scalars.clear()
        return self._of(value, schema, "$")

    def _of(self, value: Any, schema: Any, location: str) -> str | None:
        # Kept, because references can lead to one schema on very many paths.
        if schema is True:
            return None
        key = (id(value), id(schema))
        if isinstance(value, dict | list):
            if key not in self._results:
                problem = self._of_schema(value, schema, location)
                self._results[key] = value, schema, problem
            return self._results[key][2]
        if key not in self._scalars:
            self._scalars[key] = self._of_schema(value, schema, location)
        return self._scalars[key]

    def _of_schema(self, value: Any, schema: Schema, location: str) -> str | None:
        if "$ref" in schema:
            target = definition(self._root, schema["$ref"])
            if target is None:
                return f"{location}: the schema's reference leads nowhere"
            if problem := self._of(value, target[1], location):
                return problem
        return (
            self._of_keywords(value, schema, location)
            or self._of_options(value, schema, location)
            or self._of_members(value, schema, location)
            or (_constraint(value, schema, location) if self._constraints else None)
        )

    def _of_keywords(self, value: Any, schema: Schema, location: str) -> str | None:
        if "type" in schema:
            kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            if not any(has_type(value, kind) for kind in kinds):
                return f"{location} must be of type {' or '.join(kinds)}"
        if "enum" in schema and not is_choice(value, schema["enum"], self._enums):
            names = [shown(choice) for choice in schema["enum"][:_MAX_CHOICES]]
            more = ", …" if len(schema["enum"]) > _MAX_CHOICES else ""
            return f"{location} must be one of {', '.join(names)}{more}"
        if "const" in schema and frozen(value) != frozen(schema["const"]):
            return f"{location} must be {shown(schema['const'])}"
        return None

    def _of_options(self, value: Any, schema: Schema, location: str) -> str | None:
        for keyword in ("anyOf", "oneOf"):
            if keyword not in schema:
                continue
            valid = (self._of(value, option, location) is None for option in schema[keyword])
            # Options of `oneOf` often differ only in constraints: without those, one is enough.
            if keyword == "oneOf" and self._constraints:
                if sum(valid) != 1:
                    return f"{location} must fit exactly one of the schema's options"
            elif not any(valid):
                return f"{location} fits none of the schema's options"
        return None

    def _of_members(self, value: Any, schema: Schema, location: str) -> str | None:
        if isinstance(value, dict):
            for name in schema.get("required", ()):
                if name not in value:
                    return f"{location} lacks {shown(name)}"
            properties = schema.get("properties", {})
            problems = (
                self._of(value[name], properties[name], f"{location}.{shown(name)}")
                for name in value
                if name in properties
            )
        elif isinstance(value, list) and "items" in schema:
            problems = (
                self._of(item, schema["items"], f"{location}[{number}]")
                for number, item in enumerate(value)
            )
        else:
            return None
        return next((problem for problem in problems if problem), None)


def _constraint(value: Any, schema: Schema, location: str) -> str | None:
    if isinstance(value, dict):
        return _object_constraint(value, schema, location)
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return f"{location} has {len(value)} items"
        if schema.get("uniqueItems") is True and len(set(map(frozen, value))) < len(value):
            return f"{location} has equal items"
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        return f"{location} has {len(value)} characters"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number_constraint(value, schema, location)
    return None


def _object_constraint(value: Mapping[str, Any], schema: Schema, location: str) -> str | None:
    if schema.get("additionalProperties") is False:
        unknown = value.keys() - schema.get("properties", {}).keys()
        if unknown:
            return f"{location} has the unknown member {shown(min(unknown))}"
    return None


def _number_constraint(value: float, schema: Schema, location: str) -> str | None:
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    step = schema.get("multipleOf")
    if (
        not schema.get("minimum", value) <= value <= schema.get("maximum", value)
        or (above is not None and value <= above)
        or (below is not None and value >= below)
        or (step and not float(value / step).is_integer())
    ):
        return f"{location} is out of bounds"
    return None
