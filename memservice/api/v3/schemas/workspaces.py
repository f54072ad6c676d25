"""Workspaces and their queue."""

from __future__ import annotations

from typing import ClassVar

from memservice.api.fields import (
    Configuration,
    ListOf,
    MapOf,
    Moment,
    Object,
    Part,
    Text,
    Whole,
)
from memservice.api.schema import (
    Aliased,
    NewName,
    Shape,
)
from memservice.api.v3.schemas.configuration import WorkspaceConfiguration
from memservice.api.validators import Length


class WorkspaceCreate(Aliased):
    ALIASES: ClassVar[dict[str, str]] = {"id": "name"}

    id = NewName()
    metadata = Object(load_default=dict)
    configuration = Part(WorkspaceConfiguration, load_default=dict)


class WorkspaceUpdate(Shape):
    metadata = Object(allow_none=True, load_default=None)
    configuration = Part(WorkspaceConfiguration, allow_none=True, load_default=None)


class Workspace(Shape):
    id = Text(attribute="slug", required=True)
    uid = Text(required=True)
    metadata = Object(required=True)
    configuration = Configuration(required=True)
    created_at = Moment(required=True)


class SessionQueueStatus(Shape):
    session_id = Text(attribute="session_id", allow_none=True)
    total_work_units = Whole(attribute="total", required=True)
    completed_work_units = Whole(attribute="completed", required=True)
    in_progress_work_units = Whole(attribute="in_progress", required=True)
    pending_work_units = Whole(attribute="pending", required=True)


class QueueStatus(Shape):
    total_work_units = Whole(attribute="total", required=True)
    completed_work_units = Whole(attribute="completed", required=True)
    in_progress_work_units = Whole(attribute="in_progress", required=True)
    pending_work_units = Whole(attribute="pending", required=True)
    sessions = MapOf(Part(SessionQueueStatus), allow_none=True)


class QueueFailure(Shape):
    """A task that failed every time it was tried."""

    id = Text(attribute="task.uid", required=True)
    task_type = Text(attribute="task.kind", required=True)
    session_id = Text(attribute="session", required=True, allow_none=True, metadata={"description": "The session's name"})
    observer_id = Text(attribute="observer", required=True, allow_none=True)
    observed_id = Text(attribute="observed", required=True, allow_none=True)
    attempts = Whole(attribute="task.attempts", required=True)
    error = Text(attribute="task.last_error", required=True, allow_none=True, metadata={"description": "What the last try ended with"})
    created_at = Moment(attribute="task.created_at", required=True)
    failed_at = Moment(attribute="task.finished_at", required=True, allow_none=True)


class QueueRetry(Shape):
    ids = ListOf(
        Text(),
        allow_none=True,
        load_default=None,
        validate=Length(0, 1000),
        metadata={"description": "Tasks among the failures; without this, all of them"},
    )


class QueueRetried(Shape):
    retried = Whole(required=True, metadata={"description": "How many tasks are tried again"})
