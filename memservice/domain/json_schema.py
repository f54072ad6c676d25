"""Whether a JSON value has the structure that a schema asks for: the part of JSON Schema that
`problem` knows, and nothing of the rest.

Looked at are `type`, `enum`, `const`, `required`, `properties`, `items`, `anyOf`, `oneOf` and
references to root-level `$defs` or `definitions` that do not come back to themselves. Constraints
of values (`minLength`, `maximum` …) are hints to whoever writes the value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from memservice.domain.values import shown

Schema = Mapping[str, Any]

DEFINITIONS = ("$defs", "definitions")

Enums = dict[int, frozenset[Hashable]]
"""The values of `enum` lists, by the list's identity, so that a value is looked up and not compared
with each. For one root only."""

_MAX_SHOWN = 100
"""Choices that a sentence names."""


def problem(
    schema: Schema, value: Any, root: Schema | None = None, enums: Enums | None = None
) -> str | None:
    """What is wrong with a value, as a sentence that names the place; None if it fits. `root`: what
    `schema` is a part of."""
    return _Fit(schema if root is None else root, {} if enums is None else enums).problem(
        value, schema, "$"
    )


def is_chosen(value: Any, choices: Sequence[Any], enums: Enums) -> bool:
    """Whether the value is one of an `enum`'s."""
    if id(choices) not in enums:
        enums[id(choices)] = frozenset(map(frozen, choices))
    return frozen(value) in enums[id(choices)]


def frozen(value: Any) -> Hashable:
    """Equal for values that are equal as JSON: 1 is 1.0, but true is not 1."""
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, dict):
        return "object", frozenset((name, frozen(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return "list", tuple(map(frozen, value))
    found: Hashable = value
    return found


def definition(root: Schema, reference: object) -> tuple[str, Any] | None:
    """Place and content of the root-level definition that a reference means; None if it means
    anything else."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    parts = [
        unquote(part).replace("~1", "/").replace("~0", "~") for part in reference[2:].split("/")
    ]
    if len(parts) != 2 or parts[0] not in DEFINITIONS:
        return None
    group = root.get(parts[0])
    if not isinstance(group, Mapping) or parts[1] not in group:
        return None
    return f"$.{parts[0]}.{shown(parts[1])}", group[parts[1]]


class _Fit:
    def __init__(self, root: Schema, enums: Enums) -> None:
        self._root = root
        self._enums = enums
        self._known: dict[tuple[int, int], str | None] = {}
        """By the identities of a value and of a part, both of which live as long as this."""

    def problem(self, value: Any, part: Any, location: str) -> str | None:
        key = (id(value), id(part))
        if key not in self._known:
            self._known[key] = None if part is True else self._problem(value, part, location)
        return self._known[key]

    def _problem(self, value: Any, part: Schema, location: str) -> str | None:
        if "$ref" in part:
            found = definition(self._root, part["$ref"])
            if found is None:
                return f"{location}: the schema's reference leads nowhere"
            if problem := self.problem(value, found[1], location):
                return problem
        if "type" in part:
            kinds = part["type"] if isinstance(part["type"], list) else [part["type"]]
            if not any(_is(value, kind) for kind in kinds):
                return f"{location} must be of type {' or '.join(kinds)}"
        if "enum" in part and not is_chosen(value, part["enum"], self._enums):
            named = [shown(choice) for choice in part["enum"][:_MAX_SHOWN]]
            return (
                f"{location} must be one of "
                f"{', '.join(named)}{', …' if len(part['enum']) > _MAX_SHOWN else ''}"
            )
        if "const" in part and frozen(value) != frozen(part["const"]):
            return f"{location} must be {shown(part['const'])}"
        # Options of `oneOf` often differ in hints only, so one that fits is enough.
        for word in ("anyOf", "oneOf"):
            if word in part and all(self.problem(value, option, location) for option in part[word]):
                return f"{location} fits none of the schema's options"
        if isinstance(value, dict):
            return self._in_object(value, part, location)
        if isinstance(value, list) and "items" in part:
            inner = (
                self.problem(item, part["items"], f"{location}[{number}]")
                for number, item in enumerate(value)
            )
            return next((problem for problem in inner if problem), None)
        return None

    def _in_object(self, value: Mapping[str, Any], part: Schema, location: str) -> str | None:
        for name in part.get("required", ()):
            if name not in value:
                return f"{location} lacks {shown(name)}"
        properties = part.get("properties", {})
        inner = (
            self.problem(value[name], properties[name], f"{location}.{shown(name)}")
            for name in value
            if name in properties
        )
        return next((problem for problem in inner if problem), None)


def _is(value: object, kind: str) -> bool:
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in ("integer", "number"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return kind == "number" or float(value).is_integer()
    return isinstance(value, {"string": str, "array": list, "object": dict}[kind])
