"""Workspaces and sessions."""

from __future__ import annotations

from typing import Any, ClassVar

from memservice.api.fields import (
    Flag,
    Name,
    Part,
)
from memservice.api.v2.schemas.base import (
    Listing,
    Older,
)
from memservice.api.v2.schemas.configuration import (
    Configuration,
    SessionConfiguration,
    WorkspaceConfiguration,
)
from memservice.api.v3.schemas import (
    sessions,
    workspaces,
)
from memservice.api.v3.schemas.queries import QueueStatusQuery
from memservice.domain.filters import resources


class WorkspaceCreate(workspaces.WorkspaceCreate):
    configuration = Part(WorkspaceConfiguration, load_default=dict)


class WorkspaceUpdate(workspaces.WorkspaceUpdate):
    configuration = Part(WorkspaceConfiguration, allow_none=True, load_default=None)


class Workspace(workspaces.Workspace):
    configuration = Configuration(required=True)


class WorkspaceGet(Listing):
    RESOURCE = resources.WORKSPACE


class SessionCreate(Older, sessions.SessionCreate):
    ALIASES: ClassVar[dict[str, str]] = {"id": "name", "peers": "peer_names"}
    UNSAID: ClassVar[dict[str, Any]] = {"scopes": None}

    configuration = Part(SessionConfiguration, allow_none=True, load_default=None)

    class Meta(Older.Meta):
        exclude = ("scopes",)


class SessionUpdate(sessions.SessionUpdate):
    configuration = Part(SessionConfiguration, allow_none=True, load_default=None)


class Session(sessions.Session):
    configuration = Configuration(required=True)


class SessionGet(Listing):
    RESOURCE = resources.SESSION


class DeriverStatusQuery(QueueStatusQuery):
    peer_id = Name(allow_none=True, load_default=None, metadata={"description": "As `observer_id`, in the first clients' word"})
    include_sender = Flag(load_default=False, metadata={"description": "Of `peer_id`: as `sender_id` too"})
