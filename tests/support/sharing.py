"""What the stores and applications of a test process share.

A process of the product opens one store and loads its plugins once. A test process does it
thousands of times, and computes the same each time.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import cache
from importlib import metadata
from operator import attrgetter
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import httpx
import pluggy
import pytest
from httpx._transports import default as transports
from werkzeug.routing import Map, Rule, RuleFactory
from werkzeug.routing.matcher import StateMachineMatcher

from memservice_sql import storage as sql_storage
from memservice_sql.dialect import SqlDialect
from memservice_sql.rows import Store
from memservice_sqlite import connections


def share_statements(patch: pytest.MonkeyPatch) -> None:
    """All stores of one kind of database use the same compiled statements and tables."""
    stores: dict[type[SqlDialect], Store] = {}

    class SharedStore(Store):
        def __init__(self, dialect: SqlDialect, sqlalchemy_dialect: Any) -> None:
            kind = type(dialect)
            if kind not in stores:
                stores[kind] = Store(dialect, sqlalchemy_dialect)
            vars(self).update(vars(stores[kind]))
            self.dialect, self.ready_positions = dialect, {}
            dialect._inserts = stores[kind].dialect._inserts  # type: ignore[attr-defined]

    patch.setattr(sql_storage, "Store", SharedStore)


def share_metadata(patch: pytest.MonkeyPatch) -> None:
    """Parse the metadata of a distribution once: each access to its name or version does it."""
    parse = metadata.Distribution.metadata.fget  # type: ignore[attr-defined]
    parsed: WeakKeyDictionary[metadata.Distribution, Any] = WeakKeyDictionary()

    def shared(distribution: metadata.Distribution) -> Any:
        if distribution not in parsed:
            parsed[distribution] = parse(distribution)  # pyrefly: ignore[not-callable]
        return parsed[distribution]

    patch.setattr(metadata.Distribution, "metadata", property(shared))


def find_hooks_fast(patch: pytest.MonkeyPatch) -> None:
    """Find the hooks of a plugin that is a module without `inspect.getattr_static`, which pluggy
    calls for each of its attributes. A module returns its attributes as they are stored."""
    find = pluggy._manager._static_hook_attr
    bound = (classmethod, staticmethod, MethodType)

    def hook_of(plugin: object, name: str) -> Any:
        if type(plugin) is not ModuleType or isinstance(value := vars(plugin)[name], bound):
            return find(plugin, name)
        return (value, value) if type(value) is FunctionType else None

    patch.setattr(pluggy._manager, "_static_hook_attr", hook_of)


def share_certificates(patch: pytest.MonkeyPatch) -> None:
    """Read the certificates of all authorities once. Each client of HTTP does it, for 40 ms."""
    create = httpx.create_ssl_context

    @cache
    def trusted(file: str | None, folder: str | None) -> ssl.SSLContext:
        return create()

    def shared(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
        if verify is not True or cert is not None or not trust_env:
            return create(verify, cert, trust_env)
        return trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))

    for module in (httpx, transports):
        patch.setattr(module, "create_ssl_context", shared)


def share_maps(patch: pytest.MonkeyPatch) -> None:
    """Applications with equal routes share the tree in which Werkzeug finds them. To bind the rules
    and to grow it is half of the time that an application takes to make."""
    add, update = Map.add, Map.update
    grown: dict[Hashable, tuple[StateMachineMatcher, dict[Any, list[Rule]]]] = {}
    added: WeakKeyDictionary[Map, list[tuple[Rule, Hashable]]] = WeakKeyDictionary()

    def collect(self: Map, factory: RuleFactory) -> None:
        rules = added.setdefault(self, [])
        rules += [(rule, _described(rule)) for rule in factory.get_rules(self)]
        self._remap = True

    def grow(self: Map) -> None:
        if not self._remap:
            return
        rules = added.get(self, [])
        key = (
            self.merge_slashes,
            self.host_matching,
            tuple(self.converters.items()),
            tuple(described for _, described in rules),
        )
        if key not in grown:
            self._matcher = StateMachineMatcher(self.merge_slashes)
            self._rules_by_endpoint = {}
            for rule, _ in rules:
                rule.map = None  # type: ignore[assignment]  # as before it is bound
                add(self, rule)
            update(self)
            grown[key] = self._matcher, self._rules_by_endpoint
        self._matcher, self._rules_by_endpoint = grown[key]
        self._remap = False

    patch.setattr(Map, "add", collect)
    patch.setattr(Map, "update", grow)


_plain = attrgetter(
    *("__class__", "rule", "endpoint", "subdomain", "host", "redirect_to"),
    *("strict_slashes", "merge_slashes", "build_only", "alias", "websocket"),
)


def _described(rule: Rule) -> Hashable:
    """All of what a rule was made with."""
    return (
        _plain(rule),
        None if rule.methods is None else frozenset(rule.methods),
        tuple((rule.defaults or {}).items()),
        getattr(rule, "provide_automatic_options", None),  # of Flask
    )


def copy_new_stores(patch: pytest.MonkeyPatch, content: Callable[[], bytes]) -> None:
    """Let new SQLite files begin with this content, that of an empty store. To run all migrations
    takes a quarter of a second of CPU."""

    def make(path: Path) -> None:
        with suppress(OSError):
            whole = content()
            descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            with os.fdopen(descriptor, "wb") as file:
                file.write(whole)
            try:
                os.link(temporary, path)
            finally:
                os.unlink(temporary)

    patch.setattr(connections, "_make", make)
