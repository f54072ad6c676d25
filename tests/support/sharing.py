"""What the stores and applications of a test process share.

A process of the product opens one store and loads its plugins once. A test process does it
thousands of times, and computes the same each time.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import httpx
import pluggy
import pytest
from httpx._transports import default as transports

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
