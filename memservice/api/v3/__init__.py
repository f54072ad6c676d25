"""The third generation: `/v3`."""

from __future__ import annotations

from memservice.api.routing import Routes
from memservice.api.v3 import conclusions, members, messages, peers, sessions, webhooks, workspaces

VERSION = "3.2.1"
"""The version of the API that the document describes; the product's version is its own."""

GROUPS: tuple[Routes, ...] = (
    workspaces.routes,
    peers.routes,
    sessions.routes,
    members.routes,
    messages.routes,
    conclusions.routes,
    webhooks.routes,
)
