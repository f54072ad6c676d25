"""The web application."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import lru_cache
from typing import Any

from flask import Flask
from werkzeug.routing import Rule

from memservice.api import auth, errors, exposure, generations, metrics, plugin_routes, requests
from memservice.api.cors import Cors
from memservice.api.hosts import Hosts
from memservice.api.routing import EXTENSION
from memservice.api.shared_answer import SharedAnswer
from memservice.api.streaming import Slots
from memservice.compose import metrics_of, open_runtime
from memservice.domain.sizes import MAX_BODY
from memservice.operations import doctor
from memservice.plugins import Plugins, load_plugins
from memservice.runtime import Runtime
from memservice.settings import Settings, load_settings
from memservice.worker import heartbeats

log = logging.getLogger("memservice.app")


class Opened:
    """The runtime of one process, opened by the first request: a server may fork after the
    application is made."""

    def __init__(self, settings: Settings, plugins: Plugins, runtime: Runtime | None) -> None:
        self.settings = settings
        self.guard = auth.guard_of(settings)
        """Asks for keys; None while authentication is off."""
        self.slots = Slots(settings.server.threads)
        """For answers that take a while."""
        self.readiness = SharedAnswer(lambda: doctor.look(self.runtime))
        """What `/health/ready` tells, to callers without a key, too."""
        self._plugins = plugins
        self.metrics = metrics_of(settings, "api") if runtime is None else runtime.metrics
        """None while they are off."""
        self._runtime = runtime
        self._presence = ExitStack()
        self._lock = threading.Lock()

    @property
    def runtime(self) -> Runtime:
        if self._runtime is None:
            with self._lock:
                if self._runtime is None:
                    self._runtime = open_runtime(
                        self.settings, "api", plugins=self._plugins, metrics=self.metrics
                    )
        return self._runtime

    def announce(self) -> None:
        """Say in the store that this server process is alive, until it is closed."""
        self._presence.enter_context(heartbeats.registered(self.runtime, heartbeats.SERVER))

    def close(self) -> None:
        self._presence.close()
        if self.guard is not None:
            self.guard.close()
        with self._lock:
            if self._runtime is not None:
                self._runtime.close()
                self._runtime = None


# fast path: see docs/decisions/fast-paths.md#url-builders


class LateRule(Rule):
    """A route that compiles the functions for `url_for` when they are first called. There are two
    for each route, few are ever called, and they take most of the time that an application takes
    to make."""

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        compiled: Callable[..., tuple[str, str]] | None = None

        def build(rule: Rule, **values: Any) -> tuple[str, str]:
            nonlocal compiled
            if compiled is None:
                compiled = super(LateRule, self)._compile_builder(append_unknown)
            return compiled(rule, **values)

        return build


class Application(Flask):
    """Flask, which looks at each function for each request to see whether it is a coroutine; here
    once."""

    url_rule_class = LateRule

    def __init__(self, name: str) -> None:
        super().__init__(name, static_folder=None, template_folder=None)
        self._sync = lru_cache(1_024)(super().ensure_sync)

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        return self._sync(func)


def create_app(settings: Settings | None = None, runtime: Runtime | None = None) -> Flask:
    """The application, by these settings (or what the environment says), working with this runtime
    (or one that it opens when first used).

    Opens nothing itself. Raises `ConfigurationError` for settings that it cannot serve.
    """
    if settings is None:
        settings = load_settings() if runtime is None else runtime.settings
    plugins = load_plugins(settings) if runtime is None else runtime.plugins
    if runtime is None:
        plugins.check()

    app = Application("memservice")
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.merge_slashes = False
    app.extensions[EXTENSION] = Opened(settings, plugins, runtime)

    requests.register(app, Cors(settings.app.cors_origins), Hosts(settings))
    errors.register(app)
    metrics.register(app)
    generations.mount(app, settings)
    plugin_routes.mount(app, plugins)
    for warning in exposure.warnings(settings, settings.server.host):
        log.warning("%s", warning)
    plugins.hook.memservice_app_started(app=app)
    return app
