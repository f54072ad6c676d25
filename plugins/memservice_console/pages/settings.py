"""Settings in force with their sources, and plugins."""

from __future__ import annotations

from flask import Response

from memservice.runtime import Runtime
from memservice.services.auth.permissions import Permission
from memservice.spi import web
from memservice_console.rendering import render
from memservice_console.routes import Routes

routes = Routes(needs=Permission.VIEW_SETTINGS)


@routes.get("/console/settings")
def settings() -> Response:
    rt: Runtime = web.runtime()
    return render(
        "settings.html",
        rows=rt.settings.rows(),
        notes=rt.settings.notes,
        plugins=[row for row in rt.plugins.listing() if row.kind != "failed"],
        failures=[row for row in rt.plugins.listing() if row.kind == "failed"],
    )
