"""What is imported before a process forks: its children then share the memory, and none spends the
time again."""

from __future__ import annotations

import importlib
from contextlib import suppress

from memservice.domain import tokens
from memservice.domain.errors import ConfigurationError
from memservice.plugins import Plugins, load_plugins
from memservice.settings import Settings, load_settings


def preload() -> None:
    """Import what the server's processes need. Opens nothing; what is wrong with the settings is
    left for the processes to report, which load them again."""
    import memservice.app  # noqa: F401

    if not _has_storage:
        with suppress(ConfigurationError):
            settings = load_settings()
            preload_storage(settings, load_plugins(settings))


def preload_server() -> None:
    """Import what only the server's processes need, before `memservice serve` forks them."""
    import gunicorn.app.wsgiapp  # noqa: F401

    import memservice.app
    import memservice.serving.clients  # noqa: F401


_has_storage = False
"""Whether this process or its parent has called `preload_storage`."""


def preload_storage(settings: Settings, plugins: Plugins) -> None:
    """Import what server and worker need: the modules of the configured storage and what opens it.
    Loads the constant tables, too. Raises `ConfigurationError` for a storage that no plugin
    offers."""
    import memservice.compose  # noqa: F401

    global _has_storage
    tokens.count("")
    for module in plugins.storage(settings.db.connection_uri).modules:
        with suppress(ImportError):  # `open` says what is missing
            importlib.import_module(module)
    _has_storage = True
