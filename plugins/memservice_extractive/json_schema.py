"""Validation of a value against a schema of the subset that requests may use. It chooses between
candidates, above all under `oneOf`."""

from __future__ import annotations

from typing import Any

from memservice.domain.json_schema import Enums, frozen, is_chosen

Schema = dict[str, Any]
_TYPES = frozenset({"string", "array", "object", "number", "integer", "boolean", "null"})


def resolved(schema: Any, root: Schema) -> Any:
    """The target of a reference, with the keywords beside the reference; other schemas
    unchanged."""
    for _ in range(20):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            break
        target: Any = root
        for segment in schema["$ref"].removeprefix("#").strip("/").split("/"):
            target = (
                target.get(segment.replace("~1", "/").replace("~0", "~"))
                if isinstance(target, dict) and segment
                else target
            )
        other_keywords = {key: value for key, value in schema.items() if key != "$ref"}
        schema = (
            {**target, **other_keywords} if other_keywords and isinstance(target, dict) else target
        )
    return schema


def types_of(schema: Schema) -> set[str]:
    """The types that a schema allows; all types if it has no constraint."""
    type_ = schema.get("type")
    if isinstance(type_, str):
        return {type_}
    if isinstance(type_, list):
        return {kind for kind in type_ if isinstance(kind, str)}
    if "properties" in schema or "required" in schema:
        return {"object"}
    if "items" in schema:
        return {"array"}
    return set(_TYPES)


Results = dict[tuple[int, int], bool]
"""Results for (schema, value), by identity: references can lead to one schema on very many
paths."""


def matches(
    value: Any, schema: Any, root: Schema, enums: Enums, results: Results | None = None
) -> bool:
    """Whether the value is valid. Patterns, formats and minimum lengths are hints and are ignored.
    `enums` caches for all values of one root, `results` for one value of the caller."""
    results = {} if results is None else results
    key = (id(schema), id(value))
    if key not in results:
        results[key] = _fits(value, schema, root, enums, results)
    return results[key]


def _fits(value: Any, schema: Any, root: Schema, enums: Enums, results: Results) -> bool:
    if isinstance(schema, bool):
        return schema
    schema = resolved(schema, root)
    if not isinstance(schema, dict):
        return True
    if "type" in schema and not any(_is(value, kind) for kind in types_of(schema)):
        return False
    if "const" in schema and frozen(value) != frozen(schema["const"]):
        return False
    if "enum" in schema and not is_chosen(value, schema["enum"], enums):
        return False
    if "anyOf" in schema and not any(
        matches(value, option, root, enums, results) for option in schema["anyOf"]
    ):
        return False
    if (
        "oneOf" in schema
        and sum(matches(value, option, root, enums, results) for option in schema["oneOf"]) != 1
    ):
        return False
    if isinstance(value, dict):
        return _object_fits(value, schema, root, enums, results)
    if isinstance(value, list):
        return _array_fits(value, schema, root, enums, results)
    if isinstance(value, str):
        return bool(len(value) <= schema.get("maxLength", len(value)))
    return isinstance(value, bool) or value is None or _number_fits(value, schema)


def _is(value: Any, kind: str) -> bool:
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in ("integer", "number"):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and (kind == "number" or float(value).is_integer())
    return isinstance(value, {"string": str, "array": list, "object": dict}.get(kind, ()))


def _object_fits(
    value: Schema, schema: Schema, root: Schema, enums: Enums, results: Results
) -> bool:
    properties = schema.get("properties") or {}
    if any(name not in value for name in schema.get("required") or ()):
        return False
    if schema.get("additionalProperties") is False and not value.keys() <= properties.keys():
        return False
    return all(
        matches(member, properties[name], root, enums, results)
        for name, member in value.items()
        if name in properties
    )


def _array_fits(
    value: list[Any], schema: Schema, root: Schema, enums: Enums, results: Results
) -> bool:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return False
    if schema.get("uniqueItems") is True and len(set(map(frozen, value))) < len(value):
        return False
    return "items" not in schema or all(
        matches(item, schema["items"], root, enums, results) for item in value
    )


def _number_fits(value: float, schema: Schema) -> bool:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if (low is not None and value < low) or (high is not None and value > high):
        return False
    if (above is not None and value <= above) or (below is not None and value >= below):
        return False
    step = schema.get("multipleOf")
    return not step or float(value / step).is_integer()
