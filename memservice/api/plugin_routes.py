"""Routes of plugins: served next to the API, and authenticated before any code of a plugin runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from flask import Flask, request

from memservice.api import auth
from memservice.api.auth import RouteAccess
from memservice.api.forms import refuse_cross_site
from memservice.api.parsing import claims_json
from memservice.api.routing import EXTENSION
from memservice.api.shared_answer import SharedAnswer
from memservice.api.streaming import Slots
from memservice.domain.errors import ConfigurationError
from memservice.operations.doctor import Check
from memservice.plugins import Plugins
from memservice.runtime import Runtime
from memservice.services.auth.principal import Principal
from memservice.settings import Settings
from memservice.spi import web
from memservice.spi.web import ADMIN, Access, declared

log = logging.getLogger("memservice.plugins")


class Application(auth.Application, Protocol):
    """The parts of the application that plugin routes use."""

    settings: Settings
    slots: Slots
    readiness: SharedAnswer[list[Check]]


_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def mount(app: Flask, plugins: Plugins) -> None:
    """Add the routes of plugins. Every route that is added after this call counts as a plugin's.
    Raises `ConfigurationError` for routes that cannot be added."""
    ours = frozenset(app.view_functions)
    application: Application = app.extensions[EXTENSION]

    def guard() -> None:
        endpoint = request.endpoint
        if endpoint is None or endpoint in ours:
            return
        bound = _Bound(application)
        web.bind(bound)  # error handlers of plugins use it too
        if request.method not in _SAFE and not claims_json(request):
            refuse_cross_site(request)
        rule = _access(app, endpoint, request.blueprints) or ADMIN
        path = {name: str(value) for name, value in (request.view_args or {}).items()}
        required = RouteAccess(rule.open, _is_for_admins(rule), rule.workspace)
        if not rule.open:
            bound.admit(auth.principal(application, required, path))

    def unbind(error: BaseException | None) -> None:
        web.bind(None)

    app.before_request(guard)  # registered before those of plugins, so it runs first
    app.teardown_request(unbind)
    pages = [page for of_plugin in plugins.hook.memservice_console_pages() for page in of_plugin]
    for blueprints in plugins.hook.memservice_blueprints(
        settings=application.settings, pages=pages
    ):
        for blueprint in blueprints:
            # Of two rules for one path, werkzeug takes the first: that of the API.
            try:
                app.register_blueprint(blueprint)
            except ValueError as error:
                raise ConfigurationError(
                    f"The routes of the blueprint {blueprint.name!r} cannot be added: {error}"
                ) from error
    _check(app, ours)


class _Bound:
    """Implements the functions of `memservice.spi.web` for one request."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._principal: Principal | None = None

    def admit(self, principal: Principal) -> None:
        self._principal = principal

    @property
    def runtime(self) -> Runtime:
        return self._application.runtime

    @property
    def settings(self) -> Settings:
        return self._application.settings

    @property
    def requires_keys(self) -> bool:
        return self._application.guard is not None

    def principal(self) -> Principal:
        if self._principal is None:
            self._principal = auth.optional_principal(self._application)
        return self._principal

    def health(self) -> Sequence[Check]:
        return self._application.readiness.get()

    def hold_slot(self) -> Callable[[], None]:
        return self._application.slots.take()


def _check(app: Flask, ours: frozenset[str]) -> None:
    for rule in app.url_map.iter_rules():
        if rule.endpoint in ours:
            continue
        parts = rule.endpoint.split(".")[:-1]
        access = _access(
            app, rule.endpoint, [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
        )
        if access is None and app.extensions[EXTENSION].guard is not None:
            log.warning(
                (
                    "the route %s of a plugin declares no access: only an admin key can use it "
                    "(memservice.spi.web)"
                ),
                rule.rule,
            )
        if (
            access is not None
            and access.workspace is not None
            and access.workspace not in rule.arguments
        ):
            raise ConfigurationError(
                f"The route {rule.rule} of a plugin declares access by "
                f"{access.workspace!r}, which is not in its path"
            )


def _access(app: Flask, endpoint: str, blueprints: Iterable[str]) -> Access | None:
    """The access of the view, or else of the innermost of its blueprints that declares one."""
    declaring_objects = (
        app.view_functions.get(endpoint),
        *(app.blueprints.get(name) for name in blueprints),
    )
    return next(
        (
            access
            for declaring_object in declaring_objects
            if (access := declared(declaring_object)) is not None
        ),
        None,
    )


def _is_for_admins(rule: Access) -> bool:
    return not rule.open and rule.workspace is None
