"""How a setting is declared: an ordinary dataclass field whose default is made by `setting` or
`group`."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

Secrecy = Literal["public", "secret", "uri"]
"""Whether a value may be shown. `uri`: shown with its password and keys masked."""

_META = "memservice"


@dataclass(frozen=True, slots=True)
class Meta:
    """What is known about a setting beyond its type and default."""

    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    secrecy: Secrecy = "secret"
    env: str | None = None
    """The variable's whole name, where it is not the section's prefix and the field's name."""
    aliases: tuple[str, ...] = ()
    """Other variables that mean this setting, each a whole name."""
    also: tuple[str, ...] = ()
    """Other names of the field itself, wherever its group is used."""


def setting(
    default: T,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] = (),
    secrecy: Secrecy | None = None,
    env: str | None = None,
    aliases: Sequence[str] = (),
    also: Sequence[str] = (),
) -> T:
    """One setting. `low` and `high` are inclusive bounds; `choices` are lower case. A secret is
    left out of `repr`.

    A number, a switch and a choice among words are public unless `secrecy` says otherwise. Every
    other setting is secret unless it does.
    """
    if secrecy is None:
        holds_no_text = (
            isinstance(default, (bool, int, float))
            or low is not None
            or high is not None
            or bool(choices)
        )
        secrecy = "public" if holds_no_text else "secret"
    meta = Meta(help, low, high, tuple(choices), secrecy, env, tuple(aliases), tuple(also))
    is_public = secrecy == "public"
    entry: Any
    if isinstance(default, dict):
        entry = dataclasses.field(
            default_factory=default.copy, repr=is_public, metadata={_META: meta}
        )
    else:
        entry = dataclasses.field(default=default, repr=is_public, metadata={_META: meta})
    return entry  # type: ignore[no-any-return]  # a dataclass reads the field object as the default of type T


# fast path: see docs/decisions/fast-paths.md#settings-groups
class Group:
    """Base of every group: compared and shown by its fields, without its secrets.

    Written once here: generating both for each of some thirty groups would be a quarter of what
    importing the settings costs.
    """

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def as_mapping(self) -> dict[str, Any]:
        """Its settings as plain values, by name; groups in it as mappings. A copy: a plugin may
        change it."""
        return dataclasses.asdict(self)  # type: ignore[call-overload, no-any-return]  # each subclass is a dataclass

    def __repr__(self) -> str:
        parts = dataclasses.fields(self)  # type: ignore[arg-type]  # each subclass is a dataclass
        values = (f"{part.name}={getattr(self, part.name)!r}" for part in parts if part.repr)
        return f"{type(self).__name__}({', '.join(values)})"


def group(default: T) -> T:
    """A nested group of settings. `default` is an instance, or None for a group that exists only
    when one of its settings is given."""
    entry: Any = dataclasses.field(default_factory=lambda: default)
    return entry  # type: ignore[no-any-return]


def section(default: T, prefix: str) -> T:
    """A section of `Settings`: its variables begin with `prefix`; its table in the TOML file has
    the attribute's name."""
    entry: Any = dataclasses.field(default_factory=lambda: default, metadata={_META: prefix})
    return entry  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """One setting with its full name and place."""

    name: str
    """The canonical variable: `DB_POOL_TIMEOUT`, `DIALECTIC_LEVELS__LOW__MODEL_CONFIG__MODEL`."""
    path: tuple[str, ...]
    """Attributes from `Settings` down: `("db", "pool_timeout")`."""
    type: Any
    default: Any
    meta: Meta
    aliases: tuple[str, ...]
    """Other variables that mean the same."""
    toml_path: tuple[str, ...] | None = None
    """In the TOML file, where it differs from `path`."""

    @property
    def toml(self) -> str:
        """The place in the TOML file: `[db] pool_timeout`."""
        *tables, key = self.toml_path or self.path
        return f"[{'.'.join(tables)}] {key}"


@dataclass(frozen=True, slots=True)
class Tree:
    """Every setting, in order of declaration, and the ways to find one."""

    leaves: tuple[Leaf, ...]
    by_path: Mapping[tuple[str, ...], Leaf]
    by_variable: Mapping[str, Leaf]
    """Canonical names and aliases, upper case."""
    groups: Mapping[str, tuple[str, ...]]
    """Names of nested groups, which may be given as a JSON object: `DERIVER_MODEL_CONFIG` → its
    path."""
    prefixes: tuple[str, ...]
    plain: tuple[str, ...]
    """The names in `by_variable` without a prefix."""


def open_mapping() -> dict[str, Any]:
    """A mapping whose settings have free names (`settings.families`), declared with the group and
    not one by one."""
    entry: Any = dataclasses.field(default_factory=dict, repr=False, metadata={_META: None})
    return entry  # type: ignore[no-any-return]


def optional(hint: Any) -> tuple[Any, bool]:
    """A type without its `| None`, and whether it had one."""
    if get_origin(hint) in (Union, types.UnionType):
        rest = [arg for arg in get_args(hint) if arg is not type(None)]
        return rest[0], len(rest) < len(get_args(hint))
    return hint, False


@cache
def hints(kind: Any) -> dict[str, Any]:
    """The resolved types of a dataclass's fields."""
    return get_type_hints(kind)


@cache
def tree(root: Any) -> Tree:
    """Every setting below `root`, a dataclass of sections."""
    leaves: list[Leaf] = []
    groups: dict[str, tuple[str, ...]] = {}
    prefixes = []
    for part in dataclasses.fields(root):
        prefix = part.metadata.get(_META)
        if isinstance(prefix, str):
            prefixes.append(prefix)
            leaves.extend(
                _walk(hints(root)[part.name], prefix, (part.name,), groups, _default(part))
            )
    by_variable: dict[str, Leaf] = {}
    by_path: dict[tuple[str, ...], Leaf] = {}
    for leaf in leaves:
        for name in (leaf.name, *leaf.aliases):
            if by_variable.setdefault(name, leaf) is not leaf:
                raise TypeError(f"two settings have the name {name}")
        for last in (leaf.path[-1], *leaf.meta.also):
            by_path[(*leaf.path[:-1], last)] = leaf
    named = tuple(prefix for prefix in prefixes if prefix)
    plain = tuple(name for name in by_variable if not name.startswith(named))
    return Tree(tuple(leaves), by_path, by_variable, groups, named, plain)


def _default(part: dataclasses.Field[Any]) -> Any:
    if part.default_factory is not dataclasses.MISSING:
        return part.default_factory()
    return part.default


def _walk(
    kind: Any, prefix: str, path: tuple[str, ...], groups: dict[str, tuple[str, ...]], default: Any
) -> Iterator[Leaf]:
    for part in dataclasses.fields(kind):
        if part.metadata.get(_META, part) is None:
            continue
        hint, _ = optional(hints(kind)[part.name])
        here = (*path, part.name)
        name = prefix + part.name.upper()
        value = getattr(default, part.name) if default is not None else _default(part)
        if dataclasses.is_dataclass(hint):
            groups[name] = here
            yield from _walk(hint, name + "__", here, groups, value)
        else:
            meta: Meta = part.metadata[_META]
            aliases = (*meta.aliases, *(prefix + other.upper() for other in meta.also))
            yield Leaf(meta.env or name, here, hints(kind)[part.name], value, meta, aliases)
