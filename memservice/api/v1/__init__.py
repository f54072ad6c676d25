"""Generation 1: `/v1`. Translation only: paths, names, statuses and schemas; the rules are in
`memservice.services.v1`."""

from __future__ import annotations

from memservice.api.routing import Routes
from memservice.api.v1 import (
    apps,
    chat,
    collections,
    documents,
    keys,
    messages,
    metamessages,
    sessions,
    users,
)

VERSION = "1.1.0"
"""The version of the API in its document."""

GROUPS: tuple[Routes, ...] = (
    apps.routes,
    users.routes,
    sessions.routes,
    messages.routes,
    metamessages.routes,
    collections.routes,
    documents.routes,
    keys.routes,
)

ADDED = (chat.routes,)
"""Groups to which the import of these modules adds operations."""
