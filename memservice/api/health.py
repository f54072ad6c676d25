"""Liveness."""

from __future__ import annotations

from memservice.api.auth import RouteAccess
from memservice.api.routing import Routes
from memservice.api.schemas.service import Health

routes = Routes("health", "Liveness")


class _Ok:
    status = "ok"


@routes.operation("GET", "/health", access=RouteAccess(open=True), answer=Health, alone=True)
def health() -> _Ok:
    """Tell whether the process answers

    Asks neither for a key nor the database.
    """
    return _Ok()
