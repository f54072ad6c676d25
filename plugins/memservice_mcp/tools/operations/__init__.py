"""One tool for each operation of the API, with the names of the published MCP server. Arguments are
those that public documents show for its tools, and otherwise named after the fields of `/v3`."""

from __future__ import annotations

from memservice_mcp.tools.operations import conclusions, messages, peers, sessions, workspaces

TOOLS = (*workspaces.TOOLS, *peers.TOOLS, *sessions.TOOLS, *messages.TOOLS, *conclusions.TOOLS)
