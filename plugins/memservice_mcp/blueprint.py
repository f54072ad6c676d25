"""`POST /mcp`: each request is complete in itself, so any process of the server can answer it."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, request

from memservice.domain.errors import Disabled, Unauthorised
from memservice.settings import Settings
from memservice.spi import web

WORKSPACE_HEADERS = ("X-Memservice-Workspace", "X-Honcho-Workspace-ID")
PEER_HEADER = "X-Memservice-Peer"
EXTRA = "memservice[mcp]"
INSTALL = f"pip install '{EXTRA}'"
"""For callers of a server, who are told no paths."""
NOT_INSTALLED = f"MCP needs the package mcp, which is not installed on the server: {INSTALL}"


def blueprint() -> Blueprint:
    blueprint = web.access(web.OPEN)(Blueprint("mcp", __name__))
    for rule in ("/mcp", "/mcp/<workspace_id>", "/mcp/<workspace_id>/<peer_id>"):
        blueprint.add_url_rule(rule, "answer", _answer, methods=["POST"])
    return blueprint


def _answer(workspace_id: str | None = None, peer_id: str | None = None) -> Response:
    """A route of its own access rule: which keys may call a tool depends on the tool, whose service
    decides. A request without a key is refused here."""
    if web.requires_keys() and "Authorization" not in request.headers:
        raise Unauthorised("No access token provided")
    principal = web.principal()
    http, contexts = _parts()
    settings: Settings = web.settings()
    context = contexts.for_principal(
        web.runtime(),
        principal,
        workspace_id or _header(*WORKSPACE_HEADERS),
        peer_id or _header(PEER_HEADER),
        web.hold_slot,
    )
    status, headers, body = http.answer(
        settings.mcp.tools, context, list(request.headers.items()), request.get_data()
    )
    return Response(body, status, headers=headers)


def _parts() -> tuple[Any, Any]:
    try:
        from memservice_mcp import context, http
    except ModuleNotFoundError as error:
        if error.name != "mcp":
            raise
        raise Disabled(NOT_INSTALLED) from error
    return http, context


def _header(*names: str) -> str | None:
    return next((request.headers[name] for name in names if request.headers.get(name)), None)
