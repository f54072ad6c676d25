"""Deletion of sessions and workspaces. These operations belong to the groups of sessions and
workspaces."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from memservice.api.auth import RouteAccess
from memservice.api.routing import Call
from memservice.api.service_schemas import Accepted as AcceptedShape
from memservice.api.v3 import erasures, sessions, workspaces
from memservice.services import deletion

of_sessions = sessions.routes
of_workspaces = workspaces.routes


class Accepted(Struct, frozen=True):
    message: str


NO_DRY_RUN = {
    "dry_run": "This route has no dry run: only DELETE of a peer has. Nothing was deleted"
}
"""The other parameters that these routes do not know are ignored."""

AcceptedResponse = tuple[Accepted, int, Mapping[str, str]]
"""Body, status, and the header `Location` with the path of the receipt."""


@of_sessions.operation(
    "DELETE",
    "/v3/workspaces/<workspace_id>/sessions/<session_id>",
    access=RouteAccess(workspace="workspace_id", session="session_id"),
    refused=NO_DRY_RUN,
    answer=AcceptedShape,
    status=(202,),
)
def delete_session(call: Call, workspace_id: str, session_id: str) -> AcceptedResponse:
    """Delete a session

    Its messages, its summaries and the conclusions from it are erased in the background. Until then
    its name remains in use, and it can be read but not written to. The
    header `Location` names the receipt of the erasure.
    """
    erasure = deletion.delete_session(call.rt, call.principal, workspace_id, session_id)
    location = erasures.location(workspace_id, erasure.uid)
    return Accepted("Session deleted successfully"), 202, location


@of_workspaces.operation(
    "DELETE",
    "/v3/workspaces/<workspace_id>",
    access=RouteAccess(workspace="workspace_id"),
    refused=NO_DRY_RUN,
    answer=AcceptedShape,
    status=(202,),
)
def delete_workspace(call: Call, workspace_id: str) -> AcceptedResponse:
    """Delete a workspace

    Refused while it has active sessions. It disappears immediately and its id is free; its contents
    are erased in the background. The header `Location` names the receipt of the erasure, for
    administrators.
    """
    deleted = deletion.delete_workspace(call.rt, call.principal, workspace_id)
    receipt = f"/v3/erasures/{deleted.erasure.uid}"
    return Accepted("Workspace deletion accepted"), 202, {"Location": receipt}
