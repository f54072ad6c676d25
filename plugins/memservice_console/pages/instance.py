"""Instance: machines and processes."""

from __future__ import annotations

from flask import Response

from memservice.operations import instance as operation
from memservice.runtime import Runtime
from memservice.services import release_feed
from memservice.services.auth.permissions import Permission
from memservice.spi import web
from memservice_console.rendering import render
from memservice_console.routes import Routes
from memservice_console.visitors import visitor

routes = Routes(needs=Permission.VIEW)


@routes.get("/console/instance")
def instance() -> Response:
    rt: Runtime = web.runtime()
    overview = operation.look(rt, visitor().principal)
    upgrade = release_feed.available(rt, visitor().principal)
    return render("instance.html", instance=overview, upgrade=upgrade)
