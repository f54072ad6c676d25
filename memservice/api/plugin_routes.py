"""Routes of plugins: served beside ours, and guarded before any code of theirs runs."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from flask import Flask, request

from memservice.api import auth
from memservice.api.auth import RouteAccess
from memservice.api.forms import refuse_strangers
from memservice.api.parsing import claims_json
from memservice.api.routing import EXTENSION
from memservice.domain.errors import ConfigurationError
from memservice.plugins import Plugins
from memservice.spi.web import ADMIN, Access, declared

log = logging.getLogger("memservice.plugins")

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def mount(app: Flask, plugins: Plugins) -> None:
    """Add what plugins serve. Everything that is not served yet is theirs, whenever they add it.
    Raises `ConfigurationError` for routes that cannot be added."""
    ours = frozenset(app.view_functions)

    def guard() -> None:
        endpoint = request.endpoint
        if endpoint is None or endpoint in ours:
            return
        if request.method not in _SAFE and not claims_json(request):
            refuse_strangers(request)
        rule = _access(app, endpoint, request.blueprints) or ADMIN
        path = {name: str(value) for name, value in (request.view_args or {}).items()}
        auth.principal(
            app.extensions[EXTENSION],
            RouteAccess(rule.open, _is_for_admins(rule), rule.workspace),
            path,
        )

    app.before_request(guard)  # before theirs
    for blueprints in plugins.hook.memservice_blueprints():
        for blueprint in blueprints:
            # Of two rules for one path, werkzeug takes the first: ours.
            try:
                app.register_blueprint(blueprint)
            except ValueError as error:
                raise ConfigurationError(
                    f"The routes of the blueprint {blueprint.name!r} cannot be added: {error}"
                ) from error
    _check(app, ours)


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
                    "the route %s of a plugin declares no access: only an admin key opens it "
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
    """What the view declares, or else the innermost of its blueprints that declares anything."""
    places = (app.view_functions.get(endpoint), *(app.blueprints.get(name) for name in blueprints))
    return next((access for place in places if (access := declared(place)) is not None), None)


def _is_for_admins(rule: Access) -> bool:
    return not rule.open and rule.workspace is None
