"""Arguments and results of these tools."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from memservice_mcp.context import ToolContext
from memservice_mcp.tool import Arguments, Result
from memservice_mcp.tools.shared import Time

MAX_ITEMS = 100
"""Most items that one call stores."""

Name = Annotated[str, Field(min_length=1)]
OptionalName = Annotated[str | None, Field(min_length=1)]
PeerName = Annotated[str | None, Field(min_length=1, description="Default: the user.")]
Names = Annotated[list[Name], Field(min_length=1, max_length=MAX_ITEMS)]
Metadata = Annotated[dict[str, Any] | None, Field(description="A JSON object of your own.")]


class InWorkspace(Arguments):
    workspace_id: Annotated[
        str | None,
        Field(min_length=1, description="Default: the workspace of the URL, the key or settings."),
    ] = None

    def workspace(self, context: ToolContext) -> str:
        return self.workspace_id or context.workspace


class Resource(Result):
    """A workspace, a peer or a session."""

    id: str
    metadata: dict[str, Any]
    created_at: Time


class Done(Result):
    done: bool = Field(default=True, description="Always true; a failure is an error.")
