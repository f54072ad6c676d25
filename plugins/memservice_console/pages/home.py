"""Home: whether everything works, and how to connect a client."""

from __future__ import annotations

import platform
from importlib.util import find_spec

from flask import Response, current_app, request

from memservice.operations import doctor
from memservice.runtime import Runtime
from memservice.services import message_days
from memservice.services.tasks import jobs
from memservice.spi import web
from memservice_console.rendering import redirect, render
from memservice_console.routes import Routes
from memservice_console.visitors import visitor

routes = Routes()


@routes.get("/console")
def home() -> Response:
    if visitor().workspaces is not None:
        return redirect("workspaces")
    checks = web.health()
    state = doctor.overall(checks)
    if state == doctor.BROKEN:
        return render(
            "home.html",
            checks=checks,
            state=state,
            parts=(),
            backlog=None,
            days=None,
            url=_url(),
            has_mcp=_has_mcp(),
        )
    rt: Runtime = web.runtime()
    return render(
        "home.html",
        checks=checks,
        state=state,
        parts=_parts(rt),
        backlog=jobs.backlog(rt, visitor().principal),
        days=message_days.per_day(rt, visitor().principal),
        url=_url(),
        has_mcp=_has_mcp(),
    )


def _has_mcp() -> bool:
    """Whether assistants can connect: the route is served, and its SDK is installed."""
    return "mcp" in current_app.blueprints and find_spec("mcp") is not None


def _parts(rt: Runtime) -> list[tuple[str, str]]:
    reasoners = sorted(set(rt.reasoners.values()))
    return [
        ("Python", platform.python_version()),
        ("Storage", f"{rt.storage.name}, schema {rt.storage.schema_version()}"),
        ("Vectors", rt.settings.vector_store.type or "in the storage"),
        ("Embedder", f"{rt.embedder.id}, dimension {rt.embedder.dimension}"),
        ("Reasoner", ", ".join(reasoners)),
        ("Runner", "RQ workers" if rt.settings.app.redis_url else "memservice workers"),
    ]


def _url() -> str:
    """The address of this server, as clients are configured with it."""
    return request.host_url.rstrip("/") + request.script_root
