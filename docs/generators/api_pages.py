"""A page for each generation of the API, from its OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from memservice.api.generations import GENERATIONS
from memservice.app import create_app
from memservice.settings import Settings

METHODS = ("get", "put", "post", "patch", "delete")
INDEX = """\
# API

Three generations of the API are served over one store. Each has an OpenAPI 3.1 document, which a
running server serves at the address below, and these pages are made from them. Fields that other
servers of this API do not have are described on the pages of the [features](../../index.md).

| generation | version | OpenAPI document |
| --- | --- | --- |
{rows}

Errors have the body `{{"detail": "…"}}`; a 422 has a list, `{{"detail": [{{"loc": […], "msg": "…",
"type": "…"}}]}}`, with every problem of the request.

```{{toctree}}
{names}
```
"""


def pages() -> Iterator[tuple[str, str]]:
    client = create_app(Settings()).test_client()
    rows, names = [], []
    for generation in GENERATIONS:
        document = client.get(generation.document).get_json()
        rows.append(f"| `/{generation.name}` | {generation.version} | `{generation.document}` |")
        names.append(generation.name)
        yield generation.name, Page(generation.name, document).text()
    yield "index", INDEX.format(rows="\n".join(rows), names="\n".join(names))


class Page:
    def __init__(self, generation: str, document: dict[str, Any]) -> None:
        self.generation = generation
        self.document = document
        self.components = document["components"]

    def text(self) -> str:
        parts = [f"# Generation {self.generation.removeprefix('v')} (`/{self.generation}`)\n"]
        for tag in self.document.get("tags", []):
            parts.append(f"## {_capital(tag['name'])}\n\n{tag.get('description', '')}\n")
            parts += self._operations(tag["name"])
        parts.append("## Schemas\n")
        for name, schema in sorted(self.components["schemas"].items()):
            parts.append(f"({self._label(name)})=\n### {name}\n")
            parts.append(self._schema(schema))
        return "\n".join(parts)

    def _operations(self, tag: str) -> Iterator[str]:
        for path, methods in self.document["paths"].items():
            for method in METHODS:
                operation = methods.get(method)
                if operation and tag in operation.get("tags", []):
                    yield self._operation(path, method, methods, operation)

    def _operation(
        self, path: str, method: str, methods: dict[str, Any], operation: dict[str, Any]
    ) -> str:
        lines = [f"### {_line(operation.get('summary') or path)}\n"]
        lines.append(f"```text\n{method.upper()} {path}\n```\n")
        lines.append(f"{operation.get('description', '')}\n")
        given = [*methods.get("parameters", []), *operation.get("parameters", [])]
        if given:
            lines.append("| parameter | in | type | |\n| --- | --- | --- | --- |")
            lines += [self._parameter(self._resolved(one)) for one in given]
            lines.append("")
        if "requestBody" in operation:
            body = self._resolved(operation["requestBody"])
            types = [
                f"{self._type(media.get('schema', {}))} (`{name}`)"
                for name, media in body["content"].items()
            ]
            lines.append(f"Body: {', or '.join(types)}\n")
        lines.append("| response | body | |\n| --- | --- | --- |")
        for status, response in sorted(operation["responses"].items()):
            said = self._resolved(response)
            bodies = [
                self._type(media.get("schema", {})) for media in said.get("content", {}).values()
            ]
            text = _line(said.get("description", ""))
            lines.append(f"| {status} | {', '.join(dict.fromkeys(bodies))} | {text} |")
        return "\n".join(lines) + "\n"

    def _parameter(self, one: dict[str, Any]) -> str:
        required = "Required. " if one.get("required") and one["in"] != "path" else ""
        schema = one.get("schema", {})
        text = _line(one.get("description") or schema.get("description", ""))
        kind = self._type(schema)
        return f"| `{one['name']}` | {one['in']} | {kind} | {required}{text}{_default(schema)} |"

    def _schema(self, schema: dict[str, Any]) -> str:
        lines = [f"{schema.get('description', '')}\n"]
        if "properties" not in schema:
            return "\n".join([*lines, f"{self._type(schema)}\n"])
        required = set(schema.get("required", []))
        lines.append("| field | type | |\n| --- | --- | --- |")
        for name, field in schema["properties"].items():
            needed = "Required. " if name in required else ""
            text = f"{needed}{_line(field.get('description', ''))}{_default(field)}"
            lines.append(f"| `{name}` | {self._type(field)} | {text} |")
        return "\n".join(lines) + "\n"

    def _type(self, schema: dict[str, Any]) -> str:
        """A short text for a schema, with links to those that have a name."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return f"[{name}](#{self._label(name)})"
        for several in ("anyOf", "oneOf", "allOf"):
            if several in schema:
                return " or ".join(dict.fromkeys(self._type(one) for one in schema[several]))
        if "enum" in schema:
            return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
        kinds = schema.get("type", "any")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        parts = [
            f"list of {self._type(schema['items'])}"
            if kind == "array" and "items" in schema
            else kind
            for kind in kinds
        ]
        return " or ".join(parts)

    def _resolved(self, node: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in node:
            return node
        found: Any = self.document
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        resolved: dict[str, Any] = found
        return resolved

    def _label(self, name: str) -> str:
        return f"{self.generation}-schema-{re.sub(r'[^a-z0-9]+', '-', name.lower())}"


def _default(schema: dict[str, Any]) -> str:
    return (
        f" Default: `{json.dumps(schema['default'])}`." if schema.get("default") is not None else ""
    )


def _line(text: str) -> str:
    """For a cell of a table, or a heading."""
    return " ".join(text.split()).replace("|", "\\|")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
