"""What plugins are written with, as data: classes, their fields and methods, functions and their
parameters. `scripts/record-plugin-interface` records it when something was added."""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import msgspec

from memservice.domain import records
from memservice.spi.schema import TABLES

PACKAGES = ("memservice.hookspecs", "memservice.spi")
IMPLEMENTED = "implemented"
"""Kind of a class or function that plugins write, and memservice calls: a protocol or a hook."""
PROVIDED = "provided"
"""Kind of one that plugins use."""

CALLED = ("memservice.spi.toolbox.Toolbox", "memservice.spi.web.Bound")
"""Protocols that plugins call: memservice implements them."""

Interface = dict[str, dict[str, Any]]
"""Name of a class or function → its kind, and its `members` or `parameters`: lists of strings.
Before the name of a parameter stands how it is passed, if not by position or name, and after it
"=", if it has a default."""

PASSED = {
    "POSITIONAL_ONLY": "/",
    "POSITIONAL_OR_KEYWORD": "",
    "KEYWORD_ONLY": "*",
    "VAR_POSITIONAL": "*...",
    "VAR_KEYWORD": "**...",
}


def interface() -> Interface:
    """The present interface."""
    described: Interface = {}
    for package in PACKAGES:
        for module in _modules(package):
            for name, value in vars(module).items():
                if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__:
                    described |= _described(f"{module.__name__}.{name}", value)
    for spec in TABLES:
        described |= _described(f"{records.__name__}.{spec.record.__name__}", spec.record)
    return described


def incompatibilities(recorded: Interface, present: Interface) -> list[str]:
    """Why plugins that were written against the recorded interface would break, or need not be
    complete any more: a line for each reason."""
    return sorted(_incompatibilities(recorded, present))


def _modules(package: str) -> Iterator[Any]:
    module = importlib.import_module(package)
    yield module
    for each in pkgutil.walk_packages(getattr(module, "__path__", []), f"{package}."):
        yield importlib.import_module(each.name)


def _described(name: str, value: Any) -> Interface:
    if inspect.isfunction(value):
        kind = IMPLEMENTED if name.startswith(PACKAGES[0]) else PROVIDED
        return {name: {"kind": kind, "parameters": _parameters(value)}}
    if not inspect.isclass(value):
        return {}
    is_implemented = Protocol in value.__bases__ and name not in CALLED
    kind = IMPLEMENTED if is_implemented else PROVIDED
    described: Interface = {name: {"kind": kind, "members": sorted(_members(value))}}
    if kind == PROVIDED and not issubclass(value, enum.Enum | Exception):
        described[f"{name}()"] = {"kind": kind, "parameters": _parameters(value)}
    for member in _members(value):
        function = inspect.getattr_static(value, member, None)
        function = getattr(function, "__func__", function)  # of a class method
        if inspect.isfunction(function):
            described[f"{name}.{member}"] = {"kind": kind, "parameters": _parameters(function)}
    return described


def _members(value: type[Any]) -> set[str]:
    """The public names that the class itself or a base class of ours declares."""
    ours = [base for base in value.__mro__ if base.__module__.startswith("memservice.")]
    names = {name for base in ours for name in (*vars(base), *inspect.get_annotations(base))}
    return {name for name in names if not name.startswith("_")}


def _parameters(function: Any) -> list[str]:
    if inspect.isclass(function) and issubclass(function, msgspec.Struct):
        # Their signature evaluates annotations, of which some are imported for type checks only.
        names, defaults = function.__struct_fields__, function.__struct_defaults__
        with_default = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
        return [
            ("" if name in function.__match_args__ else PASSED["KEYWORD_ONLY"])
            + name
            + ("" if with_default.get(name, msgspec.NODEFAULT) is msgspec.NODEFAULT else "=")
            for name in names
        ]
    return [
        PASSED[each.kind.name] + each.name + ("" if each.default is each.empty else "=")
        for each in inspect.signature(function).parameters.values()
    ]


def _incompatibilities(recorded: Interface, present: Interface) -> Iterator[str]:
    for name, old in recorded.items():
        new = present.get(name)
        if new is None:
            yield f"{name} is missing"
            continue
        if "members" in old:
            for member in set(old["members"]) - set(new["members"]):
                yield f"{name} has no {member} any more"
            if old["kind"] == IMPLEMENTED:
                for member in set(new["members"]) - set(old["members"]):
                    yield f"{name} has a new {member}, which plugins do not have"
        else:
            yield from _changes(name, old, new)


def _changes(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Incompatible changes of parameters. A hook takes those that it names."""
    is_hook = name.startswith(PACKAGES[0])
    old_parameters, new_parameters = old["parameters"], new["parameters"]
    remaining = [each for each in new_parameters if each in old_parameters]
    if remaining != [each for each in old_parameters if each in new_parameters]:
        yield f"{name}: parameters are in another order"
    for each in old_parameters:
        # A default that is added changes nothing for callers.
        if each not in new_parameters and f"{each}=" not in new_parameters:
            yield f"{name} has no parameter {each} any more"
    old_names = {each.rstrip("=") for each in old_parameters}
    for position, each in enumerate(new_parameters):
        if is_hook or each.rstrip("=") in old_names:
            continue
        if old["kind"] == IMPLEMENTED:
            yield f"{name} has a new parameter {each}, which plugins do not take"
        elif not each.endswith("=") and not each.startswith("*..."):
            yield f"{name}: the new parameter {each} has no default"
        elif not each.startswith("*") and position < len(old_parameters):
            yield f"{name}: the new parameter {each} is not the last one"


def dumped(described: Interface) -> str:
    """One line for each class or function."""
    lines = (json.dumps({"name": name, **each}) for name, each in sorted(described.items()))
    return "".join(f"{line}\n" for line in lines)


def loaded(text: str) -> Interface:
    described = [json.loads(line) for line in text.splitlines()]
    return {each.pop("name"): each for each in described}


if __name__ == "__main__":
    print(dumped(interface()), end="")
