"""What the stores and applications of a test process share.

A process of the product opens one store and loads its plugins once. A test process does it
thousands of times, and computes the same each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import pluggy
import pytest

from memservice_sql import storage as sql_storage
from memservice_sql.dialect import SqlDialect
from memservice_sql.rows import Store


def share_statements(patch: pytest.MonkeyPatch) -> None:
    """All stores of one kind of database use the same compiled statements and tables."""
    stores: dict[type[SqlDialect], Store] = {}

    class SharedStore(Store):
        def __init__(self, dialect: SqlDialect, sqlalchemy_dialect: Any) -> None:
            kind = type(dialect)
            if kind not in stores:
                stores[kind] = Store(dialect, sqlalchemy_dialect)
            vars(self).update(vars(stores[kind]))
            self.dialect = dialect

    patch.setattr(sql_storage, "Store", SharedStore)


def share_metadata(patch: pytest.MonkeyPatch) -> None:
    """Parse the metadata of a distribution once: each access to its name or version does it."""
    parse = metadata.Distribution.metadata.fget  # type: ignore[attr-defined]
    parsed: WeakKeyDictionary[metadata.Distribution, Any] = WeakKeyDictionary()

    def shared(distribution: metadata.Distribution) -> Any:
        if distribution not in parsed:
            parsed[distribution] = parse(distribution)
        return parsed[distribution]

    patch.setattr(metadata.Distribution, "metadata", property(shared))


def share_hooks(patch: pytest.MonkeyPatch) -> None:
    """Look once at each attribute of a plugin that is a module whether it is a hook. A hook that a
    test replaces is another value, at which this looks again."""
    parse = pluggy.PluginManager.parse_hookimpl_opts
    by_marker: dict[tuple[str, str], tuple[object, Mapping[str, Any] | None]] = {}

    def shared(manager: pluggy.PluginManager, plugin: object, name: str) -> Any:
        if type(plugin) is not ModuleType or name not in vars(plugin):
            return parse(manager, plugin, name)
        value, key = vars(plugin)[name], (f"{manager.project_name} {plugin.__name__}", name)
        if key not in by_marker or by_marker[key][0] is not value:
            by_marker[key] = value, parse(manager, plugin, name)
        options = by_marker[key][1]
        return None if options is None else dict(options)

    patch.setattr(pluggy.PluginManager, "parse_hookimpl_opts", shared)
