"""Workspaces, and operations on a whole workspace."""

from __future__ import annotations

from memservice.api import v3
from memservice.api.auth import RouteAccess
from memservice.api.routing import Call
from memservice.api.schema import page_of
from memservice.api.v2.routes import Routes
from memservice.api.v2.schemas import workspaces as schemas
from memservice.api.v3.schemas.workspaces import QueueStatus
from memservice.domain.records import Workspace
from memservice.services import deletion
from memservice.services.tasks import queue_status

routes = Routes(
    "workspaces",
    "Workspaces are isolated from each other. Each has its own peers, sessions, messages and "
    "observations.",
)

_WORKSPACE = "/v2/workspaces/<workspace_id>"
_OWN = RouteAccess(workspace="workspace_id")
_NEWEST = v3.workspaces.routes

routes.as_newest(
    _NEWEST,
    v3.workspaces.get_or_create_workspace,
    body=schemas.WorkspaceCreate,
    answer=schemas.Workspace,
)
routes.as_newest(
    _NEWEST,
    v3.workspaces.list_workspaces,
    body=schemas.WorkspaceGet,
    answer=page_of(schemas.Workspace),
)
routes.as_newest(
    _NEWEST, v3.workspaces.update_workspace, body=schemas.WorkspaceUpdate, answer=schemas.Workspace
)


@routes.operation("DELETE", _WORKSPACE, access=_OWN, answer=schemas.Workspace)
def delete_workspace(call: Call, workspace_id: str) -> Workspace:
    """Delete a workspace, and everything in it

    It disappears immediately and its id is free; its contents are erased in the background. The
    response is the deleted workspace.
    """
    deleted = deletion.delete_workspace(call.rt, call.principal, workspace_id, with_sessions=True)
    return deleted.workspace


@routes.operation(
    "GET",
    _WORKSPACE + "/deriver/status",
    also=(_WORKSPACE + "/queue/status",),
    access=_OWN,
    query=schemas.DeriverStatusQuery,
    answer=QueueStatus,
)
def get_deriver_status(call: Call, workspace_id: str) -> queue_status.QueueStatus:
    """Count a workspace's background work"""
    query = call.query
    observer = query["observer_id"] or query["peer_id"]
    sender = query["sender_id"] or (query["peer_id"] if query["include_sender"] else None)
    return queue_status.status(
        call.rt,
        call.principal,
        workspace_id,
        observer or None,
        sender or None,
        query["session_id"] or None,
    )
