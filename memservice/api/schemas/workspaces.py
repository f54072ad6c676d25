"""Workspaces and their queue."""

from __future__ import annotations

from typing import ClassVar

from memservice.api.schemas.base import Aliased, NewName, Shape
from memservice.api.schemas.configuration import WorkspaceConfiguration
from memservice.api.schemas.fields import Configuration, MapOf, Moment, Object, Part, Text, Whole


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
