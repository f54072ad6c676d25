"""Workspaces and sessions."""

from __future__ import annotations

from typing import Any, ClassVar

from memservice.api.fields import Boolean, Name, Nested
from memservice.api.v2.schemas.base import LegacySchema, Listing
from memservice.api.v2.schemas.configuration import (
    Configuration,
    SessionConfiguration,
    WorkspaceConfiguration,
)
from memservice.api.v3.schemas import sessions, workspaces
from memservice.api.v3.schemas.queries import QueueStatusQuery
from memservice.domain.filters import resources


class WorkspaceCreate(workspaces.WorkspaceCreate):
    configuration = Nested(WorkspaceConfiguration, load_default=dict)


class WorkspaceUpdate(workspaces.WorkspaceUpdate):
    configuration = Nested(WorkspaceConfiguration, allow_none=True, load_default=None)


class Workspace(workspaces.Workspace):
    configuration = Configuration(required=True)


class WorkspaceGet(Listing):
    RESOURCE = resources.WORKSPACE


class SessionCreate(LegacySchema, sessions.SessionCreate):
    ALIASES: ClassVar[dict[str, str]] = {"id": "name", "peers": "peer_names"}
    DEFAULTS: ClassVar[dict[str, Any]] = {"scopes": None}

    configuration = Nested(SessionConfiguration, allow_none=True, load_default=None)

    class Meta(LegacySchema.Meta):
        exclude = ("scopes",)


class SessionUpdate(sessions.SessionUpdate):
    configuration = Nested(SessionConfiguration, allow_none=True, load_default=None)


class Session(sessions.Session):
    configuration = Configuration(required=True)


class SessionGet(Listing):
    RESOURCE = resources.SESSION


class DeriverStatusQuery(QueueStatusQuery):
    peer_id = Name(
        allow_none=True,
        load_default=None,
        metadata={"description": "Like `observer_id`, for the first clients"},
    )
    include_sender = Boolean(
        load_default=False, metadata={"description": "Use `peer_id` as `sender_id` too"}
    )
