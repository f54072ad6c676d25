"""The generations of the API, served side by side over one store, each with its own document and
page, and its own setting.

Only this module mounts them. A generation is a package of `api` with a constant `GENERATION`; a
path belongs to the generation whose name it begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from flask import Flask, Response, request
from msgspec import Struct

from memservice.api import health, playground, v1, v2, v3
from memservice.api.document import Document
from memservice.api.routing import Routes
from memservice.domain.errors import ConfigurationError
from memservice.domain.times import parse_iso
from memservice.settings import Settings

NEWEST_DOCUMENT = "/openapi.json"
"""Additional path of the newest generation's document."""


class Generation(Struct, frozen=True):
    name: str
    """Also the first part of its paths."""
    version: str
    """The version of the API in its document, independent of the product's version."""
    groups: tuple[Routes, ...]
    enabled: Callable[[Settings], bool]
    deprecated_since: Callable[[Settings], str | None] = lambda settings: None
    shared: tuple[Routes, ...] = ()
    """Routes outside the generations that its document describes too."""

    @property
    def document(self) -> str:
        return f"/{self.name}{NEWEST_DOCUMENT}"


GENERATIONS: tuple[Generation, ...] = (
    Generation(
        "v3",
        v3.VERSION,
        v3.GROUPS,
        lambda settings: settings.api.v3_enabled,
        shared=(health.routes,),
    ),
    Generation(
        "v2",
        v2.VERSION,
        v2.GROUPS,
        lambda settings: settings.api.v2_enabled,
        lambda settings: settings.api.v2_deprecated_since,
    ),
    Generation(
        "v1",
        v1.VERSION,
        v1.GROUPS,
        lambda settings: settings.api.v1_enabled,
        lambda settings: settings.api.v1_deprecated_since,
    ),
)
"""Newest first."""

GROUPS: tuple[Routes, ...] = (
    health.routes,
    *(group for generation in GENERATIONS for group in generation.groups),
)
"""All routes, by group."""


def enabled_generations(settings: Settings) -> list[Generation]:
    """The enabled generations, newest first. Raises `ConfigurationError` if there are none."""
    generations = [generation for generation in GENERATIONS if generation.enabled(settings)]
    if not generations:
        names = ", ".join(f"API_{generation.name.upper()}_ENABLED" for generation in GENERATIONS)
        raise ConfigurationError(
            f"Every generation of the API is switched off: set one of {names} to true."
        )
    return generations


def mount(app: Flask, settings: Settings) -> None:
    """Serve the enabled generations, their documents and their playground pages."""
    app.register_blueprint(health.routes)
    generations = enabled_generations(settings)
    for generation in generations:
        document = Document(app, generation.name, generation.version, settings.auth.use_auth)
        for routes in generation.groups:
            app.register_blueprint(routes)
        for routes in (*generation.shared, *generation.groups):
            document.describe(routes)
        document.serve(generation.document, f"document_{generation.name}")
        if generation is generations[0]:
            document.serve(NEWEST_DOCUMENT, "document")
    playground.register(app, {generation.name: generation.document for generation in generations})
    if headers := {
        f"/{generation.name}/": mark
        for generation in generations
        if (mark := _deprecation(settings, generation, generations[0]))
    }:
        app.after_request(partial(_mark, headers))


def _deprecation(
    settings: Settings, generation: Generation, newest: Generation
) -> Mapping[str, str] | None:
    """The headers (RFC 9745) of a generation that the operator has deprecated; None for the
    others."""
    since = generation.deprecated_since(settings)
    if not since:
        return None
    try:
        moment = parse_iso(since)
    except ValueError:
        variable = f"API_{generation.name.upper()}_DEPRECATED_SINCE"
        raise ConfigurationError(
            f"{variable} is {since!r}: give a date, for instance 2026-01-31."
        ) from None
    headers = {"Deprecation": f"@{int(moment.timestamp())}"}
    if newest is not generation:
        headers["Link"] = f'<{newest.document}>; rel="successor-version"'
    return headers


def _mark(headers: Mapping[str, Mapping[str, str]], answer: Response) -> Response:
    for prefix, mark in headers.items():
        if request.path.startswith(prefix):
            answer.headers.update(mark)
    return answer
