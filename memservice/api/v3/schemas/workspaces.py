"""Workspaces and their queue."""

from __future__ import annotations

from typing import ClassVar

from memservice.api.fields import (
    Configuration,
    DateTime,
    Integer,
    JsonObject,
    List,
    Map,
    Nested,
    String,
)
from memservice.api.schema import AliasedSchema, BaseSchema, NewName
from memservice.api.v3.schemas.configuration import WorkspaceConfiguration
from memservice.api.validators import Length


class WorkspaceCreate(AliasedSchema):
    ALIASES: ClassVar[dict[str, str]] = {"id": "name"}

    id = NewName()
    metadata = JsonObject(load_default=dict)
    configuration = Nested(WorkspaceConfiguration, load_default=dict)


class WorkspaceUpdate(BaseSchema):
    metadata = JsonObject(allow_none=True, load_default=None)
    configuration = Nested(WorkspaceConfiguration, allow_none=True, load_default=None)


class Workspace(BaseSchema):
    id = String(attribute="slug", required=True)
    uid = String(required=True)
    metadata = JsonObject(required=True)
    configuration = Configuration(required=True)
    created_at = DateTime(required=True)


class SessionQueueStatus(BaseSchema):
    session_id = String(attribute="session_id", allow_none=True)
    total_work_units = Integer(attribute="total", required=True)
    completed_work_units = Integer(attribute="completed", required=True)
    in_progress_work_units = Integer(attribute="in_progress", required=True)
    pending_work_units = Integer(attribute="pending", required=True)


class QueueStatus(BaseSchema):
    total_work_units = Integer(attribute="total", required=True)
    completed_work_units = Integer(attribute="completed", required=True)
    in_progress_work_units = Integer(attribute="in_progress", required=True)
    pending_work_units = Integer(attribute="pending", required=True)
    sessions = Map(Nested(SessionQueueStatus), allow_none=True)


class QueueFailure(BaseSchema):
    """A task that failed."""

    id = String(attribute="task.uid", required=True)
    task_type = String(attribute="task.kind", required=True)
    session_id = String(
        attribute="session",
        required=True,
        allow_none=True,
        metadata={"description": "The session's name"},
    )
    observer_id = String(attribute="observer", required=True, allow_none=True)
    observed_id = String(attribute="observed", required=True, allow_none=True)
    attempts = Integer(attribute="task.attempts", required=True)
    error = String(
        attribute="task.last_error",
        required=True,
        allow_none=True,
        metadata={"description": "Error of the last attempt"},
    )
    created_at = DateTime(attribute="task.created_at", required=True)
    failed_at = DateTime(attribute="task.finished_at", required=True, allow_none=True)
    state = String(
        attribute="task.state",
        required=True,
        metadata={"description": "`failed`, `held` (a dream for review) or `pending`"},
    )
    next_try_at = DateTime(attribute="next_try_at", required=True, allow_none=True)


class QueueRetry(BaseSchema):
    ids = List(
        String(),
        allow_none=True,
        load_default=None,
        validate=Length(0, 1000),
        metadata={"description": "Failed tasks to retry; all of them by default"},
    )


class QueueRetried(BaseSchema):
    retried = Integer(
        required=True, metadata={"description": "Number of tasks that will be retried"}
    )
