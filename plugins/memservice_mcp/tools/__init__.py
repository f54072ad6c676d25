"""The tools."""

from __future__ import annotations

from memservice_mcp.tool import Tool
from memservice_mcp.tools import answers, listings, memories, operations

DEFAULT = (*memories.TOOLS, *answers.TOOLS, *listings.TOOLS)


def selected(selection: str) -> tuple[Tool, ...]:
    """The tools of the setting `MCP_TOOLS`. Of two tools with the same name, that of the operation
    has more arguments."""
    if selection != "all":
        return DEFAULT
    tools = {tool.name: tool for tool in (*DEFAULT, *operations.TOOLS)}
    return tuple(tools.values())
