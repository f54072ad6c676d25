"""Dreams: consolidation of one peer's conclusions about another."""

from __future__ import annotations

from memservice.api.auth import RouteAccess
from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v3.schemas import dreams as schemas
from memservice.api.v3.schemas.queries import PageQuery
from memservice.services import dream_changes, dream_descriptions, dreams
from memservice.services.dream_changes import Undone
from memservice.services.dream_descriptions import Dream
from memservice.services.dreams import DreamRequest
from memservice.services.paging import Page

routes = Routes(
    "dreams",
    (
        "Dreams consolidate conclusions: they merge duplicates, replace outdated conclusions and "
        "write cards."
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
    """Schedule a dream of `observer` about `observed` (by default itself)

    It runs as soon as a worker is free. Nothing happens if the same dream is already waiting or
    running, or if there are no conclusions about these peers or from that session yet. `rebuild`
    writes a card without reading the old one.
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
    return dream_descriptions.page(call.rt, call.principal, workspace_id, paging(call.query))


@routes.operation("GET", _DREAM, access=_OWN, answer=schemas.DreamDetails)
def get_dream(call: Call, workspace_id: str, dream_id: str) -> Dream:
    """Get a dream with its changes, or the changes that it proposes"""
    return dream_descriptions.show(call.rt, call.principal, workspace_id, dream_id)


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
    """Undo the changes of a dream

    Rows that have changed since the dream are left alone. 409 for a dream without changes, or one
    that was undone already.
    """
    return dream_changes.undo(call.rt, call.principal, workspace_id, dream_id)
