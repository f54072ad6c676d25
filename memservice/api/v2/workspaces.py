"""Workspaces, and what concerns a whole workspace."""

from __future__ import annotations

from memservice.api import v3
from memservice.api.auth import RouteAccess
from memservice.api.routing import Call
from memservice.api.schemas.base import page_of
from memservice.api.schemas.workspaces import QueueStatus
from memservice.api.v2.routes import Routes
from memservice.api.v2.shapes import places as shapes
from memservice.domain.records import Workspace
from memservice.services import erasure, queue

routes = Routes("workspaces", "Workspaces keep everything apart: peers, sessions, messages and observations live in one.")

_WORKSPACE = "/v2/workspaces/<workspace_id>"
_OWN = RouteAccess(workspace="workspace_id")
_NEWEST = v3.workspaces.routes

routes.as_newest(_NEWEST, v3.workspaces.get_or_create_workspace, body=shapes.WorkspaceCreate, answer=shapes.Workspace)
routes.as_newest(_NEWEST, v3.workspaces.list_workspaces, body=shapes.WorkspaceGet, answer=page_of(shapes.Workspace))
routes.as_newest(_NEWEST, v3.workspaces.update_workspace, body=shapes.WorkspaceUpdate, answer=shapes.Workspace)


@routes.operation("DELETE", _WORKSPACE, access=_OWN, answer=shapes.Workspace)
def delete_workspace(call: Call, workspace_id: str) -> Workspace:
    """Delete a workspace, and everything in it

    It is gone at once and its id free again; what was in it is erased in the background. The answer shows what it was.
    """
    return erasure.delete_workspace(call.rt, call.who, workspace_id, with_sessions=True)


@routes.operation(
    "GET",
    _WORKSPACE + "/deriver/status",
    also=(_WORKSPACE + "/queue/status",),
    access=_OWN,
    query=shapes.DeriverStatusQuery,
    answer=QueueStatus,
)
def get_deriver_status(call: Call, workspace_id: str) -> queue.QueueStatus:
    """Count a workspace's background work"""
    query = call.query
    observer = query["observer_id"] or query["peer_id"]
    sender = query["sender_id"] or (query["peer_id"] if query["include_sender"] else None)
    return queue.status(call.rt, call.who, workspace_id, observer or None, sender or None, query["session_id"] or None)
