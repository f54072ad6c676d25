"""The first generation: `/v1`. Translation only: paths, names, statuses and shapes; what things
mean is `memservice.services.v1`."""

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
"""The version of the API that the document describes."""

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
"""Groups that these modules add operations to, being imported."""
