"""Write the facts about the published third-generation API that `test_openapi.py` compares ours
with.

    python tests/support/api/data/extract.py <openapi document> > tests/support/api/data/v3.json

Facts only: operations, parameters, bodies, fields, bounds, statuses, media types, keys. References
are followed; texts and examples are left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

BOUNDS = (
    *(
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "enum",
    ),
    *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "const"),
)
KEPT = (*BOUNDS, "default")
FOLLOWED = ("$ref", "anyOf", "type", "properties", "required", "items", "additionalProperties")
LEFT_OUT = (
    "title",
    "description",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "contentMediaType",
)


def shape(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """A schema without references and alternatives: `types` (null included), bounds, and the shapes
    inside.

    `must`, of parameters and bodies: whether they may be left out. `open`: the shape of the values
    of any other key.
    """
    if unknown := schema.keys() - {*KEPT, *FOLLOWED, *LEFT_OUT}:
        raise ValueError(f"what {sorted(unknown)} say of {schema} would be lost")
    if "$ref" in schema:
        return shape(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    parts: dict[str, Any] = {}
    types: set[str] = set()
    for alternative in schema.get("anyOf", ()):
        inner = shape(alternative, document)
        types.update(inner.pop("types", ()))
        parts.update(inner)
    own = schema.get("type", [])
    types.update([own] if isinstance(own, str) else own)
    if types:
        parts["types"] = sorted(types)
    parts.update({key: schema[key] for key in KEPT if key in schema})
    if "properties" in schema:
        parts["fields"] = {
            name: shape(inner, document) for name, inner in schema["properties"].items()
        }
        parts["required"] = sorted(schema.get("required", []))
    if "items" in schema:
        parts["items"] = shape(schema["items"], document)
    further = schema.get("additionalProperties")
    if further is not None and further is not False:
        parts["open"] = shape(further, document) if isinstance(further, dict) and further else {}
    return parts


def facts(document: dict[str, Any]) -> dict[str, Any]:
    """`METHOD path` → what the document says about it."""
    operations: dict[str, Any] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method not in ("get", "put", "post", "delete", "patch"):
                continue
            parameters = [*item.get("parameters", []), *operation.get("parameters", [])]
            described: dict[str, Any] = {
                "parameters": {
                    f"{p['in']} {p['name']}": {
                        "must": bool(p.get("required")),
                        **shape(p["schema"], document),
                    }
                    for p in parameters
                },
                "answers": {},
                "media": {},
                "keys": sorted(sorted(scheme) for scheme in operation.get("security", ())),
            }
            for status, answer in operation["responses"].items():
                described["media"][status] = sorted(answer.get("content", ()))
                content = answer.get("content", {}).get("application/json")
                described["answers"][status] = (
                    shape(content["schema"], document) if content else None
                )
            body = operation.get("requestBody")
            if body is not None:
                ((described["media"]["body"], content),) = body["content"].items()
                described["body"] = {
                    "must": bool(body.get("required")),
                    **shape(content["schema"], document),
                }
            operations[f"{method.upper()} {path}"] = described
    return operations


if __name__ == "__main__":
    read = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    lines = (
        f"{json.dumps(name)}: {json.dumps(operations, sort_keys=True)}"
        for name, operations in sorted(facts(read).items())
    )
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
