"""The second generation: `/v2`."""

from __future__ import annotations

from memservice.api.routing import Routes
from memservice.api.v2 import (
    cards,
    chat,
    messages,
    observations,
    operations,
    peers,
    search,
    sessions,
    workspaces,
)

VERSION = "2.5.1"
"""The version of the API in its document."""

ADDED = (cards.routes,)
"""Groups to which the import of these modules adds operations."""

GROUPS: tuple[Routes, ...] = (
    workspaces.routes,
    peers.routes,
    sessions.routes,
    messages.routes,
    search.routes,
    observations.routes,
    chat.routes,
    operations.dreams,
    operations.webhooks,
    operations.keys,
)
