"""The console's routes, as one blueprint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from flask import Blueprint, Response, request
from flask.sansio.blueprints import BlueprintSetupState
from werkzeug.exceptions import NotFound as NoSuchPage

import memservice
from memservice.domain import errors
from memservice.domain.errors import ConfigurationError
from memservice.spi import web
from memservice_console import rendering
from memservice_console.pages import (
    account,
    asking,
    audit_log,
    erasures,
    home,
    instance,
    jobs,
    keys,
    members,
    peers,
    plugin_pages,
    searching,
    sessions,
    settings,
    sign_in,
    usage,
    webhooks,
    workspaces,
)
from memservice_console.visitors import SignInRequired, keep_form_secret, visitor

PREFIX = "/console"
MODULES = (
    home,
    instance,
    workspaces,
    peers,
    asking,
    searching,
    sessions,
    erasures,
    jobs,
    webhooks,
    keys,
    usage,
    settings,
    members,
    audit_log,
    account,
    sign_in,
    plugin_pages,
)

_HERE = Path(__file__).parent
ASSETS = {
    "htmx.min.js": ("vendor", "text/javascript"),
    "console.js": ("static", "text/javascript"),
    "console.css": ("static", "text/css"),
    "icon.svg": ("static", "image/svg+xml"),
}
STATUS: dict[type[errors.MemserviceError], int] = {
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Refused: 400,
    errors.Unauthorised: 403,
    errors.Disabled: 405,
    errors.TooLarge: 413,
    errors.InvalidInput: 422,
    errors.Unavailable: 503,
    errors.SchemaVersionError: 503,
    errors.UnsupportedMedia: 415,
    errors.AnswerFailed: 502,
    errors.AnswerUnavailable: 503,
    errors.AnswerTimedOut: 504,
}
_PATH = re.compile(r"[a-z0-9-]+")


def console(pages: Sequence[web.ConsolePage]) -> Blueprint:
    """Raises `ConfigurationError` for pages of plugins that cannot be served."""
    blueprint = web.access(web.OPEN)(Blueprint("console", __name__))
    by_path = _by_path(pages)

    def keep_pages(state: BlueprintSetupState) -> None:
        state.app.extensions[rendering.PAGES] = by_path

    blueprint.record(keep_pages)
    blueprint.add_url_rule("/", "root", _root)
    blueprint.add_url_rule(f"{PREFIX}/assets/<name>", "asset", _asset)
    for module in MODULES:
        module.routes.add_to(blueprint)
    blueprint.register_error_handler(SignInRequired, _sign_in)
    blueprint.register_error_handler(errors.MemserviceError, _refused)
    blueprint.after_request(_protect)
    return blueprint


def _by_path(pages: Sequence[web.ConsolePage]) -> dict[str, web.ConsolePage]:
    by_path: dict[str, web.ConsolePage] = {}
    for page in pages:
        if not _PATH.fullmatch(page.path):
            raise ConfigurationError(
                f"The console page {page.name!r} has the path {page.path!r}: use lower-case "
                "letters, digits and dashes"
            )
        if page.path in by_path:
            raise ConfigurationError(
                f"Two plugins add a console page with the path {page.path!r}: remove one"
            )
        by_path[page.path] = page
    return by_path


def _root() -> Response:
    """Browsers go to the console; JSON clients get the name, the version and links."""
    if request.accept_mimetypes.best_match(["application/json", "text/html"]) == "text/html":
        return rendering.redirect("home")
    answer = rendering.json(
        {
            "name": "memservice",
            "version": memservice.__version__,
            "links": {
                "console": "console",
                "documentation": "docs",
                "openapi": "openapi.json",
                "health": "health",
            },
        }
    )
    answer.headers["Vary"] = "Accept"
    return answer


def _asset(name: str) -> Response:
    if name not in ASSETS:
        raise NoSuchPage
    folder, mimetype = ASSETS[name]
    data = (_HERE / folder / name).read_bytes()
    answer = Response(data, mimetype=mimetype, headers={"Cache-Control": "public, max-age=3600"})
    answer.set_etag(sha256(data).hexdigest()[:32])
    answer.make_conditional(request)
    return answer


def _protect(answer: Response) -> Response:
    answer.headers.update(rendering.HEADERS)
    keep_form_secret(answer)
    return answer


def _sign_in(error: SignInRequired) -> Response:
    return sign_in.show(status=401)


def _refused(error: errors.MemserviceError) -> Response:
    status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), None)
    if status is None:
        raise error
    try:
        page_visitor = visitor()
    except (SignInRequired, errors.MemserviceError):
        page_visitor = None
    text = (
        "The store cannot be used at the moment: try again."
        if isinstance(error, errors.Unavailable) and not isinstance(error, errors.Busy)
        else str(error)
    )
    return rendering.page("refused.html", status, visitor=page_visitor, status=status, text=text)
