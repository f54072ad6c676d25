"""Settings with a free part in their name: `LLM_<NAME>_API_KEY` for every transport, and
`PLUGIN_<NAME>__<FIELD>` for every plugin. The core knows the form of such names, not which there
are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from memservice.settings.declare import Leaf, Meta

NAME = r"[A-Z0-9]+(?:_[A-Z0-9]+)*?"


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """A mapping in the settings, by name and field."""

    path: tuple[str, ...]
    """Attributes from `Settings` down to the mapping."""
    table: str
    """The section of the TOML file."""
    prefix: str
    """Variables are the prefix, the name, the separator and the field."""
    separator: str
    fields: Mapping[str, Meta] | None
    """None: a plugin declares them; each may be any value, and is secret."""
    help: str
    aliases: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Other variables, each with the name and the field that it means."""

    @property
    def template(self) -> str:
        """`LLM_<NAME>_…`, for messages and pages."""
        return f"{self.prefix}<NAME>{self.separator}"

    @property
    def is_nested(self) -> bool:
        """Whether the TOML file has a table for each name; else a key is `name_field`."""
        return self.fields is None

    def of_variable(self, variable: str) -> Leaf | None:
        """The setting of that variable; None if it is not of this form."""
        if variable in self.aliases:
            return _leaf(self, *self.aliases[variable])
        last = (
            "|".join(part.upper() for part in self.fields) if self.fields else r"[A-Z0-9][A-Z0-9_]*"
        )
        match = re.fullmatch(f"{self.prefix}({NAME}){self.separator}({last})", variable)
        return _leaf(self, match[1].lower(), match[2].lower()) if match else None

    def of_path(self, path: tuple[str, ...]) -> Leaf | None:
        """The setting at that place of the TOML file; None if there is none."""
        former = "_".join(path).upper()
        if former in self.aliases:
            return self.of_variable(former)
        if path[0] != self.table or len(path) != (3 if self.is_nested else 2):
            return None
        parts = (part.replace("-", "_").upper() for part in path[1:])
        return self.of_variable(self.prefix + self.separator.join(parts))

    def opens(self, path: tuple[str, ...]) -> bool:
        """Whether a table of the TOML file at that place has settings of this family."""
        return self.is_nested and len(path) == 2 and path[0] == self.table


@cache
def _leaf(family: Family, name: str, part: str) -> Leaf:
    """One object for each setting, whichever source names it."""
    meta = family.fields[part] if family.fields else Meta(family.help)
    toml_path = (family.table, name, part) if family.is_nested else (family.table, f"{name}_{part}")
    aliases = tuple(variable for variable, own in family.aliases.items() if own == (name, part))
    return Leaf(
        f"{family.prefix}{name.upper()}{family.separator}{part.upper()}",
        (*family.path, name, part),
        str | None if family.fields else Any,
        None,
        meta,
        aliases,
        toml_path,
    )


CONNECTIONS = Family(
    ("llm", "connections"),
    "llm",
    "LLM_",
    "_",
    {
        "api_key": Meta("key for the language models and embedders of that transport"),
        "base_url": Meta(
            "URL for that transport; any server that speaks its protocol", secrecy="uri"
        ),
    },
    "where the models of a transport are",
)

OPTIONS = Family(
    ("plugins", "options"),
    "plugins",
    "PLUGIN_",
    "__",
    None,
    "a setting of that plugin alone",
    {"WEBHOOK_JSONL_DIRECTORY": ("jsonl", "directory")},
)

FAMILIES = (CONNECTIONS, OPTIONS)


def transport_key(name: str) -> str:
    """A name as variables spell it: `my-model` is `MY_MODEL` there."""
    return name.strip().lower().replace("-", "_")


def of_variable(variable: str) -> Leaf | None:
    """The setting of that variable in any family."""
    return next((leaf for family in FAMILIES if (leaf := family.of_variable(variable))), None)


def of_path(path: tuple[str, ...]) -> Leaf | None:
    """The setting at that place of the TOML file in any family."""
    return next((leaf for family in FAMILIES if (leaf := family.of_path(path))), None)


def similar(variable: str) -> list[str]:
    """The settings of the transport that a mistyped variable seems to mean."""
    match = re.fullmatch(f"{CONNECTIONS.prefix}({NAME})_.*", variable)
    if match is None or not CONNECTIONS.fields:
        return []
    return [f"{CONNECTIONS.prefix}{match[1]}_{part.upper()}" for part in CONNECTIONS.fields]


def collapse(values: dict[tuple[str, ...], Any], family: Family) -> dict[str, dict[str, Any]]:
    """Take the values of a family out of `values`, as one mapping by name and field."""
    tables: dict[str, dict[str, Any]] = {}
    size = len(family.path)
    for path in [path for path in values if path[:size] == family.path]:
        name, part = path[size:]
        value = values.pop(path)
        if value is not None:
            tables.setdefault(name, {})[part] = value
    return tables
