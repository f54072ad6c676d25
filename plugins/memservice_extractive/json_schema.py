"""Dereferenced schemas, and the types that they allow."""

from __future__ import annotations

from typing import Any

from memservice.domain.json_schema.values import TYPES

Schema = dict[str, Any]


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
    return set(TYPES)
