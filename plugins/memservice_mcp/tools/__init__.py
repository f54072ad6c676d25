"""The tools."""

from __future__ import annotations

from memservice_mcp.tool import Tool
from memservice_mcp.tools import answers, listings, memories

DEFAULT = (*memories.TOOLS, *answers.TOOLS, *listings.TOOLS)


def selected(selection: str) -> tuple[Tool, ...]:
    """The tools of the setting `MCP_TOOLS`."""
    return DEFAULT
