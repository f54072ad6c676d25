"""The third generation: `/v3`."""

from __future__ import annotations

from memservice.api.routing import Routes
from memservice.api.v3 import (
    chat,
    cloning,
    conclusions,
    deletion,
    dreams,
    erasures,
    keys,
    members,
    messages,
    peers,
    scopes,
    sessions,
    uploads,
    webhooks,
    workspaces,
)

VERSION = "3.2.1"
"""The version of the API in its document, independent of the product's version."""

ADDED = (cloning.routes, deletion.of_sessions, deletion.of_workspaces, uploads.routes)
"""Groups to which the import of these modules adds operations."""

GROUPS: tuple[Routes, ...] = (
    workspaces.routes,
    peers.routes,
    sessions.routes,
    members.routes,
    messages.routes,
    scopes.routes,
    conclusions.routes,
    chat.routes,
    dreams.routes,
    webhooks.routes,
    erasures.routes,
    keys.routes,
)
