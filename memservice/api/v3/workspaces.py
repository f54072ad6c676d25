"""Workspaces, and operations on a whole workspace."""

from __future__ import annotations

from flask import Response

from memservice.api.auth import RouteAccess
from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v3.explaining import HEADERS, respond_search
from memservice.api.v3.schemas import messages as message_schemas
from memservice.api.v3.schemas import usage as usage_schemas
from memservice.api.v3.schemas import workspaces as schemas
from memservice.api.v3.schemas.explanations import ExplainedMessage
from memservice.api.v3.schemas.queries import (
    PageQuery,
    QueueFailuresQuery,
    QueueStatusQuery,
    WorkspaceGet,
)
from memservice.domain.records import Workspace
from memservice.services import workspaces
from memservice.services.paging import Page
from memservice.services.tasks import jobs, queue_status
from memservice.services.tasks.jobs import Job, Retried
from memservice.services.usage import report as usage_report

routes = Routes(
    "workspaces",
    "Workspaces are isolated from each other. Each has its own peers, sessions, messages and "
    "conclusions.",
)

_OWN = RouteAccess(workspace="workspace_id")


@routes.operation(
    "POST",
    "/v3/workspaces",
    access=RouteAccess(handler=True),
    body=schemas.WorkspaceCreate,
    answer=schemas.Workspace,
    status=(200, 201),
)
def get_or_create_workspace(call: Call) -> tuple[Workspace, int]:
    """Get a workspace, or create it

    An existing workspace does not change. The key of a peer or a session can create one only by its
    id.
    """
    body = call.body
    workspace, created = workspaces.get_or_create(
        call.rt, call.principal, body["id"], body["metadata"], body["configuration"]
    )
    return workspace, 201 if created else 200


@routes.operation(
    "POST",
    "/v3/workspaces/list",
    reads=True,
    access=RouteAccess(admin=True),
    query=PageQuery,
    body=WorkspaceGet,
    body_optional=True,
    answer=page_of(schemas.Workspace),
)
def list_workspaces(call: Call) -> Page[Workspace]:
    """List workspaces"""
    return workspaces.page(call.rt, call.principal, call.body["filters"], paging(call.query))


@routes.operation(
    "PUT",
    "/v3/workspaces/<workspace_id>",
    access=_OWN,
    body=schemas.WorkspaceUpdate,
    answer=schemas.Workspace,
)
def update_workspace(call: Call, workspace_id: str) -> Workspace:
    """Change a workspace's metadata and configuration

    Metadata is replaced, configuration is merged section by section; a field that is null or absent
    does not change. A missing workspace is created.
    """
    return workspaces.update(
        call.rt, call.principal, workspace_id, call.body["metadata"], call.body["configuration"]
    )


@routes.operation(
    "POST",
    "/v3/workspaces/<workspace_id>/search",
    reads=True,
    access=_OWN,
    body=message_schemas.WorkspaceMessageSearchOptions,
    answer=ExplainedMessage,
    many=True,
    answer_headers=HEADERS,
)
def search_workspace(call: Call, workspace_id: str) -> Response:
    """Search a workspace's messages

    Best first. With `explain`, each has the parts of its score.
    """
    return respond_search(call, workspace_id)


@routes.operation(
    "GET",
    "/v3/workspaces/<workspace_id>/queue/status",
    access=_OWN,
    query=QueueStatusQuery,
    answer=schemas.QueueStatus,
)
def get_queue_status(call: Call, workspace_id: str) -> queue_status.QueueStatus:
    """Count a workspace's background work"""
    query = call.query
    # An empty name means no filter.
    return queue_status.status(
        call.rt,
        call.principal,
        workspace_id,
        query["observer_id"] or None,
        query["sender_id"] or None,
        query["session_id"] or None,
    )


@routes.operation(
    "GET",
    "/v3/workspaces/<workspace_id>/usage",
    access=_OWN,
    query=usage_schemas.UsageQuery,
    answer=usage_schemas.UsageReport,
)
def get_usage(call: Call, workspace_id: str) -> usage_report.Report:
    """Get the usage of models

    In tokens, by day, purpose and model; and today's budget.
    """
    return usage_report.of_workspace(call.rt, call.principal, workspace_id, call.query["days"])


@routes.operation(
    "GET",
    "/v3/workspaces/<workspace_id>/queue/failures",
    access=_OWN,
    query=QueueFailuresQuery,
    answer=page_of(schemas.QueueFailure),
)
def list_queue_failures(call: Call, workspace_id: str) -> Page[Job]:
    """List background work that failed permanently and dreams held for review, the latest first

    With `include=retrying`, also tasks that will be tried again or wait for a language model, then
    newest first.
    """
    retrying = call.query["include"] == "retrying"
    return jobs.failures(
        call.rt, call.principal, workspace_id, paging(call.query), retrying=retrying
    )


@routes.operation(
    "POST",
    "/v3/workspaces/<workspace_id>/queue/failures/retry",
    access=_OWN,
    body=schemas.QueueRetry,
    body_optional=True,
    answer=schemas.QueueRetried,
)
def retry_queue_failures(call: Call, workspace_id: str) -> Retried:
    """Retry failed background work

    The count of attempts starts again. An id that is not a failure is an error, and then no task is
    retried.
    """
    return Retried(jobs.retry_failures(call.rt, call.principal, workspace_id, call.body["ids"]))
