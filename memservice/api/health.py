"""Liveness and readiness."""

from __future__ import annotations

from collections.abc import Sequence

from flask import current_app
from msgspec import Struct

from memservice.api.auth import RouteAccess
from memservice.api.routing import EXTENSION, Call, Routes
from memservice.api.service_schemas import Health, Readiness
from memservice.operations import doctor
from memservice.operations.doctor import Check, State

routes = Routes("health", "Liveness")


class _Ok:
    status = "ok"


@routes.operation("GET", "/health", access=RouteAccess(open=True), answer=Health, alone=True)
def health() -> _Ok:
    """Check that the process responds

    Requires no key and does not use the database.
    """
    return _Ok()


class _Ready(Struct, frozen=True):
    status: State
    checks: Sequence[Check]


@routes.operation(
    "GET", "/health/ready", access=RouteAccess(open=True), answer=Readiness, status=(200, 503)
)
def ready(call: Call) -> tuple[_Ready, int]:
    """Check all parts of the service

    503 if a part has failed; with a `degraded` part the service still works. No key is required, so
    the advice is general; `memservice doctor` shows the details. The result is cached for about two
    seconds.
    """
    checks = current_app.extensions[EXTENSION].readiness.get()
    state = doctor.overall(checks)
    return _Ready(state, checks), 503 if state == doctor.BROKEN else 200
