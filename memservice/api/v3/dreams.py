"""Dreams: consolidating what one peer knows about another."""

from __future__ import annotations

from memservice.api.auth import RouteAccess
from memservice.api.routing import Call, Routes
from memservice.api.v3.schemas import dreams as schemas
from memservice.services import dreams
from memservice.services.dreams import DreamRequest

routes = Routes(
    "dreams",
    (
        "Dreams consolidate what is known: repetitions are merged, what is outdated gives way, "
        "cards are written."
    ),
)


@routes.operation(
    "POST",
    "/v3/workspaces/<workspace_id>/schedule_dream",
    access=RouteAccess(workspace="workspace_id"),
    body=schemas.ScheduleDreamRequest,
    status=(204,),
)
def schedule_dream(call: Call, workspace_id: str) -> None:
    """Consolidate what `observer` knows about `observed` (itself, if nothing is said), as soon as a
    worker is free

    If the same dream is waiting or running already, or nothing is known yet of these peers or of
    that session, nothing happens. `rebuild` writes a card without looking at the old one.
    """
    body = call.body
    request = DreamRequest(
        observer=body["observer"],
        kind=body["dream_type"],
        observed=body["observed"] or None,
        session=body["session_id"] or None,
        rebuild=body["rebuild"],
    )
    dreams.schedule(call.rt, call.principal, workspace_id, request)
