"""What the server imports before it forks: its processes then share the memory, and none spends
the time again."""

from __future__ import annotations

import importlib
from contextlib import suppress

from memservice.domain import tokens
from memservice.domain.errors import ConfigurationError
from memservice.plugins import load_plugins
from memservice.settings import load_settings


def preload() -> None:
    """Import the application, the plugins and the modules of the configured storage, and load the
    constant tables. Opens nothing; what is wrong with the settings is left for the processes to
    report, which load them again."""
    import memservice.app  # noqa: F401

    tokens.count("")
    with suppress(ConfigurationError):
        settings = load_settings()
        storage = load_plugins(settings).storage(settings.db.connection_uri)
        for module in storage.modules:
            with suppress(ImportError):  # `open` says what is missing
                importlib.import_module(module)
