"""Where settings are written: a TOML file, an `.env` file, the environment. Each becomes a layer of
raw values, by setting."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memservice.domain.errors import ConfigurationError
from memservice.settings import families
from memservice.settings.declare import Leaf, Tree
from memservice.settings.unknown_names import (
    OTHER_PROGRAMS,
    did_you_mean,
    explain,
    is_without_effect,
)
from memservice.settings.values import show

OWN = "MEMSERVICE_"
SWITCHES = frozenset({"MEMSERVICE_CONFIG", "MEMSERVICE_URL", "MEMSERVICE_API_KEY"})
FOR_TESTS = "MEMSERVICE_TEST_"
"""Variables of test suites (`memservice.testing`), never settings."""


@dataclass(frozen=True, slots=True)
class Given:
    """A raw value and where it was found."""

    raw: object
    name: str
    source: str


@dataclass(slots=True)
class Layer:
    """What one source says. `problems` stop the start; what else is wrong is reported."""

    source: str
    values: dict[Leaf, Given] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    mistyped: dict[str, str] = field(default_factory=dict)
    """Names that resemble a setting, each with a sentence."""
    unknown: list[str] = field(default_factory=list)
    """Other names that begin like settings."""
    without_effect: list[str] = field(default_factory=list)
    """Settings that other servers of this API have."""

    def forget_replaced(self, settings: Container[str]) -> None:
        """Drop names of other programs whose settings, by canonical name, have a value."""
        for name, setting in OTHER_PROGRAMS.items():
            if setting in settings:
                self.mistyped.pop(name, None)

    def notes(self) -> Iterator[str]:
        """A sentence about each mistyped name, and one about all others of a kind."""
        yield from self.mistyped.values()
        if self.unknown:
            yield f"no settings of memservice, ignored: {', '.join(self.unknown)} ({self.source})"
        if self.without_effect:
            yield f"without effect here: {', '.join(self.without_effect)} ({self.source})"

    def give(self, leaf: Leaf, raw: object, name: str, *, certain: bool = True) -> None:
        """Record a value. Two names of one setting must agree, unless the later one is `certain`
        and the earlier was part of a group."""
        before = self.values.get(leaf)
        if before is not None and before.name != name and before.raw != raw and certain:
            self.problems.append(
                f"{before.name} and {name} are one setting, but have different values in "
                f"{self.source}: keep one of them"
            )
        self.values[leaf] = Given(raw, name, self.source)


def from_toml(path: Path, tree: Tree) -> Layer:
    """The layer that a TOML file makes. Raises `ConfigurationError` if it cannot be read at all."""
    import tomllib

    layer = Layer(str(path))
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(
            f"cannot read the settings in {path}: {error}. Put strings in quotes, and write each "
            "name and each [section] once"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    sections = {leaf.path[0] for leaf in tree.leaves}
    for key, value in document.items():
        name = key.lower()
        leaf = tree.by_variable.get(name.upper())
        if name in sections and isinstance(value, dict):
            _table(layer, tree, (name,), value)
        elif leaf is not None and not isinstance(value, dict):
            layer.problems.append(
                f"{key} in {path} stands outside any section: write it as {leaf.toml}"
            )
        elif is_without_effect(name.upper() + "_") or is_without_effect(name.upper()):
            layer.without_effect.append(f"[{key}]" if isinstance(value, dict) else key)
        else:
            layer.problems.append(
                f"{path} has no section or setting called {key}{did_you_mean(name, sections)}"
            )
    return layer


def _table(
    layer: Layer,
    tree: Tree,
    path: tuple[str, ...],
    table: Mapping[str, Any],
    *,
    certain: bool = True,
) -> None:
    """Read one table, and the tables in it."""
    for key, value in table.items():
        here = (*path, key.lower())
        where = f"[{'.'.join(path)}] {key}"
        leaf = tree.by_path.get(here) or families.of_path(here)
        if leaf is not None:
            layer.give(leaf, value, where, certain=certain)
        elif here in tree.groups.values() or families.OPTIONS.opens(here):
            if isinstance(value, dict):
                _table(layer, tree, here, value, certain=certain)
            else:
                layer.problems.append(f"{where} in {layer.source} must be a table of settings")
        elif is_without_effect("_".join(here).upper().removeprefix("APP_")):
            layer.without_effect.append(where)
        else:
            siblings = {
                p[len(path)]
                for p in (*tree.by_path, *tree.groups.values())
                if p[: len(path)] == path and len(p) > len(path)
            }
            variables = families.similar("_".join(here).upper())
            siblings |= {name.lower().removeprefix(f"{path[0]}_") for name in variables}
            layer.problems.append(
                f"there is no setting {where} ({layer.source}){did_you_mean(key.lower(), siblings)}"
            )


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> ConfigurationError:
    reason = (
        f"{error.strerror}; the user of this command must be able to read it"
        if isinstance(error, OSError)
        else f"byte {error.start + 1} is not UTF-8: save it as a text in UTF-8"
    )
    return ConfigurationError(f"cannot read the settings in {path}: {reason}")


def dotenv_variables(path: Path) -> dict[str, str]:
    """What an `.env` file sets; nothing if there is none. Raises `ConfigurationError` if it cannot
    be read."""
    if not path.is_file():
        return {}
    from dotenv import dotenv_values

    try:
        variables = dotenv_values(path, interpolate=False, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    return {name: value or "" for name, value in variables.items()}


def from_dotenv(path: Path, tree: Tree) -> Layer:
    """The layer that an `.env` file makes. Raises `ConfigurationError` if it cannot be read."""
    return from_variables(dotenv_variables(path), tree, str(path), ours=True)


def from_variables(variables: Mapping[str, str], tree: Tree, source: str, *, ours: bool) -> Layer:
    """The layer that variables make. An empty variable counts as not set. `ours`: the source was
    written for memservice alone."""
    layer = Layer(source)
    single = []
    for name, raw in variables.items():
        canonical = name.upper() if "__" in name else name
        if not raw.strip():
            continue
        if canonical in tree.groups:
            _group(layer, tree, canonical, raw)
        elif canonical in tree.by_variable or families.of_variable(canonical):
            single.append((canonical, raw))
        else:
            _unknown(layer, tree, name, ours=ours)
    grouped = set(layer.values)
    for name, raw in single:
        leaf = tree.by_variable.get(name) or families.of_variable(name)
        assert leaf is not None
        layer.give(leaf, raw, name, certain=leaf not in grouped)
        grouped.discard(leaf)
    return layer


def _group(layer: Layer, tree: Tree, name: str, raw: str) -> None:
    try:
        value = json.loads(raw)
    except ValueError:
        value = None
    if isinstance(value, dict):
        _table(layer, tree, tree.groups[name], value)
    else:
        layer.problems.append(
            f"{name} in {layer.source} must be a JSON object; its settings may also be "
            f"given one by one: {name}__…"
        )


def _unknown(layer: Layer, tree: Tree, name: str, *, ours: bool) -> None:
    if name.startswith(OWN):
        if name not in SWITCHES and not name.startswith(FOR_TESTS):
            own = [
                variable for variable in (*tree.by_variable, *SWITCHES) if variable.startswith(OWN)
            ]
            suggestion = (
                did_you_mean(name, own) or f"; those that begin so are {', '.join(sorted(own))}"
            )
            layer.problems.append(f"there is no setting {name} ({layer.source}){suggestion}")
        return
    explained = explain(name, tree, ours=ours)
    if explained is None:
        return
    kind, rest = explained
    if kind == "mistyped":
        layer.mistyped[name] = f"there is no setting {name} ({layer.source}): ignored{rest}"
    else:
        names = layer.unknown if kind == "unknown" else layer.without_effect
        names.append(name)


def from_overrides(overrides: Mapping[str, object], tree: Tree, source: str) -> Layer:
    """The layer of values given in code, by canonical name or alias; None counts as not given."""
    layer = Layer(source)
    for name, raw in overrides.items():
        leaf = tree.by_variable.get(name) or families.of_variable(name)
        if leaf is None:
            layer.problems.append(
                f"there is no setting {name} ({source}){did_you_mean(name, tree.by_variable)}"
            )
        elif raw is not None:
            layer.give(leaf, raw, name)
    return layer


def refusal(leaf: Leaf, raw_value: Given, allowed: str) -> str:
    """The sentence that a wrong value is answered with."""
    named = "" if raw_value.name == leaf.name else f", as {raw_value.name}"
    value = show(raw_value.raw, leaf.meta.secrecy) if raw_value.raw != "" else '""'
    return f"{leaf.name} = {value} ({raw_value.source}{named}): must be {allowed}"
