"""Dreams: consolidating what one peer knows about another."""

from __future__ import annotations

from memservice.api.auth import RouteAccess
from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v3.schemas import dreams as schemas
from memservice.api.v3.schemas.queries import PageQuery
from memservice.services import dream_changes, dreams
from memservice.services.dream_changes import Dream, Undone
from memservice.services.dreams import DreamRequest
from memservice.services.paging import Page

routes = Routes(
    "dreams",
    (
        "Dreams consolidate what is known: repetitions are merged, what is outdated gives way, "
        "cards are written."
    ),
)


_DREAMS = "/v3/workspaces/<workspace_id>/dreams"
_DREAM = _DREAMS + "/<dream_id>"
_OWN = RouteAccess(workspace="workspace_id")


@routes.operation(
    "POST",
    "/v3/workspaces/<workspace_id>/schedule_dream",
    access=_OWN,
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


@routes.operation("GET", _DREAMS, access=_OWN, query=PageQuery, answer=page_of(schemas.Dream))
def list_dreams(call: Call, workspace_id: str) -> Page[Dream]:
    """List a workspace's dreams, newest first"""
    return dream_changes.page(call.rt, call.principal, workspace_id, paging(call.query))


@routes.operation("GET", _DREAM, access=_OWN, answer=schemas.DreamDetails)
def get_dream(call: Call, workspace_id: str, dream_id: str) -> Dream:
    """Get a dream with what it changed, or proposes to change"""
    return dream_changes.show(call.rt, call.principal, workspace_id, dream_id)


@routes.operation("POST", _DREAM + "/apply", access=_OWN, status=(204,))
def apply_dream(call: Call, workspace_id: str, dream_id: str) -> None:
    """Apply a dream that is held for review, as soon as a worker is free

    409 for a dream that is not held.
    """
    dream_changes.apply(call.rt, call.principal, workspace_id, dream_id)


@routes.operation("POST", _DREAM + "/discard", access=_OWN, status=(204,))
def discard_dream(call: Call, workspace_id: str, dream_id: str) -> None:
    """Discard a dream that is held for review

    409 for a dream that is not held.
    """
    dream_changes.discard(call.rt, call.principal, workspace_id, dream_id)


@routes.operation("POST", _DREAM + "/undo", access=_OWN, answer=schemas.DreamUndone)
def undo_dream(call: Call, workspace_id: str, dream_id: str) -> Undone:
    """Undo what a dream changed

    What changed since the dream stays as it is. 409 for a dream that changed nothing, or was undone
    before.
    """
    return dream_changes.undo(call.rt, call.principal, workspace_id, dream_id)
